"""Accuracy with its uncertainty; problems are the unit, because samples of one problem are not independent.

Where several problems are wordings of one, their cluster is the unit for the same reason: U units.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

_Z = NormalDist().inv_cdf(0.975)
"""Standard deviations of a two-sided 95 % interval."""


_HALVINGS = 60
"""Of the interval that holds a quantile: as many as a double can tell apart."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that at least one of k completions is right, unbiased, from n samples of which c were right.

    1 - C(n-c, k) / C(n, k); Chen et al. 2021, "Evaluating Large Language Models Trained on Code", equation 1.

    Raises:
        ValueError: unless 0 <= c <= n and 1 <= k <= n; k samples cannot be drawn from fewer.

    >>> round(pass_at_k(n=10, c=3, k=5), 6)
    0.916667
    """
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"pass@k needs 0 <= c <= n and 1 <= k <= n, not n={n}, c={c}, k={k}")
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def clustered_interval(values_per_unit: Sequence[float], samples: int) -> Interval:
    """Return the mean over units and its 95 % interval.

    Args:
        values_per_unit: [U], a problem's mean over its samples, or a cluster's mean over its problems.
        samples: samples a problem, k of mean@k.

    For values in [0, 1] it is Wilson's interval (1927) at the effective sample size p(1-p) / (s^2 / U), with s^2 the
    variance of the units' means, kept within [1, U * samples]: the design effect of cluster sampling (Kish 1965).
    When all units have the same mean the variance says nothing and the effective size is U, so all right or all
    wrong still has a width. Any value outside [0, 1] gives the normal interval mean +- 1.96 s / sqrt(U), of width 0
    when all are equal.

    Raises:
        ValueError: without units, or for a value that is not finite.

    >>> round(clustered_interval([1.0, 1.0, 1.0, 1.0], samples=4).low, 3)
    0.51
    """
    values_U = np.asarray(values_per_unit, dtype=np.float64)
    units = len(values_U)
    if units == 0 or not np.isfinite(values_U).all():
        raise ValueError("an interval needs at least one unit, and only finite values")
    mean = float(values_U.mean())
    equal = bool((values_U == values_U[0]).all())
    squared_error = 0.0 if equal else float(values_U.var(ddof=1)) / units
    if values_U.min() < 0 or values_U.max() > 1:
        half = _Z * math.sqrt(squared_error)
        return Interval(mean, mean - half, mean + half)
    return _interval_of_share(mean, squared_error, units, samples)


def jackknife_interval(share: float, without_each: Sequence[float], samples: int) -> Interval:
    """Return the 95 % interval of a share that is no mean over units, such as a prediction of a fitted model.

    Args:
        share: The estimate from all units, in [0, 1].
        without_each: [U], the estimates that leave out one unit each.
        samples: Samples a problem.

    Wilson's interval at the effective sample size of `clustered_interval`, with the squared error of the jackknife,
    (U-1)/U sum (x_u - mean x)^2 (Efron and Stein 1981), in the place of s^2 / U; for a mean over units the two are the
    same. A single unit has no spread, and counts as one trial.

    >>> values = [0.0, 0.5, 1.0]
    >>> jackknife_interval(0.5, [0.75, 0.5, 0.25], samples=4) == clustered_interval(values, samples=4)
    True
    """
    units = len(without_each)
    squared_error = (units - 1) * float(np.var(without_each)) if units > 1 else 0.0
    return _interval_of_share(share, squared_error, units, samples)


def _interval_of_share(share: float, squared_error: float, units: int, samples: int) -> Interval:
    # A spread too small to square without underflow says no more than none.
    effective = share * (1 - share) / squared_error if squared_error > 0 else units
    return wilson_interval(share, min(max(effective, 1), units * samples))


def wilson_interval(share: float, size: float) -> Interval:
    """Return the 95 % interval of a share seen in `size` independent trials (Wilson 1927).

    >>> interval = wilson_interval(0.5, 100)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.404, 0.596)
    """
    shrink = 1 + _Z**2 / size
    centre = (share + _Z**2 / (2 * size)) / shrink
    half = _Z / shrink * math.sqrt(share * (1 - share) / size + _Z**2 / (4 * size**2))
    return Interval(share, max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half)))


def power_sentence(units: int, problems: int | None = None) -> str:
    """Return what so many units can show, for the side of any two accuracies; `problems` where units have several.

    >>> power_sentence(256), power_sentence(3)
    ('n = 256 can see a difference of 0.12', 'n = 3 is too few to see any difference')
    >>> power_sentence(19, problems=114)
    'n = 19 problems in 114 wordings can see a difference of 0.45'
    """
    wordings = "" if problems in (None, units) else f" problems in {problems:,} wordings"
    seen = detectable_difference(units)
    can = f"can see a difference of {seen:.2f}" if seen < 1 else "is too few to see any difference"
    return f"n = {units}{wordings} {can}"


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean of independent values, such as one gain a seed, and its 95 % interval.

    mean +- t_.975(n-1) s / sqrt(n), with s the sample deviation of the n values and t Student's (1908). It is not held
    within any bounds, so that of accuracies near 1 may reach above 1. Equal values give a width of 0.

    Raises:
        ValueError: for fewer than two values, which have no spread to judge by, or one that is not finite.

    >>> interval = mean_interval([0.5, 0.6, 0.7])
    >>> round(interval.mean, 3), round(interval.low, 3), round(interval.high, 3)
    (0.6, 0.352, 0.848)
    """
    values_N = np.asarray(values, dtype=np.float64)
    if len(values_N) < 2 or not np.isfinite(values_N).all():
        raise ValueError("an interval of a mean needs at least two values, and only finite ones")
    mean = float(values_N.mean())
    half = t_quantile(0.975, len(values_N) - 1) * sample_deviation(values) / math.sqrt(len(values_N))
    return Interval(mean, mean - half, mean + half)


def sample_deviation(values: Sequence[float]) -> float:
    """Return the deviation of values from their mean, with n - 1 in the divisor, and exactly 0 when all are equal.

    >>> sample_deviation([1.0, 3.0]), sample_deviation([0.1, 0.1, 0.1])
    (1.4142135623730951, 0.0)
    """
    return 0.0 if len(set(values)) == 1 else float(np.std(values, ddof=1))


def t_quantile(probability: float, degrees: int) -> float:
    """Return the value below which Student's t with so many degrees of freedom falls with that probability.

    Raises:
        ValueError: unless 0 < probability < 1 and degrees >= 1.

    >>> round(t_quantile(0.975, 2), 3)
    4.303
    """
    if not (0 < probability < 1 and degrees >= 1):
        raise ValueError(f"a quantile of t needs 0 < probability < 1 and degrees >= 1, not {probability}, {degrees}")
    wanted, low, high = abs(2 * probability - 1), 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_within(middle, degrees) < wanted else (low, middle)
    return math.copysign(math.sqrt(degrees) * math.tan(low), probability - 0.5)


def _t_within(angle: float, degrees: int) -> float:
    """Return the chance that |t| < sqrt(degrees) tan(angle); Abramowitz and Stegun 1964, 26.7.3 and 26.7.4."""
    odd = degrees % 2
    term, total = math.cos(angle) ** odd, 0.0
    for power in range(odd, degrees - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * math.cos(angle) ** 2
    total *= math.sin(angle)
    return (angle + total) * 2 / math.pi if odd else total


def detectable_mean(deviation: float, size: int, power: float = 0.8) -> float:
    """Return the smallest mean that a two-sided t test at 5 % tells from 0 with about that power.

    (t_.975(n-1) + t_power(n-1)) s / sqrt(n), for `size` values n of sample deviation s. An approximation: the power is
    really .73 with two values, .77 with three, .78 with four, and within .01 of .8 from five on.

    Raises:
        ValueError: for fewer than two values.

    >>> round(detectable_mean(0.05, size=3), 3)
    0.155
    """
    return (t_quantile(0.975, size - 1) + t_quantile(power, size - 1)) * deviation / math.sqrt(size)


def detectable_difference(units: int, power: float = 0.8) -> float:
    """Return the smallest difference between two accuracies, each of so many units, that is seen with that power.

    (z_.975 + z_power) * sqrt(2 p(1-p) / U) at the worst case p = .5: a two-sided test at 5 %, one sample a problem,
    different problems in the two evaluations. The same problems in both, or more samples, see smaller ones.

    >>> round(detectable_difference(256), 3), round(detectable_difference(64), 3)
    (0.124, 0.248)
    """
    return (_Z + NormalDist().inv_cdf(power)) * math.sqrt(0.5 / units)
