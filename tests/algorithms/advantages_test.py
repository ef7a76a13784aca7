import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from earned.algorithms.advantages import (
    batch_deviation,
    batch_mean_baseline,
    batch_relative,
    best_of_group,
    centered_deviation,
    group_centered,
    group_relative,
    group_relative_sample,
    leave_one_out,
    mean_relative,
    plain_reward,
)

OWN_GROUP_ONLY = [
    leave_one_out,
    group_centered,
    group_relative,
    group_relative_sample,
    mean_relative,
    best_of_group,
]
GROUP = [*OWN_GROUP_ONLY, batch_deviation, centered_deviation]
BATCH_BASELINE = [batch_mean_baseline, batch_relative]
ALL = [plain_reward, *BATCH_BASELINE, *GROUP]

ONE_OF_FOUR = [1.0, 0.0, 0.0, 0.0]
THREE_OF_EIGHT = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]

WORKED = [
    (plain_reward, [ONE_OF_FOUR], [ONE_OF_FOUR]),
    (leave_one_out, [ONE_OF_FOUR], [[1.0, -1 / 3, -1 / 3, -1 / 3]]),
    (group_centered, [ONE_OF_FOUR], [[0.75, -0.25, -0.25, -0.25]]),
    (group_relative, [ONE_OF_FOUR], [[1.732051, -0.57735, -0.57735, -0.57735]]),
    (group_relative, [[1.0, 0.0, 1.0, 0.0]], [[1.0, -1.0, 1.0, -1.0]]),
    (group_relative, [[1.0, 0.0, 0.0, 1.0]], [[1.0, -1.0, -1.0, 1.0]]),
    (group_relative_sample, [ONE_OF_FOUR], [[1.5, -0.5, -0.5, -0.5]]),
    (leave_one_out, [THREE_OF_EIGHT], [[0.714286] * 3 + [-0.428571] * 5]),
    (group_centered, [THREE_OF_EIGHT], [[0.625] * 3 + [-0.375] * 5]),
    (group_relative, [THREE_OF_EIGHT], [[1.290994] * 3 + [-0.774597] * 5]),
    (group_relative_sample, [THREE_OF_EIGHT], [[1.207615] * 3 + [-0.724569] * 5]),
    # Two attempts: the deviation is half of, or 1/sqrt(2) of, their distance.
    (group_relative, [[3.0, 1.0]], [[1.0, -1.0]]),
    (group_relative_sample, [[3.0, 1.0]], [[0.707107, -0.707107]]),
    (mean_relative, [ONE_OF_FOUR], [[3.0, -1.0, -1.0, -1.0]]),
    (mean_relative, [THREE_OF_EIGHT], [[1.666667] * 3 + [-1.0] * 5]),
    (best_of_group, [ONE_OF_FOUR], [ONE_OF_FOUR]),
    (best_of_group, [[0.5, -1.0, 0.5, 0.25]], [[1.0, 0.0, 1.0, 0.0]]),
]


@pytest.mark.parametrize(("advantage", "rewards", "expected"), WORKED)
def test_worked_numbers(advantage, rewards, expected):
    torch.testing.assert_close(advantage(torch.tensor(rewards)), torch.tensor(expected), atol=1e-6, rtol=0)


HARD_AND_EASY = [[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("advantage", "expected"),
    [
        (batch_mean_baseline, [[0.5, -0.5, -0.5, -0.5], [0.5, 0.5, 0.5, -0.5]]),
        (group_centered, [[0.75, -0.25, -0.25, -0.25], [0.25, 0.25, 0.25, -0.75]]),
        (group_relative, [[1.732051, -0.57735, -0.57735, -0.57735], [0.57735, 0.57735, 0.57735, -1.732051]]),
        (batch_deviation, [[1.5, -0.5, -0.5, -0.5], [0.5, 0.5, 0.5, -1.5]]),
        (batch_relative, [[1.0, -1.0, -1.0, -1.0], [1.0, 1.0, 1.0, -1.0]]),
        (centered_deviation, [[1.732051, -0.57735, -0.57735, -0.57735], [0.57735, 0.57735, 0.57735, -1.732051]]),
        (mean_relative, [[3.0, -1.0, -1.0, -1.0], [1 / 3, 1 / 3, 1 / 3, -1.0]]),
        (best_of_group, HARD_AND_EASY),
    ],
)
def test_two_groups(advantage, expected):
    torch.testing.assert_close(advantage(torch.tensor(HARD_AND_EASY)), torch.tensor(expected), atol=1e-6, rtol=0)


def test_batch_and_group_deviation_differ_when_the_spreads_do():
    rewards_PG = torch.tensor([[0.0, 2.0], [0.0, 4.0]])
    batch = math.sqrt((1.5**2 + 0.5**2 + 1.5**2 + 2.5**2) / 4)
    assert group_centered(rewards_PG).tolist() == [[-1.0, 1.0], [-2.0, 2.0]]
    assert group_relative(rewards_PG).tolist() == [[-1.0, 1.0], [-1.0, 1.0]]
    torch.testing.assert_close(batch_deviation(rewards_PG), torch.tensor([[-1.0, 1.0], [-2.0, 2.0]]) / batch)
    centered = math.sqrt((1 + 1 + 4 + 4) / 4)
    torch.testing.assert_close(centered_deviation(rewards_PG), torch.tensor([[-1.0, 1.0], [-2.0, 2.0]]) / centered)


def test_centered_is_leave_one_out_times_three_quarters_at_four():
    rewards_PG = torch.tensor([ONE_OF_FOUR, [0.3, 0.1, 0.9, 0.2]])
    torch.testing.assert_close(group_centered(rewards_PG), 0.75 * leave_one_out(rewards_PG))


FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
REWARD = st.integers(-200, 200).map(lambda hundredths: hundredths / 100)


@st.composite
def reward_matrices(draw):
    problems, samples = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    row = st.lists(REWARD, min_size=samples, max_size=samples)
    return torch.tensor(draw(st.lists(row, min_size=problems, max_size=problems)))


@st.composite
def scored_matrices(draw):
    rewards_PG = draw(reward_matrices())
    count = rewards_PG.numel()
    scored = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return rewards_PG, torch.tensor(scored).reshape(rewards_PG.shape)


@pytest.mark.parametrize("advantage", GROUP)
@given(value=FINITE, samples=st.integers(1, 16))
def test_equal_rewards_give_exactly_zero(advantage, value, samples):
    rewards_PG = torch.full((2, samples), value)
    assert torch.equal(advantage(rewards_PG), torch.zeros_like(rewards_PG))


@pytest.mark.parametrize("advantage", GROUP)
@pytest.mark.parametrize(("value", "samples"), [(0.1, 4), (0.4, 8), (0.95, 7), (0.3, 12)])
def test_equal_group_beside_a_mixed_one_is_exactly_zero(advantage, value, samples):
    mixed = torch.linspace(0, 1, samples)
    advantages_PG = advantage(torch.stack([torch.full((samples,), value), mixed]))
    assert torch.equal(advantages_PG[0], torch.zeros(samples))
    assert advantages_PG[1].abs().min() < 2 and advantages_PG[1].abs().max() > 0.4


def test_dividing_by_a_tiny_deviation_would_not_give_zero():
    def naive(rewards_PG: Tensor) -> Tensor:
        centered_PG = rewards_PG - rewards_PG.mean(1, keepdim=True)
        return centered_PG / centered_PG.square().mean(1, keepdim=True).sqrt()

    wrong = [
        (tenth, samples)
        for tenth, samples in product(range(1, 10), range(2, 17))
        if naive(torch.full((1, samples), tenth / 10)).abs().nan_to_num().max() > 0.5
    ]
    assert wrong, "equal rewards that the plain formula takes for a signal"
    for tenth, samples in wrong:
        assert not group_relative(torch.full((1, samples), tenth / 10)).any()


def test_groups_that_differ_a_little_are_kept():
    rewards_PG = torch.tensor([[0.4, 0.4, 0.4, 0.4], [0.39, 0.41, 0.39, 0.41]])
    torch.testing.assert_close(group_relative(rewards_PG), torch.tensor([[0.0] * 4, [-1.0, 1.0, -1.0, 1.0]]))


def test_one_different_among_equal_ones_is_bounded():
    rewards_PG = torch.tensor([[0.0] + [0.95] * 7])
    expected = torch.tensor([[-math.sqrt(7)] + [1 / math.sqrt(7)] * 7])
    torch.testing.assert_close(group_relative(rewards_PG), expected)


def test_a_reward_below_zero_is_no_success():
    below = torch.tensor([[1.0, 0.0, -1.0, -1.0], [0.0, -1.0, -2.0, -3.0]])
    none = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    assert torch.equal(mean_relative(below), mean_relative(none))
    cancelling = torch.tensor([[0.1, 0.2, -0.3]], dtype=torch.float64)
    assert abs(cancelling.mean()) < 1e-16, "dividing by their mean would make advantages of 1e16"
    torch.testing.assert_close(mean_relative(cancelling), torch.tensor([[0.0, 1.0, -1.0]], dtype=torch.float64))


@given(scored=scored_matrices())
def test_advantages_over_the_mean_are_bounded_by_the_size_of_the_group(scored):
    advantages_PG = mean_relative(*scored)
    assert advantages_PG.min() >= -1 - 1e-5
    assert advantages_PG.max() <= max(0, advantages_PG.shape[1] - 1) + 1e-4


@given(scored=scored_matrices())
def test_only_the_best_are_imitated_and_only_if_they_beat_a_sibling(scored):
    for advantages_G, rewards_G, scored_G in zip(best_of_group(*scored), *scored, strict=True):
        values = rewards_G[scored_G].tolist()
        best = max(values, default=0.0)
        expected = [float(value == best and min(values) < best) for value in values]
        assert advantages_G[scored_G].tolist() == expected


def test_an_equal_group_weighs_on_the_deviation_of_the_others():
    alone, beside = torch.tensor([[1.0, -1.0]]), torch.tensor([[1.0, -1.0], [0.3, 0.3]])
    assert centered_deviation(alone).tolist() == [[1.0, -1.0]]
    torch.testing.assert_close(centered_deviation(beside), torch.tensor([[2**0.5, -(2**0.5)], [0.0, 0.0]]))


def test_plain_reward_and_batch_baseline_do_not_vanish_for_equal_groups():
    rewards_PG = torch.tensor([[1.0, 1.0], [0.0, 0.0]])
    assert plain_reward(rewards_PG).tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert batch_mean_baseline(rewards_PG).tolist() == [[0.5, 0.5], [-0.5, -0.5]]
    assert batch_relative(rewards_PG).tolist() == [[1.0, 1.0], [-1.0, -1.0]]


@pytest.mark.parametrize("advantage", BATCH_BASELINE)
@pytest.mark.parametrize("value", [0.1, 0.3, -0.7, 1e16])
def test_a_batch_of_equal_rewards_gives_exactly_zero(advantage, value):
    assert torch.equal(advantage(torch.full((3, 7), value)), torch.zeros(3, 7))


@pytest.mark.parametrize("advantage", [advantage for advantage in GROUP if advantage is not best_of_group])
@given(scored=scored_matrices())
def test_mean_of_every_group_is_zero(advantage, scored):
    advantages_PG = advantage(*scored)
    torch.testing.assert_close(advantages_PG.sum(1), torch.zeros(len(advantages_PG)), atol=1e-4, rtol=0)


@pytest.mark.parametrize("advantage", BATCH_BASELINE)
@given(scored=scored_matrices())
def test_mean_of_the_batch_is_zero_with_the_batch_baseline(advantage, scored):
    assert abs(advantage(*scored).sum()) < 1e-4


@pytest.mark.parametrize("advantage", [*BATCH_BASELINE, *(other for other in GROUP if other is not mean_relative)])
@given(scored=scored_matrices(), constant=st.integers(-8, 8))
def test_a_constant_changes_nothing(advantage, scored, constant):
    rewards_PG, scored_PG = scored
    shifted = advantage(rewards_PG + constant, scored_PG)
    torch.testing.assert_close(shifted, advantage(rewards_PG, scored_PG), atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize("advantage", GROUP)
@given(rewards_P1=st.lists(REWARD, min_size=3, max_size=3))
def test_a_constant_of_its_own_for_every_problem_does_not_mix(advantage, rewards_P1):
    rewards_PG = torch.tensor(rewards_P1).unsqueeze(1).expand(3, 5)
    assert torch.equal(advantage(rewards_PG), torch.zeros(3, 5))


@pytest.mark.parametrize("advantage", ALL)
@given(scored=scored_matrices(), random=st.randoms(use_true_random=False))
def test_the_order_of_problems_and_attempts_does_not_matter(advantage, scored, random):
    rewards_PG, scored_PG = scored
    problems, samples = rewards_PG.shape
    rows, columns = random.sample(range(problems), problems), random.sample(range(samples), samples)
    shuffled = advantage(rewards_PG[rows][:, columns], scored_PG[rows][:, columns])
    torch.testing.assert_close(shuffled, advantage(rewards_PG, scored_PG)[rows][:, columns], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("advantage", OWN_GROUP_ONLY)
@given(scored=scored_matrices())
def test_uneven_groups_are_as_if_each_were_alone(advantage, scored):
    rewards_PG, scored_PG = scored
    advantages_PG = advantage(rewards_PG, scored_PG)
    for together_G, rewards_G, scored_G in zip(advantages_PG, rewards_PG, scored_PG, strict=True):
        alone_1G = advantage(rewards_G[scored_G].unsqueeze(0)) if scored_G.any() else torch.zeros(1, 0)
        torch.testing.assert_close(together_G[scored_G], alone_1G[0], atol=1e-5, rtol=1e-5)


def test_groups_of_four_three_and_five():
    rewards_PG = torch.tensor([[1.0, 0, 0, 0, 9], [1, 0, 0, 9, 9], [1, 1, 0, 0, 0]])
    scored_PG = torch.arange(5) < torch.tensor([[4], [3], [5]])
    expected = torch.tensor(
        [[3 / 4, -1 / 4, -1 / 4, -1 / 4, 0], [2 / 3, -1 / 3, -1 / 3, 0, 0], [3 / 5, 3 / 5, -2 / 5, -2 / 5, -2 / 5]]
    )
    torch.testing.assert_close(group_centered(rewards_PG, scored_PG), expected)
    deviation = rewards_PG[scored_PG].std(correction=0)
    torch.testing.assert_close(batch_deviation(rewards_PG, scored_PG), expected / deviation)


@pytest.mark.parametrize("advantage", ALL)
@pytest.mark.parametrize("unscored", [float("nan"), float("inf"), -float("inf"), 1e30])
def test_unscored_attempts_get_zero_and_touch_nobody(advantage, unscored):
    rewards_PG = torch.tensor([[1.0, unscored, 0.0], [0.5, 0.25, 0.0]])
    scored_PG = torch.tensor([[True, False, True], [True, True, True]])
    zeroed_PG = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.25, 0.0]])
    advantages_PG = advantage(rewards_PG, scored_PG)
    assert advantages_PG[0, 1] == 0
    assert torch.equal(advantages_PG, advantage(zeroed_PG, scored_PG))
    moved = not torch.equal(advantage(zeroed_PG, scored_PG), advantage(zeroed_PG))
    assert moved or advantage in (plain_reward, best_of_group), "a reward of 0 in its place would have counted"


@pytest.mark.parametrize("advantage", GROUP)
def test_one_or_no_scored_attempt_gives_zero(advantage):
    rewards_PG = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    scored_PG = torch.tensor([[True, False], [False, False], [True, True]])
    advantages_PG = advantage(rewards_PG, scored_PG)
    assert torch.equal(advantages_PG[:2], torch.zeros(2, 2))
    assert advantages_PG[2, 0] > 0 > advantages_PG[2, 1] or advantages_PG[2].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("advantage", ALL)
def test_nothing_scored_gives_zero(advantage):
    advantages_PG = advantage(torch.ones(2, 3), torch.zeros(2, 3, dtype=torch.bool))
    assert torch.equal(advantages_PG, torch.zeros(2, 3))


@given(scored=scored_matrices())
def test_deviations_bound_the_advantage(scored):
    rewards_PG, scored_PG = scored
    bound = math.sqrt(max(1, rewards_PG.shape[1] - 1)) + 1e-4
    assert group_relative(rewards_PG, scored_PG).abs().max() <= bound
    assert group_relative_sample(rewards_PG, scored_PG).abs().max() <= bound


@pytest.mark.parametrize("advantage", ALL)
def test_precision_and_shape_are_kept(advantage):
    for dtype in (torch.float32, torch.float64):
        advantages_PG = advantage(torch.rand(3, 4, dtype=dtype))
        assert advantages_PG.dtype == dtype and advantages_PG.shape == (3, 4)
