"""earned: reinforcement learning for reasoning, honest about whether the reward was earned.

The library in three lines:

    import earned
    recipe = earned.load_recipe("recipes/tiny_sums.toml")
    result = earned.train(recipe)

Every name is imported when it is first used, so `import earned` needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from earned import algorithms as algorithms
    from earned import api, measure
    from earned.api import RunOptions as RunOptions
    from earned.api import TrainResult as TrainResult
    from earned.api import resume as resume
    from earned.api import train as train
    from earned.errors import EarnedError as EarnedError
    from earned.evaluation.statistics import mean_interval as mean_interval
    from earned.measure import Measured as Measured
    from earned.policy.pull import pull_model as pull_model
    from earned.pretrain_recipe import PretrainRecipe as PretrainRecipe
    from earned.problems.few_shot import FewShot as FewShot
    from earned.recipe import Problems as Problems
    from earned.recipe import Recipe as Recipe
    from earned.recipe import load_recipe as load_recipe
    from earned.reward_probe import RewardReport as RewardReport
    from earned.reward_probe import check_reward as check_reward
    from earned.rollouts.engine import SamplingSettings as SamplingSettings
    from earned.sampling import sample as sample
    from earned.screening import Screened as Screened
    from earned.screening import screen as screen
    from earned.series import train_seeds as train_seeds
    from earned.verification import Verification as Verification
    from earned.verification import verify as verify

    evaluate, pretrain = measure.evaluate_model, api.pretrain_model

_HOMES = {
    "EarnedError": "earned.errors",
    "FewShot": "earned.problems.few_shot",
    "Measured": "earned.measure",
    "PretrainRecipe": "earned.pretrain_recipe",
    "Problems": "earned.recipe",
    "Recipe": "earned.recipe",
    "RewardReport": "earned.reward_probe",
    "RunOptions": "earned.api",
    "SamplingSettings": "earned.rollouts.engine",
    "Screened": "earned.screening",
    "TrainResult": "earned.api",
    "Verification": "earned.verification",
    "check_reward": "earned.reward_probe",
    "evaluate": "earned.measure:evaluate_model",
    "load_recipe": "earned.recipe",
    "mean_interval": "earned.evaluation.statistics",
    "pretrain": "earned.api:pretrain_model",
    "pull_model": "earned.policy.pull",
    "resume": "earned.api",
    "sample": "earned.sampling",
    "screen": "earned.screening",
    "train": "earned.api",
    "train_seeds": "earned.series",
    "verify": "earned.verification",
}
"""The module of every name of the library, with `:NAME` where it is called otherwise there."""


def __getattr__(name: str) -> object:
    if name == "algorithms":
        return import_module("earned.algorithms")
    if name not in _HOMES:
        raise AttributeError(f"module 'earned' has no attribute {name!r}")
    module, _, inner = _HOMES[name].partition(":")
    value = getattr(import_module(module), inner or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return ["__version__", "algorithms", *_HOMES]
