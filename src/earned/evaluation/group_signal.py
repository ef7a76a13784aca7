"""How many groups of attempts would have something to teach, from a few attempts at each problem.

A group of G attempts at one problem has *signal* when some are right and some are wrong. U units: problems, or clusters
of wordings of one problem.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from earned.evaluation.per_problem import unit_means
from earned.evaluation.statistics import Interval, clustered_interval, jackknife_interval

ENOUGH = 0.5
"""A share of groups with signal that is worth training with, and a share of problems that is worth a warning."""
MOST_BARS = 16
"""A histogram has a bar for every number of right attempts up to so many, and else bars of a tenth each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PassCount:
    """The attempts at one problem."""

    id: str
    cluster: str | None = None
    scored: int
    """Attempts that could be judged."""
    right: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One bar of a histogram of measured pass rates."""

    rate: float
    """Of its middle; the first and the last bar are exactly 0 and exactly 1."""
    problems: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupSignal:
    """The expected share of groups with signal at one group size."""

    group_size: int
    share: float
    low: float
    high: float
    """95 % interval by problems; of a model it is about the fit, not about whether the model is true."""
    counted: bool
    """True for the unbiased estimate from the attempts; False where a model was fitted to them."""


@dataclass(frozen=True, slots=True)
class PassRateModel:
    """Pass rates of problems that follow a beta distribution, so that counts of right attempts are beta-binomial.

    In terms of its mean m and of the correlation r of two attempts at one problem: alpha = m (1/r - 1) and
    beta = (1 - m)(1/r - 1). r = 0 are problems that are all alike, r = 1 ones that are always or never solved; both are
    limits of the distribution, and are in it here. Source: Skellam 1948; in these terms Griffiths 1973.
    """

    mean: float
    correlation: float

    def signal_share(self, group: int) -> float:
        """Return the chance that a group of so many attempts has signal: 1 - E[p^G] - E[(1-p)^G].

        >>> round(PassRateModel(0.25, 0.0).signal_share(8), 3), PassRateModel(0.25, 1.0).signal_share(8)
        (0.9, 0.0)
        """
        alike = _all_alike(self.mean, self.correlation, group) + _all_alike(1 - self.mean, self.correlation, group)
        return max(0.0, 1 - alike)


def signal_share(scored: int, right: int, group: int) -> float:
    """Return the chance that a group of attempts drawn from those at a problem has signal, without replacement.

    1 - [C(wrong, G) + C(right, G)] / C(scored, G): an unbiased estimate of 1 - (1-p)^G - p^G for the problem's unknown
    pass rate p, since every draw is a sample of G independent attempts (the argument of pass@k, Chen et al. 2021).

    Raises:
        ValueError: unless 0 <= right <= scored and 2 <= group <= scored.

    >>> signal_share(scored=4, right=1, group=2)
    0.5
    """
    if not (0 <= right <= scored and 2 <= group <= scored):
        raise ValueError(f"needs 0 <= right <= scored and 2 <= group <= scored, not {right=}, {scored=}, {group=}")
    return 1 - (math.comb(scored - right, group) + math.comb(right, group)) / math.comb(scored, group)


def fitted(counts: Sequence[PassCount]) -> PassRateModel:
    """Return the model with the mean pass rate and the share of right pairs that were counted (method of moments).

    Of problems with two scored attempts or more. The means over units of right/k and of right(right-1) / k(k-1) are
    unbiased for E[p] and E[p^2]; r = 1 - E[p(1-p)] / (E[p](1 - E[p])). So at a group size of 2 the model says exactly
    what was counted, unless counts vary less than those of equal problems: then, and where all attempts have one
    verdict, r = 0. Problems that are each always or never solved give r = 1.

    Raises:
        ValueError: when no problem has two scored attempts.

    >>> fitted([PassCount(id="a", scored=4, right=4), PassCount(id="b", scored=4, right=0)])
    PassRateModel(mean=0.5, correlation=1.0)
    """
    first_U, second_U = _moments(counts)
    if not first_U:
        raise ValueError("a model of pass rates needs a problem with two scored attempts")
    return _of_moments(fmean(first_U), fmean(second_U))


def group_signal(counts: Sequence[PassCount], group: int, samples: int) -> GroupSignal:
    """Return the expected share of groups of one size that have signal, with its 95 % interval by problems.

    Counted where any problem has as many scored attempts, in the mean over those problems, else from the fitted model.

    Args:
        counts: What was counted; at least one problem with two scored attempts.
        group: The group size G, 2 or more.
        samples: Attempts at a problem.
    """
    counted_U = unit_means(
        counts, lambda one: signal_share(one.scored, one.right, group) if one.scored >= group else None
    )
    interval = clustered_interval(counted_U, samples) if counted_U else _model_interval(counts, group, samples)
    return GroupSignal(
        group_size=group, share=interval.mean, low=interval.low, high=interval.high, counted=bool(counted_U)
    )


def histogram(counts: Sequence[PassCount], samples: int) -> tuple[Bar, ...]:
    """Return the numbers of problems by measured pass rate.

    The first bar is of problems never right, the last of problems always right, and those between are as many as can
    be told apart. A problem of which fewer attempts were scored is in the nearest bar between; without any in none.

    >>> [bar.problems for bar in histogram([PassCount(id="a", scored=4, right=3)], samples=4)]
    [0, 0, 0, 1, 0]
    """
    bars = samples if samples <= MOST_BARS else 10
    places = [_place(one, bars) for one in counts if one.scored]
    return tuple(Bar(rate=place / bars, problems=places.count(place)) for place in range(bars + 1))


def advice(signals: Sequence[GroupSignal], never: float, always: float) -> str:
    """Return what to change in a recipe, in words.

    Args:
        signals: One for each group size that was asked about.
        never: Share of the problems that no attempt solved.
        always: Share of the problems that every attempt solved.
    """
    by_size = sorted(signals, key=lambda signal: signal.group_size)
    enough = next((signal for signal in by_size if signal.share >= ENOUGH), None)
    best = enough or by_size[-1]
    share = f"{best.share:.0%}{'' if best.counted else ' by the model'}"
    if enough:
        size = (
            f"Of these sizes sampling.group_size = {best.group_size} is the smallest at which half of the groups or "
            f"more have signal: {share}."
        )
    else:
        size = (
            f"At none of these sizes half of the groups have signal; at sampling.group_size = {best.group_size} it is "
            f"{share}."
        )
    return size if enough and max(never, always) < ENOUGH else size + _other_problems(never, always)


def _other_problems(never: float, always: float) -> str:
    if never >= always:
        return (
            f" {never:.0%} of the problems were never solved: give easier ones (problems.options or problems.source), "
            "or start from a model warmed up by imitation (model); [curriculum] spends fewer attempts on them."
        )
    return (
        f" {always:.0%} of the problems were always solved: give harder ones (problems.options or problems.source); "
        "[curriculum] spends fewer attempts on them."
    )


def _all_alike(mean: float, correlation: float, group: int) -> float:
    """Return E[p^G], the chance that so many attempts at one problem are all right."""
    further = (
        ((1 - correlation) * mean + correlation * others) / (1 - correlation + correlation * others)
        for others in range(1, group)
    )
    return mean * math.prod(further)


def _moments(counts: Sequence[PassCount]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return [U] unbiased estimates of p and of p^2, of units that have a problem with two scored attempts."""
    pairs = [one for one in counts if one.scored >= 2]
    first_U = unit_means(pairs, lambda one: one.right / one.scored)
    second_U = unit_means(pairs, lambda one: one.right * (one.right - 1) / (one.scored * (one.scored - 1)))
    return first_U, second_U


def _of_moments(first: float, second: float) -> PassRateModel:
    most = first * (1 - first)
    correlation = 1 - (first - second) / most if most > 0 else 0.0
    return PassRateModel(first, min(1.0, max(0.0, correlation)))


def _model_interval(counts: Sequence[PassCount], group: int, samples: int) -> Interval:
    first_U, second_U = _moments(counts)
    units, first, second = len(first_U), math.fsum(first_U), math.fsum(second_U)
    without_each = [
        _of_moments((first - one) / (units - 1), (second - two) / (units - 1)).signal_share(group)
        for one, two in zip(first_U, second_U, strict=True)
        if units > 1
    ]
    share = fitted(counts).signal_share(group)
    return jackknife_interval(share, without_each or [share], samples)


def _place(one: PassCount, bars: int) -> int:
    if one.right in (0, one.scored):
        return 0 if one.right == 0 else bars
    return min(max(round(one.right / one.scored * bars), 1), bars - 1)
