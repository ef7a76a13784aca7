"""The whole of training: sample, score, compare, update, record, evaluate, save. Everything else is a detail of a line.

Records, evaluation and checkpoints are handed in by `api.py`, so that nothing which reports can reach the reward.
"""

from dataclasses import dataclass, replace
from typing import Protocol

from earned.algorithms.divergence_weight import adapted_weight
from earned.algorithms.named import Algorithm
from earned.policy.load import Policy
from earned.recipe import Recipe
from earned.rollouts.engine import Engine
from earned.training.actor_critic import ActorCritic
from earned.training.advantages import with_contributions
from earned.training.batches import BatchSource
from earned.training.clock import Clock
from earned.training.credit import CreditAssigner
from earned.training.progress import Progress
from earned.training.update import Updater, UpdateReport
from earned.vocabulary import RolloutGroup


@dataclass(frozen=True, kw_only=True)
class StepOutcome:
    """All there is to know about a finished step."""

    progress: Progress
    groups: tuple[RolloutGroup, ...]
    """With what each part of a reward contributed to the advantage."""
    discarded: tuple[RolloutGroup, ...]
    """Sampled, but not trained on for want of signal."""
    advantages: dict[str, float]
    """By rollout id."""
    report: UpdateReport
    seconds: dict[str, float]
    """By part: sample, score, update, evaluate, total."""

    @property
    def sampled(self) -> tuple[RolloutGroup, ...]:
        """Every group of the step, trained on or not."""
        return (*self.groups, *self.discarded)


class Observer(Protocol):
    """What the loop tells the world; wired to records, evaluation and checkpoints by `api.py`."""

    def evaluate(self, step: int) -> None:
        """Measure accuracy on the frozen problems."""
        ...

    def record(self, outcome: StepOutcome) -> None:
        """Keep everything about a step."""
        ...

    def save(self, progress: Progress) -> None:
        """Write a checkpoint."""
        ...

    def checkpoint_due(self, step: int) -> bool:
        """Return whether to save after this step."""
        ...

    def stop_requested(self) -> bool:
        """Return whether to stop before the next step."""
        ...


@dataclass(frozen=True, kw_only=True)
class Training:
    """The parts of a run, wired together."""

    recipe: Recipe
    algorithm: Algorithm
    policy: Policy
    engine: Engine
    batches: BatchSource
    assigner: CreditAssigner
    updater: Updater | ActorCritic
    observer: Observer


def train(training: Training, progress: Progress) -> Progress:
    """Train from `progress` to the last step, or until a stop is requested; return where it ended."""
    recipe, observer = training.recipe, training.observer
    training.engine.load_weights(training.policy, progress.policy_version)
    if progress.step == 0:
        observer.evaluate(0)
    while progress.step < recipe.steps and not observer.stop_requested():
        clock = Clock()
        progress = training.batches.sampled_ahead(progress, clock)
        batch = progress.pending[0]
        with clock.part("update"):
            credit = training.assigner.assign(batch.groups, progress.divergence_weight)
            report = training.updater.update(batch.groups, credit, batch.step)
            progress = advanced(progress, report, training.algorithm)
            training.engine.load_weights(training.policy, progress.policy_version)
        if due(progress.step, recipe.evaluation.every, recipe.steps):
            with clock.part("evaluate"):
                observer.evaluate(progress.step)
        outcome = StepOutcome(
            progress=progress,
            groups=with_contributions(batch.groups, training.algorithm),
            discarded=batch.discarded,
            advantages=credit.advantages,
            report=report,
            seconds=clock.read(),
        )
        observer.record(outcome)
        if observer.checkpoint_due(progress.step):
            observer.save(progress)
    return progress


def advanced(progress: Progress, report: UpdateReport, algorithm: Algorithm) -> Progress:
    """Return the progress after one more step, with its batch used up."""
    batch, *pending = progress.pending
    weight, target = progress.divergence_weight, algorithm.divergence_target
    nats = report.metrics.get("divergence/completion_nats")
    if target is not None and nats is not None:
        weight = adapted_weight(weight, nats, target, sum(len(group.rollouts) for group in batch.groups))
    return replace(
        progress,
        step=batch.step,
        policy_version=progress.policy_version + report.updates,
        empty_steps=progress.empty_steps + 1 if report.empty else 0,
        divergence_weight=weight,
        pending=tuple(pending),
    )


def due(step: int, every: int, last: int) -> bool:
    """Return whether something done every so many steps, and always at the last, is done at this one."""
    return step % every == 0 or step == last
