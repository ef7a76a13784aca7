import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earned.evaluation.statistics import (
    clustered_interval,
    detectable_difference,
    detectable_mean,
    mean_interval,
    pass_at_k,
    sample_deviation,
    t_quantile,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"), [(10, 3, 5, 0.916667), (10, 0, 5, 0), (10, 10, 1, 1), (4, 1, 4, 1), (8, 2, 1, 0.25)]
)
def test_pass_at_k_by_hand(n, c, k, expected):
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-6)


@given(st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(data):
    n = data.draw(st.integers(1, 8))
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(combinations(range(n), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(min(subset) < c for subset in subsets) / len(subsets))


def test_pass_at_k_of_large_counts_is_finite_and_exact():
    assert pass_at_k(10_000, 1, 5_000) == pytest.approx(0.5)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 4, 1), (3, -1, 1), (3, 1, 0), (0, 0, 0)])
def test_pass_at_k_refuses(n, c, k):
    with pytest.raises(ValueError, match="pass@k"):
        pass_at_k(n, c, k)


def test_wilson_by_hand():
    # z = 1.96, 8 of 10: centre (.8 + .19207) / 1.38415 = .71674, half width .22659.
    interval = wilson_interval(0.8, 10)
    assert (interval.low, interval.high) == pytest.approx((0.49016, 0.94331), abs=1e-4)


def test_one_sample_a_problem_is_nearly_plain_wilson():
    values = [1.0] * 30 + [0.0] * 34
    clustered, plain = clustered_interval(values, samples=1), wilson_interval(30 / 64, 64)
    assert (clustered.low, clustered.high) == pytest.approx((plain.low, plain.high), abs=1e-3)


def test_identical_samples_of_a_problem_add_nothing():
    values = [1.0] * 30 + [0.0] * 34
    one, many = clustered_interval(values, samples=1), clustered_interval(values, samples=16)
    assert (many.low, many.high) == pytest.approx((one.low, one.high), abs=2e-3)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.3])
def test_equal_problems_still_have_a_width(value):
    interval = clustered_interval([value] * 20, samples=4)
    assert interval.mean == pytest.approx(value)
    assert interval.high - interval.low > 0.1
    assert clustered_interval([value], samples=4).high - clustered_interval([value], samples=4).low > 0.5


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 16))
def test_interval_holds_its_mean_and_stays_within_0_and_1(values, samples):
    interval = clustered_interval(values, samples)
    assert -1e-12 <= interval.low <= interval.mean <= interval.high <= 1 + 1e-12
    assert interval.high > interval.low


def test_graded_values_get_the_normal_interval():
    # Mean 1, sample variance 4, three problems: 1 +- 1.96 * sqrt(4 / 3).
    interval = clustered_interval([-1.0, 1.0, 3.0], samples=2)
    assert interval.mean == 1
    assert (interval.low, interval.high) == pytest.approx((1 - 2.2632, 1 + 2.2632), abs=1e-4)


@pytest.mark.parametrize("values", [[], [0.5, math.nan], [math.inf]])
def test_interval_refuses(values):
    with pytest.raises(ValueError, match="at least one unit"):
        clustered_interval(values, samples=1)


def simulated_means(sets, problems, samples):
    """[sets, problems]: right answers of problems whose difficulty is logit-normal(.5, 1.5), and the true mean."""
    random = np.random.default_rng(20)
    grid = np.linspace(-8, 8, 20_001)
    weight = np.exp(-(grid**2) / 2)
    truth = float((weight / (1 + np.exp(-(0.5 + 1.5 * grid)))).sum() / weight.sum())
    chance = 1 / (1 + np.exp(-random.normal(0.5, 1.5, size=(sets, problems))))
    return random.binomial(samples, chance) / samples, truth


def test_the_interval_covers_the_truth_and_one_that_takes_samples_for_problems_does_not():
    values, truth = simulated_means(sets=1000, problems=64, samples=4)
    clustered = [clustered_interval(row, samples=4) for row in values.tolist()]
    naive = [wilson_interval(float(row.mean()), 64 * 4) for row in values]
    assert 0.93 <= np.mean([interval.low <= truth <= interval.high for interval in clustered]) <= 0.97
    assert np.mean([interval.low <= truth <= interval.high for interval in naive]) < 0.88


def test_detectable_difference():
    # (1.95996 + .84162) * sqrt(.5 / 256)
    assert detectable_difference(256) == pytest.approx(0.12381, abs=1e-5)
    assert detectable_difference(64) == pytest.approx(2 * detectable_difference(256))
    assert detectable_difference(256, power=0.9) > detectable_difference(256)


def test_the_detectable_difference_is_seen_in_four_of_five_pairs():
    random = np.random.default_rng(3)
    difference = detectable_difference(256)
    low, high = random.binomial(256, [0.5 - difference / 2, 0.5 + difference / 2], size=(4000, 2)).T / 256
    error = np.sqrt((low * (1 - low) + high * (1 - high)) / 256)
    assert np.mean(np.abs(high - low) > 1.96 * error) == pytest.approx(0.8, abs=0.03)


T_TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 29: 2.045}
"""The .975 quantile by degrees of freedom, as printed in every book of statistics."""


@pytest.mark.parametrize(("degrees", "expected"), T_TABLE.items())
def test_quantiles_of_t_are_those_of_the_table(degrees, expected):
    assert t_quantile(0.975, degrees) == pytest.approx(expected, abs=5e-4)
    assert t_quantile(0.025, degrees) == -t_quantile(0.975, degrees)
    assert t_quantile(0.5, degrees) == 0


def test_one_and_two_degrees_have_a_formula():
    for probability in (0.6, 0.8, 0.95, 0.999):
        assert t_quantile(probability, 1) == pytest.approx(math.tan(math.pi * (probability - 0.5)))
        share = 2 * probability - 1
        assert t_quantile(probability, 2) == pytest.approx(share * math.sqrt(2 / (1 - share**2)))


def test_many_degrees_are_nearly_normal():
    assert t_quantile(0.975, 10_000) == pytest.approx(1.96, abs=1e-3)


@pytest.mark.parametrize(("probability", "degrees"), [(0, 3), (1, 3), (0.975, 0), (math.nan, 3)])
def test_quantiles_of_t_refuse(probability, degrees):
    with pytest.raises(ValueError, match="quantile of t"):
        t_quantile(probability, degrees)


def test_the_interval_of_a_mean_by_hand():
    # Mean .6, sample deviation .1, three values: .6 +- 4.303 * .1 / sqrt(3).
    interval = mean_interval([0.5, 0.6, 0.7])
    assert interval.mean == pytest.approx(0.6)
    assert (interval.low, interval.high) == pytest.approx((0.6 - 0.24841, 0.6 + 0.24841), abs=1e-4)


def test_the_gains_of_the_recorded_control():
    """The figures of docs/results/demo.md, to within the rounding of its gains."""
    interval = mean_interval([-0.034, -0.042, -0.065])
    assert interval.mean == pytest.approx(-0.047, abs=5e-4)
    assert (interval.low, interval.high) == pytest.approx((-0.087, -0.006), abs=2e-3)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8), st.floats(-1, 1))
def test_the_interval_of_a_mean_moves_with_its_values(values, shift):
    plain, moved = mean_interval(values), mean_interval([value + shift for value in values])
    assert (moved.low, moved.high) == pytest.approx((plain.low + shift, plain.high + shift), abs=1e-5)
    assert plain.low <= plain.mean <= plain.high


@pytest.mark.parametrize("values", [[], [0.5], [0.5, math.nan], [0.5, math.inf]])
def test_the_interval_of_a_mean_refuses(values):
    with pytest.raises(ValueError, match="at least two values"):
        mean_interval(values)


def test_equal_values_have_no_spread():
    assert sample_deviation([0.1] * 3) == 0
    assert mean_interval([0.1] * 3).low == mean_interval([0.1] * 3).high


@pytest.mark.parametrize("size", [2, 3, 5])
def test_an_interval_over_few_seeds_covers_the_truth_and_the_normal_one_does_not(size):
    values = np.random.default_rng(size).normal(0.3, 0.1, size=(4000, size))
    half_of_t = t_quantile(0.975, size - 1) * values.std(axis=1, ddof=1) / math.sqrt(size)
    off = np.abs(values.mean(axis=1) - 0.3)
    assert np.mean(off <= half_of_t) == pytest.approx(0.95, abs=0.015)
    assert np.mean(off <= half_of_t * 1.96 / t_quantile(0.975, size - 1)) < 0.9
    ours = mean_interval(values[0].tolist())
    assert ours.high - ours.mean == pytest.approx(half_of_t[0])


@pytest.mark.parametrize(("size", "power"), [(2, 0.73), (3, 0.77), (4, 0.78), (5, 0.79), (10, 0.8)])
def test_the_detectable_mean_is_seen_about_four_times_in_five(size, power):
    values = np.random.default_rng(size).normal(detectable_mean(1.0, size), 1, size=(40_000, size))
    t = values.mean(axis=1) / values.std(axis=1, ddof=1) * math.sqrt(size)
    assert np.mean(np.abs(t) > t_quantile(0.975, size - 1)) == pytest.approx(power, abs=0.012)


def test_the_detectable_mean_grows_with_the_spread_and_shrinks_with_the_seeds():
    assert detectable_mean(0.2, 3) == pytest.approx(2 * detectable_mean(0.1, 3))
    assert detectable_mean(0.1, 5) < detectable_mean(0.1, 3) / 1.5
    with pytest.raises(ValueError, match="degrees"):
        detectable_mean(0.1, 1)
