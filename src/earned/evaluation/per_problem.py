"""What an evaluation finds about each problem, and means over units: clusters, or problems that stand alone."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol, TypeVar

from earned.evaluation.statistics import pass_at_k
from earned.vocabulary import Rollout, RolloutGroup

RIGHT = 1.0
"""The value of a right answer; the score that evaluates checks answers and nothing else."""

ReadAnswer = Callable[[str], Hashable | None]
"""What a check makes of an answer, equal for answers that it takes for the same; None when it makes nothing of it."""


class OfProblem(Protocol):
    """Whatever was found about one problem."""

    @property
    def id(self) -> str:
        """The problem's id."""
        ...

    @property
    def cluster(self) -> str | None:
        """What the problem is one wording of."""
        ...


Found = TypeVar("Found", bound=OfProblem)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProblemResult:
    """One problem of an evaluation; unscored attempts count in samples, length and truncated, and in nothing else."""

    id: str
    prompt: str
    gold: str | None
    cluster: str | None
    samples: int
    """Attempts, k of mean@k."""
    scored: int
    """Those that could be judged."""
    right: int
    mean: float | None
    """Mean value of the scored attempts; None where there are none."""
    greedy: float | None
    """Value of the most likely completion; None where it could not be scored."""
    pass_at_k: float
    """1 when any attempt is right, else 0."""
    maj_at_k: float | None
    """Accuracy of the majority; None where an attempt is right without an answer: the check reads none."""
    length_mean: float
    """Tokens, EOS included."""
    truncated: int
    """Attempts that the length limit ended."""


def problem_result(group: RolloutGroup, greedy: RolloutGroup, read_answer: ReadAnswer | None) -> ProblemResult:
    """Return what the sampled attempts at a problem and its most likely completion come to.

    Without `read_answer`, and where it can make nothing of an answer, two answers are the same when their texts are.
    """
    problem, completions = group.prompt.problem, [rollout.completion for rollout in group.rollouts]
    values = [rollout.score.value for rollout in group.rollouts if rollout.score.value is not None]
    right = sum(value >= RIGHT for value in values)
    return ProblemResult(
        id=problem.id,
        prompt=problem.prompt,
        gold=problem.gold,
        cluster=problem.cluster,
        samples=len(completions),
        scored=len(values),
        right=right,
        mean=fmean(values) if values else None,
        greedy=greedy.rollouts[0].score.value,
        pass_at_k=float(right > 0),
        maj_at_k=_majority(group.rollouts, read_answer),
        length_mean=fmean(completion.length for completion in completions),
        truncated=sum(completion.truncated for completion in completions),
    )


def majority_accuracy(votes: Sequence[tuple[Hashable, float]]) -> float:
    """Return the accuracy of the answer with most votes; nobody voted: 0.

    Args:
        votes: [votes], an answer and the value of giving it; equal answers have equal values.

    Among tied answers one is drawn, each equally likely: the mean of their values is its expected accuracy.
    Self-consistency: Wang et al. 2022, "Self-Consistency Improves Chain of Thought Reasoning", arXiv 2203.11171.

    >>> majority_accuracy([("7", 1.0), ("8", 0.0), ("7", 1.0)]), majority_accuracy([("7", 1.0), ("8", 0.0)])
    (1.0, 0.5)
    """
    counts = Counter(answer for answer, _ in votes)
    most = max(counts.values(), default=0)
    value_of = dict(votes)
    return fmean([value_of[answer] for answer, count in counts.items() if count == most] or [0.0])


def unit_means(problems: Sequence[Found], value: Callable[[Found], float | None]) -> tuple[float, ...]:
    """Return [U] a unit's mean of `value` over its problems, in the order in which the units come.

    Problems where it is None are left out, and so is a unit that has no others.
    """
    units: dict[tuple[str | None, str | None], list[float]] = {}
    for problem in problems:
        found = value(problem)
        if found is not None:
            alone = problem.id if problem.cluster is None else None
            units.setdefault((problem.cluster, alone), []).append(found)
    return tuple(map(fmean, units.values()))


def pass_at_each_k(problems: Sequence[ProblemResult], samples: int) -> dict[int, float]:
    """Return unbiased pass@k, a mean over units, for k = 1, 2, 4, ... below `samples` and for k = samples.

    A problem with fewer than k scored attempts counts with pass@k of all of them, one without any not at all.
    """
    ks = [*(2**power for power in range(samples.bit_length()) if 2**power < samples), samples]

    def solved(problem: ProblemResult, k: int) -> float | None:
        return pass_at_k(problem.scored, problem.right, min(k, problem.scored)) if problem.scored else None

    return {k: fmean(unit_means(problems, lambda problem, k=k: solved(problem, k))) for k in ks}


def _majority(rollouts: Sequence[Rollout], read_answer: ReadAnswer | None) -> float | None:
    votes: list[tuple[Hashable, float]] = []
    for rollout in rollouts:
        value, answer = rollout.score.value, rollout.score.extracted
        if value is None:
            continue
        if answer is not None:
            read = None if read_answer is None else read_answer(answer)
            votes.append((answer if read is None else read, value))
        elif value >= RIGHT:
            return None
    return majority_accuracy(votes)
