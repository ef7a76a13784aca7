"""The contributions of the parts are the advantage, taken apart."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from earned.algorithms.contributions import SUMS, contributions
from earned.algorithms.named import ALGORITHMS
from earned.algorithms.parts import ADVANTAGES

NOT_A_SUM = {"mean_relative", "best_of_group"}
"""Advantages that are no sum over the parts of the reward; nothing is recorded for them."""


def of(name, parts_KPG, scored_PG=None):
    parts_KPG = torch.tensor(parts_KPG, dtype=torch.float64)
    scored_PG = torch.ones_like(parts_KPG[0], dtype=torch.bool) if scored_PG is None else torch.tensor(scored_PG)
    return contributions(parts_KPG, parts_KPG.sum(0), scored_PG, SUMS[ADVANTAGES[name]])


def test_every_advantage_is_known_to_be_a_sum_or_not():
    assert {name for name, advantage in ADVANTAGES.items() if advantage not in SUMS} == NOT_A_SUM
    assert {row.advantage for row in ALGORITHMS.values()} <= {*SUMS, *(ADVANTAGES[name] for name in NOT_A_SUM)}


def test_by_hand():
    answer, form = [[1.0, 0.0, 0.0, 1.0]], [[0.5, 0.5, 0.0, 0.0]]
    assert of("group_centered", [answer, form]).tolist() == [[[0.5, -0.5, -0.5, 0.5]], [[0.25, 0.25, -0.25, -0.25]]]
    assert of("plain_reward", [answer, form]).tolist() == [answer, form]
    assert of("leave_one_out", [answer, form])[1, 0].tolist() == pytest.approx([1 / 3, 1 / 3, -1 / 3, -1 / 3])
    deviation = 0.3125**0.5
    assert of("group_relative", [answer, form])[0, 0].tolist() == pytest.approx(
        [0.5 / deviation, -0.5 / deviation, -0.5 / deviation, 0.5 / deviation]
    )


def test_parts_that_cancel_each_other_show_unless_their_own_deviation_divides():
    pair = [[[1.0, 0.0]], [[0.0, 1.0]]]
    assert of("group_centered", pair).tolist() == [[[0.5, -0.5]], [[-0.5, 0.5]]]
    assert of("group_relative", pair).tolist() == [[[0.0, 0.0]], [[0.0, 0.0]]]
    beside = [[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]]
    assert of("batch_deviation", beside)[:, 0].abs().min() > 0


def test_an_unscored_attempt_gets_nothing_and_moves_nothing():
    for name in set(ADVANTAGES) - NOT_A_SUM:
        with_it = of(name, [[[1.0, 9.0, 0.0]], [[0.0, 9.0, 0.5]]], [[True, False, True]])
        without = of(name, [[[1.0, 0.0]], [[0.0, 0.5]]])
        assert with_it[:, :, 1].tolist() == [[0.0], [0.0]], name
        assert with_it[:, :, ::2].tolist() == without.tolist(), name


GRID = st.integers(-20, 20).map(lambda tenths: tenths / 10)


@pytest.mark.parametrize("name", sorted(set(ADVANTAGES) - NOT_A_SUM))
@given(data=st.data())
def test_they_add_up_to_the_advantage(name, data):
    parts, problems, samples = (data.draw(st.integers(1, 4)) for _ in range(3))
    count = problems * samples
    values = data.draw(st.lists(GRID, min_size=parts * count, max_size=parts * count))
    scored = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    parts_KPG = torch.tensor(values, dtype=torch.float64).view(parts, problems, samples)
    scored_PG = torch.tensor(scored).view(problems, samples)
    # As a score does: sums that differ by rounding alone are equal.
    rewards_PG = parts_KPG.sum(0).mul(10).round().div(10)
    shares_KPG = contributions(parts_KPG, rewards_PG, scored_PG, SUMS[ADVANTAGES[name]])
    assert (shares_KPG.sum(0) - ADVANTAGES[name](rewards_PG, scored_PG)).abs().max() < 1e-9
