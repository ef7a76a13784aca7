"""Accuracy of a policy on a frozen set of problems: mean@k with its interval, greedy, pass@k, maj@k and lengths."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from earned.errors import VerifierError
from earned.evaluation.per_problem import ProblemResult, ReadAnswer, problem_result, unit_means
from earned.evaluation.statistics import clustered_interval
from earned.rollouts.collect import ScoreAttempts, scored_groups
from earned.rollouts.engine import Draw, Engine, SamplingSettings
from earned.vocabulary import GREEDY_ATTEMPT, EvaluationResult, Prompt, RolloutGroup, Split


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """A result, what it says about each problem, and the completions it was computed from."""

    result: EvaluationResult
    problems: tuple[ProblemResult, ...]
    """All of them, in order."""
    groups: tuple[RolloutGroup, ...]
    """The sampled ones, then one of the greedy completion for every problem."""


def evaluate(
    engine: Engine,
    prompts: Sequence[Prompt],
    score: ScoreAttempts,
    settings: SamplingSettings,
    stamp: Draw,
    *,
    read_answer: ReadAnswer | None = None,
) -> Evaluated:
    """Return the accuracy on `prompts`, all of one split, of the attempts that `attempts_at` returns.

    `read_answer` says which answers are the same vote.

    A completion that could not be scored leaves its problem's mean; a problem without a scored completion leaves the
    result, whose `problems` says how many are in it.

    Raises:
        VerifierError: when nothing could be scored.
    """
    every = attempts_at(engine, prompts, score, settings, stamp)
    groups, greedy = every[: len(prompts)], every[len(prompts) :]
    problems = tuple(problem_result(group, likely, read_answer) for group, likely in zip(groups, greedy, strict=True))
    judged = [problem for problem in problems if problem.scored]
    if not judged:
        why = groups[0].rollouts[0].score.explanation
        raise VerifierError(f"no completion of the {stamp.purpose} problems could be scored, for example: {why}")
    means = unit_means(judged, lambda problem: problem.mean)
    interval = clustered_interval(means, settings.group_size)
    completions = [rollout.completion for group in groups for rollout in group.rollouts]
    result = EvaluationResult(
        step=stamp.step,
        split=Split(prompts[0].problem.split),
        problems=len(judged),
        units=len(means),
        samples=settings.group_size,
        mean=interval.mean,
        low=interval.low,
        high=interval.high,
        greedy=_mean(unit_means(problems, lambda problem: problem.greedy)),
        pass_at_k=_mean(unit_means(judged, lambda problem: problem.pass_at_k)),
        maj_at_k=_majority_mean(judged),
        length_mean=fmean(completion.length for completion in completions),
        truncated_share=fmean(completion.truncated for completion in completions),
    )
    return Evaluated(result=result, problems=problems, groups=every)


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


def _majority_mean(problems: Sequence[ProblemResult]) -> float:
    # A check that reads no answers leaves only its wrong attempts without votes: their mean would say nothing.
    reads_none = any(problem.maj_at_k is None for problem in problems)
    return float("nan") if reads_none else _mean(unit_means(problems, lambda problem: problem.maj_at_k))


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else float("nan")
