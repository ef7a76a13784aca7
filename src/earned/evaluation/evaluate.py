"""Accuracy of a policy on a frozen set of problems: mean@k with its interval, greedy, pass@k and lengths."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from earned.errors import VerifierError
from earned.evaluation.statistics import clustered_interval, pass_at_k
from earned.rollouts.collect import ScoreAttempts, scored_groups
from earned.rollouts.engine import Draw, Engine, SamplingSettings
from earned.vocabulary import GREEDY_ATTEMPT, EvaluationResult, Prompt, RolloutGroup, Split

RIGHT = 1.0
"""The value of a right answer; the score that evaluates checks answers and nothing else."""


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """A result and the completions it was computed from."""

    result: EvaluationResult
    groups: tuple[RolloutGroup, ...]
    """The sampled ones, then one of the greedy completion for every problem."""


def evaluate(
    engine: Engine,
    prompts: Sequence[Prompt],
    score: ScoreAttempts,
    settings: SamplingSettings,
    stamp: Draw,
) -> Evaluated:
    """Return the accuracy on `prompts`, all of one split, of the attempts that `attempts_at` returns.

    A completion that could not be scored leaves its problem's mean; a problem without a scored completion leaves the
    result, whose `problems` says how many are in it.

    Raises:
        VerifierError: when nothing could be scored.
    """
    every = attempts_at(engine, prompts, score, settings, stamp)
    groups, greedy = every[: len(prompts)], every[len(prompts) :]
    values = [found for group in groups if (found := _values(group))]
    if not values:
        why = groups[0].rollouts[0].score.explanation
        raise VerifierError(f"no completion of the {stamp.purpose} problems could be scored, for example: {why}")
    greedy_values = [value for group in greedy for value in _values(group)]
    interval = clustered_interval([_mean(found) for found in values], settings.group_size)
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    result = EvaluationResult(
        step=stamp.step,
        split=Split(prompts[0].problem.split),
        problems=len(values),
        samples=settings.group_size,
        mean=interval.mean,
        low=interval.low,
        high=interval.high,
        greedy=_mean(greedy_values),
        pass_at_k=_mean([_solved(found) for found in values]),
        length_mean=_mean([rollout.completion.length for rollout in rollouts]),
        truncated_share=_mean([float(rollout.completion.truncated) for rollout in rollouts]),
    )
    return Evaluated(result=result, groups=every)


def attempts_at(
    engine: Engine,
    prompts: Sequence[Prompt],
    score: ScoreAttempts,
    settings: SamplingSettings,
    stamp: Draw,
    *,
    fixed: bool = False,
) -> tuple[RolloutGroup, ...]:
    """Return a group of sampled attempts for every prompt, then for every prompt one of the greedy completion.

    `stamp` names the rollouts and addresses the random numbers. With `fixed` these are those of step 0 at every step,
    so only the weights make a difference.
    """
    draw = replace(stamp, step=0) if fixed else stamp
    groups = scored_groups(prompts, engine.generate(prompts, settings, draw), score, stamp)
    most_likely = engine.generate(prompts, replace(settings, group_size=1, temperature=0.0), draw)
    return groups + scored_groups(prompts, most_likely, score, stamp, first_attempt=GREEDY_ATTEMPT)


def _values(group: RolloutGroup) -> list[float]:
    return [rollout.score.value for rollout in group.rollouts if rollout.score.value is not None]


def _solved(values: Sequence[float]) -> float:
    return pass_at_k(n=len(values), c=sum(value >= RIGHT for value in values), k=len(values))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")
