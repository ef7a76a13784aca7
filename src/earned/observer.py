"""Wires what a run reports: evaluation, records, checkpoints and the listener on the screen."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from earned import __version__
from earned.diagnostics.behaviours import behaviour_metrics
from earned.diagnostics.estimate import correction_due, duration, evaluations_after, remaining_seconds
from earned.diagnostics.groups import no_signal_advice
from earned.diagnostics.step_metrics import rollout_metrics
from earned.evaluation.evaluate import attempts_at, evaluate
from earned.evaluation.model_card import CardFacts, model_card
from earned.problems.curriculum import standing_metrics
from earned.recipe import EveryN, Recipe
from earned.records.reader import RunReader
from earned.records.rows import StepRow, StepSeconds
from earned.records.run_folder import run_database
from earned.records.writer import RecordWriter
from earned.rewards.checks import GOLD_PARSERS
from earned.rollouts.collect import ScoreAttempts
from earned.rollouts.engine import Draw, Engine, SamplingSettings
from earned.training.checkpoints import Learners, save_checkpoint
from earned.training.loop import StepOutcome, due
from earned.training.progress import Progress
from earned.vocabulary import EvaluationResult, Problem, Prompt, Split

RECENT_STEPS = 5
"""Their mean is the pace of a run, which changes as completions grow."""


class Listener(Protocol):
    """Shows a run to a person while it goes on."""

    def evaluated(self, result: EvaluationResult) -> None:
        """Take the accuracy of one split at one step."""
        ...

    def stepped(self, step: int, metrics: Mapping[str, float]) -> None:
        """Take the metrics of a finished step."""
        ...

    def said(self, text: str) -> None:
        """Take a sentence that matters: an event, a warning."""
        ...


class Silence:
    """The listener of a run that nobody watches."""

    def evaluated(self, result: EvaluationResult) -> None:
        """Ignore it."""

    def stepped(self, step: int, metrics: Mapping[str, float]) -> None:
        """Ignore it."""

    def said(self, text: str) -> None:
        """Ignore it."""


@dataclass(kw_only=True)
class RunObserver:
    """Implements `training.loop.Observer` for one run."""

    recipe: Recipe
    folder: Path
    learners: Learners
    engine: Engine
    problems: Sequence[Problem]
    """Those trained on."""
    evaluation_prompts: Mapping[Split, tuple[Prompt, ...]]
    """Of the splits that have an accuracy."""
    watched_prompts: tuple[Prompt, ...]
    """Sampled with the same random numbers at every evaluation, whether or not they can be judged."""
    score_answers: ScoreAttempts
    """Accuracy: right answers and nothing else, whatever the run rewards."""
    writer: RecordWriter
    listener: Listener
    stop_requested: Callable[[], bool]
    expected_seconds: float | None = None
    """Of the whole run, as last said; None before anything was."""
    best: EvaluationResult | None = None
    """The best evaluation on the validation problems so far; chooses the checkpoint that is never pruned."""
    weights_changed: bool = False
    _said_unchanged: bool = False
    _started: float = field(default_factory=time.perf_counter)
    _evaluation_seconds: float = 0.0
    """Of the last evaluation."""
    _step_seconds: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_STEPS))
    """Of the last steps, without evaluations."""

    def evaluate(self, step: int) -> None:
        """Sample the frozen problems, record the completions and the accuracies, and remember a new best."""
        start = time.perf_counter()
        settings, read_answer = self._evaluation_settings(), GOLD_PARSERS.get(self.recipe.evaluation.check)
        for split, prompts in self.evaluation_prompts.items():
            stamp = Draw(seed=self.recipe.seed, step=step, purpose=split.value)
            found = evaluate(self.engine, prompts, self.score_answers, settings, stamp, read_answer=read_answer)
            self.writer.rollouts(step, split.value, found.groups, None, (), self._keeps_tokens(step))
            self.writer.evaluation(found.result)
            self.listener.evaluated(found.result)
            better = self.best is None or found.result.mean > self.best.mean
            if split is Split.VALIDATION and better:
                self.best = found.result
        if self.watched_prompts:
            stamp = Draw(seed=self.recipe.seed, step=step, purpose="watched")
            groups = attempts_at(self.engine, self.watched_prompts, self.score_answers, settings, stamp, fixed=True)
            self.writer.rollouts(step, "watched", groups, None, (), True)
        self._evaluation_seconds = time.perf_counter() - start

    def record(self, outcome: StepOutcome) -> None:
        """Queue everything about a step for the record."""
        start = time.perf_counter()
        step, sampled = outcome.progress.step, outcome.sampled
        untrained = {rollout.id: 0.0 for group in outcome.discarded for rollout in group.rollouts}
        advantages, details = outcome.advantages | untrained, outcome.report.details
        self.writer.rollouts(step, "train", sampled, advantages, details, self._keeps_tokens(step))
        metrics = rollout_metrics(sampled, advantages) | outcome.report.metrics | self._throughput(outcome)
        metrics |= self._refilled(outcome) | {"divergence/weight": outcome.progress.divergence_weight}
        metrics |= behaviour_metrics(sampled, self.recipe.sampling.max_new_tokens)
        if self.recipe.curriculum is not None:
            metrics |= standing_metrics(self.problems, outcome.progress.curriculum, self.recipe.curriculum)
        self._note_events(outcome, metrics)
        metrics["time/record_seconds"] = time.perf_counter() - start
        seconds = StepSeconds(**outcome.seconds, record=metrics["time/record_seconds"])
        self.writer.step(StepRow(step=step, policy_version=outcome.progress.policy_version, seconds=seconds), metrics)
        self.listener.stepped(step, metrics)
        self._note_pace(step, seconds)

    def checkpoint_due(self, step: int) -> bool:
        """Return whether to save now: by the recipe, at the last step, for a new best, or before stopping."""
        new_best = self.best is not None and self.best.step == step
        return due(step, self.recipe.checkpoint.every, self.recipe.steps) or new_best or self.stop_requested()

    def save(self, progress: Progress) -> None:
        """Save, once the records of everything up to here are on disk."""
        start = time.perf_counter()
        self.writer.flush()
        save_checkpoint(
            self.folder / "checkpoints",
            self.learners,
            progress,
            keep_last=self.recipe.checkpoint.keep_last,
            keep_step=self.best.step if self.best else None,
            card=self._card(progress.step),
        )
        self.writer.checkpoint_seconds(progress.step, time.perf_counter() - start)

    def _card(self, step: int) -> str:
        """Return the model card, from the record, which a resumed run has too."""
        reader = RunReader(run_database(self.folder))
        run = CardFacts(
            run=self.folder.name, recipe_name=reader.meta().get("recipe", "unknown"), step=step, version=__version__
        )
        return model_card(run, self.recipe, reader.evaluations(Split.HELD_OUT))

    def _evaluation_settings(self) -> SamplingSettings:
        return SamplingSettings(
            group_size=self.recipe.evaluation.samples,
            temperature=self.recipe.evaluation.temperature,
            max_new_tokens=self.recipe.sampling.max_new_tokens,
        )

    def _keeps_tokens(self, step: int) -> bool:
        tokens = self.recipe.records.tokens
        return step % tokens.every == 0 if isinstance(tokens, EveryN) else tokens == "all"

    def _refilled(self, outcome: StepOutcome) -> dict[str, float]:
        """Return what became of groups without signal, where others were tried in their place."""
        used = [r.score.value for group in outcome.groups for r in group.rollouts if r.score.value is not None]
        return {
            "groups/discarded": float(len(outcome.discarded)),
            "groups/missing": float(self.recipe.sampling.prompts_per_step - len(outcome.groups)),
        } | ({"reward/used_mean": sum(used) / len(used)} if used else {})

    def _throughput(self, outcome: StepOutcome) -> dict[str, float]:
        tokens = sum(r.completion.length for group in outcome.sampled for r in group.rollouts)
        timed = {f"time/{part}_seconds": outcome.seconds.get(part, 0.0) for part in ("sample", "score", "update")}
        return timed | {
            "time/evaluate_seconds": outcome.seconds.get("evaluate", 0.0),
            "time/step_seconds": outcome.seconds["total"],
            "throughput/sampled_tokens_per_second": tokens / max(1e-9, outcome.seconds["sample"]),
            "records/queue_waits": float(self.writer.queue_waits),
            "records/writer_cpu_seconds": self.writer.cpu_seconds,
        }

    def _note_events(self, outcome: StepOutcome, metrics: Mapping[str, float]) -> None:
        step, empty = outcome.progress.step, outcome.progress.empty_steps
        if empty and empty % self.recipe.max_empty_steps == 0:
            advice = no_signal_advice(outcome.groups, metrics["completions/truncated_share"], empty)
            self._event(step, "no_signal", advice)
        if metrics.get("update/skipped", 0.0) > 0:
            self._event(step, "update_skipped", "the gradient was not finite, so the update was skipped")
        changed = metrics.get("update/weights_changed_share")
        if changed == 0.0 and outcome.report.updates and not self._said_unchanged:
            self._said_unchanged = True
            self._event(step, "weights_unchanged", "the update changed no weight; see optim.learning_rate")
        self.weights_changed = self.weights_changed or bool(changed)

    def _note_pace(self, step: int, seconds: StepSeconds) -> None:
        """Say how long the run will really take, where the estimate needs it."""
        self._step_seconds.append(seconds.total - seconds.evaluate + seconds.record)
        recipe = self.recipe
        left = remaining_seconds(
            self._step_seconds,
            recipe.steps - step,
            self._evaluation_seconds,
            evaluations_after(step, recipe.evaluation.every, recipe.steps),
        )
        elapsed, said = time.perf_counter() - self._started, self.expected_seconds
        if correction_due(step, said, elapsed, left):
            total = f"at this pace about {duration(elapsed + left)} in all, {duration(left)} left"
            self._event(step, "estimate", total if said is None else f"{total}; the estimate was {duration(said)}")
            self.expected_seconds = elapsed + left

    def _event(self, step: int, kind: str, text: str) -> None:
        self.writer.event(step, kind, text, {})
        self.listener.said(f"step {step}: {text}")
