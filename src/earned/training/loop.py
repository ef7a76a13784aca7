"""The whole of training: sample, score, compare, update, record, evaluate, save. Everything else is a detail of a line.

Records, evaluation and checkpoints are handed in by `api.py`, so that nothing which reports can reach the reward.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from earned.algorithms.named import Algorithm
from earned.optimization.schedule import warmup_constant
from earned.policy.load import Policy
from earned.recipe import Recipe
from earned.rollouts.collect import ScoreAttempts, scored_groups
from earned.rollouts.engine import Draw, Engine, SamplingSettings
from earned.training.advantages import group_advantages, with_contributions
from earned.training.checkpoints import Progress
from earned.training.update import Updater, UpdateReport
from earned.vocabulary import Prompt, RolloutGroup


@dataclass(frozen=True, kw_only=True)
class StepOutcome:
    """All there is to know about a finished step."""

    progress: Progress
    groups: tuple[RolloutGroup, ...]
    """With what each part of a reward contributed to the advantage."""
    advantages: dict[str, float]
    """By rollout id."""
    report: UpdateReport
    seconds: dict[str, float]
    """By part: sample, score, update, evaluate, total."""


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
    prompts_of: Callable[[int], tuple[Prompt, ...]]
    """The training prompts of a step, a function of the step alone."""
    engine: Engine
    score: ScoreAttempts
    updater: Updater
    observer: Observer


def train(training: Training, progress: Progress) -> Progress:
    """Train from `progress` to the last step, or until a stop is requested; return where it ended."""
    recipe, observer = training.recipe, training.observer
    training.engine.load_weights(training.policy, progress.policy_version)
    if progress.step == 0:
        observer.evaluate(0)
    while progress.step < recipe.steps and not observer.stop_requested():
        clock = Clock()
        step = progress.step + 1
        draw = Draw(seed=recipe.seed, step=step, purpose="train")
        with clock.part("sample"):
            prompts = training.prompts_of(step)
            completions = training.engine.generate(prompts, sampling_settings(recipe), draw)
        with clock.part("score"):
            groups = scored_groups(prompts, completions, training.score, draw)
        with clock.part("update"):
            advantages = group_advantages(groups, training.algorithm)
            report = training.updater.update(groups, advantages, learning_rate(recipe, step))
            progress = advanced(progress, report)
            training.engine.load_weights(training.policy, progress.policy_version)
        if due(step, recipe.evaluation.every, recipe.steps):
            with clock.part("evaluate"):
                observer.evaluate(step)
        outcome = StepOutcome(
            progress=progress,
            groups=with_contributions(groups, training.algorithm),
            advantages=advantages,
            report=report,
            seconds=clock.read(),
        )
        observer.record(outcome)
        if observer.checkpoint_due(step):
            observer.save(progress)
    return progress


def sampling_settings(recipe: Recipe) -> SamplingSettings:
    """Return how training samples are drawn."""
    sampling = recipe.sampling
    return SamplingSettings(
        group_size=sampling.group_size, temperature=sampling.temperature, max_new_tokens=sampling.max_new_tokens
    )


def learning_rate(recipe: Recipe, step: int) -> float:
    """Return the learning rate of a step."""
    return warmup_constant(step, recipe.optim.learning_rate, recipe.optim.warmup_steps)


def advanced(progress: Progress, report: UpdateReport) -> Progress:
    """Return the progress after one more step."""
    return replace(
        progress,
        step=progress.step + 1,
        policy_version=progress.policy_version + report.updates,
        empty_steps=0 if report.updates else progress.empty_steps + 1,
    )


def due(step: int, every: int, last: int) -> bool:
    """Return whether something done every so many steps, and always at the last, is done at this one."""
    return step % every == 0 or step == last


@dataclass
class Clock:
    """Wall-clock seconds of the parts of a step."""

    started: float = field(default_factory=time.perf_counter)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add the time spent inside to a part."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def read(self) -> dict[str, float]:
        """Return the parts so far and the total since the step began."""
        return {**self.seconds, "total": time.perf_counter() - self.started}
