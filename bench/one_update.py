"""One batch through the real updater, outside of a run: the one place where benches meet the training code."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from earned.algorithms.named import Algorithm
from earned.assembly import Assembled, assemble, assigner, chooser, sampling_settings, updater
from earned.optimization.optimizer import Optimizer
from earned.problems.curriculum import CurriculumState
from earned.recipe import Optim, Recipe
from earned.rewards.user_reward import RewardFunction
from earned.rollouts.collect import scored_groups
from earned.rollouts.engine import Draw
from earned.sandbox.workers import WorkerPool
from earned.task import WORKERS, task_of
from earned.training.reference import Reference
from earned.vocabulary import RolloutGroup


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What an update would have done."""

    gradients: tuple[Tensor, ...]
    """One a pass, flat, parameters in the order of their names."""
    metrics: Mapping[str, float]
    """As recorded; losses and shares are over all passes."""


class GradientRecorder(Optimizer):
    """Keeps the gradient instead of taking a step, and goes to given weights, or stays where it is."""

    def __init__(
        self, parameters: Mapping[str, nn.Parameter], settings: Optim, goes_to: Mapping[str, Tensor] | None
    ) -> None:
        super().__init__(parameters, settings)
        self._by_name = dict(sorted(parameters.items()))
        self._goes_to = goes_to
        self.gradients: list[Tensor] = []

    def step(self, learning_rate: float) -> float:
        """Return the norm of the gradient, as an optimiser does."""
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self._by_name.values()]
        self.gradients.append(torch.cat([gradient.flatten() for gradient in gradients]))
        for parameter in self._by_name.values():
            parameter.grad = None
        if self._goes_to is not None:
            set_weights(self._by_name, self._goes_to)
        return float(self.gradients[-1].norm())


@contextmanager
def assembled(recipe: Recipe, reward: RewardFunction | None = None) -> Iterator[Assembled]:
    """Give the parts of a run, without a run folder."""
    with WorkerPool(WORKERS) as pool:
        yield assemble(task_of(recipe, pool, reward), recipe.model)


def batch_of(parts: Assembled, step: int) -> tuple[RolloutGroup, ...]:
    """Return what the weights as they are sample at a step, scored."""
    prompts = chooser(parts)(step, parts.recipe.sampling.prompts_per_step, (), CurriculumState())
    draw = Draw(seed=parts.recipe.seed, step=step, purpose="train")
    completions = parts.engine.generate(prompts, sampling_settings(parts.recipe), draw)
    return scored_groups(prompts, completions, parts.score, draw)


def measure(
    parts: Assembled,
    algorithm: Algorithm,
    groups: Sequence[RolloutGroup],
    goes_to: Mapping[str, Tensor] | None = None,
) -> Measured:
    """Return the gradients of an update in which every step leads to the weights `goes_to`, or nowhere."""
    policy = parts.policy
    recorder = GradientRecorder(policy.parameters(), parts.recipe.optim, goes_to)
    reference = None if algorithm.divergence is None else Reference(policy)
    changed = replace(parts, algorithm=algorithm, optimizer=recorder, reference=reference)
    credit = assigner(changed).assign(groups, algorithm.divergence_weight)
    report = updater(changed).update(groups, credit, step=1)
    return Measured(gradients=tuple(recorder.gradients), metrics=report.metrics)


@torch.no_grad()
def set_weights(parameters: Mapping[str, nn.Parameter], weights: Mapping[str, Tensor]) -> None:
    """Copy the weights into the parameters, name by name."""
    for name, parameter in parameters.items():
        parameter.copy_(weights[name])
