"""Puts the parts of a run together from its recipe, after checking everything that the recipe names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from earned.algorithms.named import Algorithm, resolve
from earned.errors import RecipeError
from earned.optimization.allocator import keep_freed_memory
from earned.optimization.optimizer import Optimizer
from earned.optimization.precision import dtype_of, resolve_precision
from earned.policy.load import Policy, load_policy
from earned.policy.prompts import render_all
from earned.problems.problem_set import ProblemSet, step_problems
from earned.recipe import Recipe
from earned.rewards.compose import require_scored
from earned.rollouts.collect import ScoreAttempts
from earned.rollouts.engine import Engine
from earned.rollouts.torch_engine import TorchEngine
from earned.task import Task
from earned.training.reference import Reference
from earned.training.update import Updater, UpdateSettings
from earned.vocabulary import Attempt, Prompt, Score, Split


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """Everything a run needs that does not touch the disk."""

    recipe: Recipe
    problems: ProblemSet
    prompts: Mapping[Split, tuple[Prompt, ...]]
    measured: tuple[Split, ...]
    """Splits whose accuracy is measured: they hold problems, and at least one gold answer that can be read."""
    policy: Policy
    engine: Engine
    reference: Reference | None
    algorithm: Algorithm
    optimizer: Optimizer
    score: ScoreAttempts
    score_answers: ScoreAttempts
    file_hashes: Mapping[str, str]
    """SHA-256 of the files of the user's own rewards, by their key in the record."""


def assemble(task: Task, model: str) -> Assembled:
    """Load the model and check everything else the recipe names, before anything is written."""
    keep_freed_memory()
    recipe, rewarder, answers = task.recipe, task.rewarder, task.answers
    algorithm = resolve(recipe.algorithm.name, **recipe.algorithm.model_dump(exclude={"name"}))
    _require_siblings(recipe, algorithm)
    policy = load_policy(model)
    prompts = {split: render_all(policy, task.problems.split(split), recipe.sampling.max_new_tokens) for split in Split}
    parameters = policy.parameters()
    precision = resolve_precision(
        recipe.optim.precision, policy.device, sum(value.numel() for value in parameters.values())
    )
    optim = recipe.optim.model_copy(update={"precision": precision})

    def score(attempts: Mapping[str, Attempt]) -> dict[str, Score]:
        scores = rewarder.score_all(attempts)
        require_scored(scores, recipe.rewards.max_unscored_share)
        return scores

    return Assembled(
        recipe=recipe.model_copy(update={"optim": optim}),
        problems=task.problems,
        prompts=prompts,
        measured=task.measured,
        policy=policy,
        engine=TorchEngine(policy, batch_size=recipe.sampling.batch_size, precision=dtype_of(precision)),
        reference=_reference(recipe, algorithm),
        algorithm=algorithm,
        optimizer=Optimizer(parameters, optim),
        score=score,
        score_answers=answers.score_all,
        file_hashes={f"reward_file/{name}": digest for name, digest in rewarder.file_hashes.items()}
        | {f"evaluation_file/{name}": digest for name, digest in answers.file_hashes.items()},
    )


def updater(parts: Assembled) -> Updater:
    """Return what changes the weights, as the recipe says."""
    recipe = parts.recipe
    return Updater(
        parts.policy,
        parts.optimizer,
        parts.algorithm,
        UpdateSettings(
            temperature=recipe.sampling.temperature,
            max_new_tokens=recipe.sampling.max_new_tokens,
            tokens_per_micro_batch=recipe.optim.tokens_per_micro_batch,
            precision=dtype_of(recipe.optim.precision),
        ),
        parts.reference,
    )


def prompts_by_step(parts: Assembled) -> Callable[[int], tuple[Prompt, ...]]:
    """Return what gives the training prompts of a step, which counts from 1."""
    recipe = parts.recipe
    prompt_of = {prompt.problem.id: prompt for prompt in parts.prompts[Split.TRAIN]}
    return lambda step: tuple(
        prompt_of[problem.id]
        for problem in step_problems(parts.problems, recipe.seed, step, recipe.sampling.prompts_per_step)
    )


def _reference(recipe: Recipe, algorithm: Algorithm) -> Reference | None:
    """Return the model the run started from, also when the policy comes from a checkpoint."""
    return None if algorithm.divergence is None else Reference(load_policy(recipe.model))


def _require_siblings(recipe: Recipe, algorithm: Algorithm) -> None:
    if algorithm.group_relative and recipe.sampling.group_size == 1 and "single_sample" not in recipe.rewards.allow:
        raise RecipeError(
            f"sampling.group_size: 1, but {recipe.algorithm.name!r} compares the attempts at one problem with each "
            'other, so nothing would be learned. Use 2 or more (8 is usual), or rewards.allow = ["single_sample"]'
        )
