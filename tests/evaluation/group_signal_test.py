"""The expected share of groups with signal, against closed forms, brute force, integration and simulation."""

import math
from dataclasses import asdict
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earned.evaluation.group_signal import (
    GroupSignal,
    PassCount,
    PassRateModel,
    advice,
    fitted,
    group_signal,
    histogram,
    signal_share,
)
from earned.evaluation.statistics import clustered_interval, jackknife_interval


def counts(*right, scored=8, cluster=None):
    return [PassCount(id=f"p{n}", cluster=cluster, scored=scored, right=each) for n, each in enumerate(right)]


def beta_mean(alpha, beta, function, points=200_000):
    """Return the mean of a function of p ~ Beta(alpha, beta), by the midpoint rule."""
    p = (np.arange(points) + 0.5) / points
    density = np.exp((alpha - 1) * np.log(p) + (beta - 1) * np.log1p(-p))
    return float((density * function(p)).sum() / density.sum())


# Counted


@pytest.mark.parametrize(
    ("scored", "right", "group", "expected"),
    [(4, 1, 2, 1 / 2), (4, 2, 2, 2 / 3), (8, 4, 4, 1 - 2 / 70), (8, 1, 8, 1), (8, 0, 8, 0), (8, 8, 2, 0), (2, 1, 2, 1)],
)
def test_counted_by_hand(scored, right, group, expected):
    assert signal_share(scored, right, group) == pytest.approx(expected)


@given(st.data())
def test_counted_is_the_share_of_subsets_with_both_verdicts(data):
    scored = data.draw(st.integers(2, 9))
    right, group = data.draw(st.integers(0, scored)), data.draw(st.integers(2, scored))
    subsets = list(combinations([True] * right + [False] * (scored - right), group))
    assert signal_share(scored, right, group) == pytest.approx(
        sum(len(set(subset)) == 2 for subset in subsets) / len(subsets)
    )


@given(st.floats(0, 1), st.integers(2, 12), st.data())
def test_counted_is_unbiased(p, scored, data):
    """Over all outcomes of `scored` attempts its mean is 1 - p^G - (1-p)^G, whatever p is."""
    group = data.draw(st.integers(2, scored))
    mean = sum(
        math.comb(scored, right) * p**right * (1 - p) ** (scored - right) * signal_share(scored, right, group)
        for right in range(scored + 1)
    )
    assert mean == pytest.approx(1 - p**group - (1 - p) ** group, abs=1e-9)


@pytest.mark.parametrize(("scored", "right", "group"), [(4, 5, 2), (4, -1, 2), (4, 1, 5), (4, 1, 1)])
def test_counted_refuses(scored, right, group):
    with pytest.raises(ValueError, match="needs 0 <= right"):
        signal_share(scored, right, group)


# The model


@pytest.mark.parametrize(
    ("group", "mean", "expected"),
    [
        *[(8, 0.01, 0.077), (8, 0.05, 0.337), (8, 0.1, 0.570), (8, 0.25, 0.900), (8, 0.5, 0.992), (8, 0.9, 0.570)],
        *[(16, 0.01, 0.149), (16, 0.05, 0.560), (16, 0.1, 0.815), (16, 0.25, 0.990), (16, 0.5, 1.0), (16, 0.9, 0.815)],
    ],
)
def test_problems_that_are_all_alike_by_hand(group, mean, expected):
    assert PassRateModel(mean, 0.0).signal_share(group) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("alpha", [1.0, 2.5, 7.0])
@pytest.mark.parametrize("beta", [1.0, 4.0])
@pytest.mark.parametrize("group", [2, 5, 16, 64])
def test_the_model_against_integration(alpha, beta, group):
    model = PassRateModel(alpha / (alpha + beta), 1 / (alpha + beta + 1))
    expected = beta_mean(alpha, beta, lambda p: 1 - p**group - (1 - p) ** group)
    assert model.signal_share(group) == pytest.approx(expected, abs=1e-5)


def test_a_uniform_pass_rate_by_hand():
    """E[p^G] = 1 / (G + 1), so 1 - 2/9 at G = 8."""
    assert PassRateModel(0.5, 1 / 3).signal_share(8) == pytest.approx(7 / 9)


@given(st.floats(0, 1), st.floats(0, 1))
def test_larger_groups_have_signal_oftener_and_alike_ones_too(mean, correlation):
    shares = [PassRateModel(mean, correlation).signal_share(group) for group in (2, 4, 8, 64)]
    assert all(0 <= share <= 1 for share in shares)
    assert all(after >= before - 1e-12 for before, after in pairwise(shares))
    assert PassRateModel(mean, 0.0).signal_share(8) >= PassRateModel(mean, correlation).signal_share(8) - 1e-12


# The fit


def test_the_fit_by_hand():
    """Pass rates 1/4 and 3/4 in 4 attempts: E[p] = 1/2, E[p^2] = (0 + 6/12) / 2 = 1/4, so r = 1 - .25/.25 = 0."""
    assert fitted(counts(1, 3, scored=4)) == PassRateModel(0.5, 0.0)
    # Right 0, 4 and 2 of 4: E[p] = 1/2, E[p^2] = (0 + 1 + 1/6) / 3 = 7/18, r = 1 - (1/9) / (1/4) = 5/9.
    model = fitted(counts(0, 4, 2, scored=4))
    assert (model.mean, model.correlation) == pytest.approx((0.5, 5 / 9))


@pytest.mark.parametrize(
    ("right", "model", "share"),
    [
        ([0, 0, 0], PassRateModel(0.0, 0.0), 0.0),
        ([8, 8, 8], PassRateModel(1.0, 0.0), 0.0),
        ([0, 8, 8], PassRateModel(2 / 3, 1.0), 0.0),
        ([4, 4, 4], PassRateModel(0.5, 0.0), 1 - 2 * 0.5**16),
        ([0], PassRateModel(0.0, 0.0), 0.0),
    ],
    ids=["never", "always", "each never or always", "less spread than chance", "one problem"],
)
def test_degenerate_fits_have_an_outcome(right, model, share):
    assert fitted(counts(*right)) == model
    signal = group_signal(counts(*right), 16, samples=8)
    assert not signal.counted and signal.share == pytest.approx(share)
    assert 0 <= signal.low <= signal.share <= signal.high <= 1 and signal.high > signal.low


def test_nothing_to_fit_is_refused():
    for nothing in ([], counts(1, scored=1)):
        with pytest.raises(ValueError, match="two scored attempts"):
            fitted(nothing)


@given(st.lists(st.integers(0, 8), min_size=2, max_size=20))
def test_at_two_the_model_says_what_was_counted(right):
    found = counts(*right)
    model, signal = fitted(found), group_signal(found, 2, samples=8)
    spread = model.signal_share(2) == pytest.approx(signal.share)
    assert spread or (model.correlation == 0 and model.signal_share(2) < signal.share)


def test_a_fit_finds_the_distribution_that_made_the_counts():
    random = np.random.default_rng(0)
    p = random.beta(0.5, 1.0, size=20_000)
    found = counts(*random.binomial(8, p).tolist())
    model = fitted(found)
    assert (model.mean, model.correlation) == pytest.approx((1 / 3, 0.4), abs=0.01)


# With unscored attempts, clusters and intervals


def test_problems_with_too_few_scored_attempts_leave_the_count_and_not_the_model():
    found = [PassCount(id="a", scored=8, right=4), PassCount(id="b", scored=3, right=1)]
    assert group_signal(found, 2, 8).share == pytest.approx((signal_share(8, 4, 2) + signal_share(3, 1, 2)) / 2)
    assert group_signal(found, 4, 8).share == pytest.approx(signal_share(8, 4, 4))
    assert group_signal(found, 4, 8).counted and not group_signal(found, 9, 8).counted


def test_wordings_of_one_problem_are_one():
    wordings = [PassCount(id=f"w{n}", cluster="one", scored=8, right=4) for n in range(20)]
    alone = PassCount(id="x", scored=8, right=0)
    for group in (4, 16):
        signal = group_signal([*wordings, alone], group, samples=8)
        assert asdict(signal) == pytest.approx(asdict(group_signal([wordings[0], alone], group, samples=8)))
        assert signal.high - signal.low > 0.5, "two units say little"


def test_the_interval_of_a_mean_is_the_same_by_the_jackknife():
    values = [0.0, 0.25, 0.25, 1.0, 0.75]
    without_each = [(sum(values) - each) / 4 for each in values]
    jackknife, plain = jackknife_interval(0.45, without_each, samples=8), clustered_interval(values, samples=8)
    assert (jackknife.mean, jackknife.low, jackknife.high) == pytest.approx((plain.mean, plain.low, plain.high))


@pytest.mark.parametrize("group", [4, 8, 16, 32])
def test_the_intervals_cover_the_truth(group):
    """300 screenings of 64 problems whose pass rates are Beta(.6, 1.2): 95 % promised, .90 asked for."""
    random = np.random.default_rng(group)
    alpha, beta = 0.6, 1.2
    truth = PassRateModel(alpha / (alpha + beta), 1 / (alpha + beta + 1)).signal_share(group)
    inside = 0
    for _ in range(300):
        found = counts(*random.binomial(8, random.beta(alpha, beta, size=64)).tolist())
        signal = group_signal(found, group, samples=8)
        inside += signal.low <= truth <= signal.high
    assert inside / 300 >= 0.9


def test_a_model_that_is_not_true_can_be_wrong_beyond_its_interval():
    """Half the problems impossible, half a coin toss: no beta, and why what is modelled says so."""
    random = np.random.default_rng(0)
    p = np.where(np.arange(4000) % 2, 0.5, 0.0)
    signal = group_signal(counts(*random.binomial(4, p).tolist(), scored=4), 64, samples=4)
    assert not signal.counted and signal.low > 0.5, "the truth is .5"


# What people see


def test_a_histogram_by_hand():
    found = [*counts(0, 0, 1, 8, 7, 8), PassCount(id="few", scored=7, right=6), PassCount(id="none", scored=0, right=0)]
    bars = histogram(found, samples=8)
    assert [bar.problems for bar in bars] == [2, 1, 0, 0, 0, 0, 0, 2, 2]
    assert [bar.rate for bar in bars] == [n / 8 for n in range(9)]


def test_many_attempts_are_shown_in_tenths_and_the_ends_are_exact():
    bars = histogram(counts(0, 1, 32, 63, 64, scored=64), samples=64)
    assert [bar.problems for bar in bars] == [1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1]


@given(st.lists(st.tuples(st.integers(2, 40), st.integers(0, 40)), max_size=20), st.integers(2, 40))
def test_every_problem_is_in_one_bar(pairs, samples):
    found = [PassCount(id=f"p{n}", scored=s, right=min(r, s)) for n, (s, r) in enumerate(pairs)]
    bars = histogram(found, samples)
    assert sum(bar.problems for bar in bars) == len(found)
    assert bars[0].problems == sum(one.right == 0 for one in found)
    assert bars[-1].problems == sum(one.right == one.scored for one in found)


def signals(*shares, counted=True):
    return [
        GroupSignal(group_size=2 ** (n + 2), share=share, low=0.0, high=1.0, counted=counted)
        for n, share in enumerate(shares)
    ]


@pytest.mark.parametrize(
    ("shares", "never", "always", "wanted", "unwanted"),
    [
        ((0.6, 0.8), 0.1, 0.1, ["group_size = 4 is the smallest", "60%"], ["easier", "harder"]),
        ((0.3, 0.5), 0.1, 0.1, ["group_size = 8 is the smallest", "50%"], ["easier", "harder"]),
        ((0.1, 0.2), 0.7, 0.1, ["none of these", "group_size = 8", "20%", "70%", "easier", "[curriculum]"], ["harder"]),
        ((0.1, 0.2), 0.1, 0.7, ["none of these", "70%", "harder"], ["easier"]),
        ((0.5, 0.6), 0.5, 0.0, ["group_size = 4", "50% of the problems were never solved"], ["harder"]),
        ((0.0, 0.0), 1.0, 0.0, ["none of these", "0%", "100%", "easier"], ["harder"]),
    ],
)
def test_the_advice(shares, never, always, wanted, unwanted):
    sentence = advice(signals(*shares), never, always)
    assert all(word in sentence for word in wanted) and not any(word in sentence for word in unwanted), sentence


def test_advice_says_when_it_is_a_models():
    assert "70% by the model" in advice(signals(0.7, counted=False), 0.0, 0.0)
    assert "by the model" not in advice(signals(0.7), 0.0, 0.0)
