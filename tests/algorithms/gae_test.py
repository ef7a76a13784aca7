"""Generalised advantages and the value loss, by hand and by their definition."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from earned.algorithms.gae import (
    explained_variance,
    generalized_advantages,
    last_token_rewards,
    value_loss,
    whitened,
)

REWARDS = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
VALUES = torch.tensor([[0.5, 0.6, 0.8]], dtype=torch.float64)
ALL = torch.ones(1, 3, dtype=torch.bool)
NUMBERS = st.floats(-3, 3)


def listed(values_BT):
    return values_BT[0].tolist()


@pytest.mark.parametrize(
    ("gamma", "gae_lambda", "advantages", "returns"),
    [
        (1.0, 1.0, [0.5, 0.4, 0.2], [1.0, 1.0, 1.0]),
        (1.0, 0.95, [0.4705, 0.39, 0.2], [0.9705, 0.99, 1.0]),
        (1.0, 0.0, [0.1, 0.2, 0.2], [0.6, 0.8, 1.0]),
        (0.99, 0.95, [0.451484, 0.3801, 0.2], [0.951484, 0.9801, 1.0]),
    ],
)
def test_hand_numbers(gamma, gae_lambda, advantages, returns):
    found = generalized_advantages(REWARDS, VALUES, ALL, gamma, gae_lambda)
    assert listed(found[0]) == pytest.approx(advantages, abs=1e-6)
    assert listed(found[1]) == pytest.approx(returns, abs=1e-6)


@given(
    rewards=st.lists(NUMBERS, min_size=5, max_size=5),
    values=st.lists(NUMBERS, min_size=5, max_size=5),
    gamma=st.floats(0, 1),
    gae_lambda=st.floats(0, 1),
)
def test_the_recursion_is_the_sum_of_its_definition(rewards, values, gamma, gae_lambda):
    after = [*values[1:], 0.0]
    deltas = [r + gamma * later - now for r, now, later in zip(rewards, values, after, strict=True)]
    expected = [sum((gamma * gae_lambda) ** n * deltas[t + n] for n in range(5 - t)) for t in range(5)]
    trained_BT = torch.ones(1, 5, dtype=torch.bool)
    advantages_BT, _ = generalized_advantages(
        torch.tensor([rewards], dtype=torch.float64),
        torch.tensor([values], dtype=torch.float64),
        trained_BT,
        gamma,
        gae_lambda,
    )
    assert listed(advantages_BT) == pytest.approx(expected, abs=1e-9)


def test_nothing_comes_after_the_last_trained_token():
    """A completion that was cut off is treated as one that ended: no forecast stands in for what was not written."""
    advantages_BT, returns_BT = generalized_advantages(REWARDS, VALUES, ALL, 1.0, 1.0)
    assert returns_BT[0, -1] == 1.0 and advantages_BT[0, -1] == pytest.approx(0.2)


def test_padding_and_tokens_of_a_tool_change_nothing():
    width = torch.nn.functional.pad
    rewards, values, trained = width(REWARDS, (0, 7)), width(VALUES, (0, 7), value=9.0), width(ALL, (0, 7))
    plain = generalized_advantages(REWARDS, VALUES, ALL, 0.9, 0.8)
    for mine, padded in zip(plain, generalized_advantages(rewards, values, trained, 0.9, 0.8), strict=True):
        assert torch.equal(padded[:, :3], mine) and not padded[:, 3:].any()
    places = [0, 3, 4]
    spread = [torch.full((1, 5), 9.0, dtype=torch.float64), torch.full((1, 5), 9.0, dtype=torch.float64)]
    trained = torch.zeros(1, 5, dtype=torch.bool)
    trained[:, places] = True
    spread[0][:, places], spread[1][:, places] = REWARDS, VALUES
    for mine, between in zip(plain, generalized_advantages(*spread, trained, 0.9, 0.8), strict=True):
        assert torch.equal(between[:, places], mine) and not between[:, [1, 2]].any()


@given(values=st.lists(NUMBERS, min_size=3, max_size=3))
def test_at_lambda_1_the_returns_do_not_depend_on_the_values(values):
    values_BT = torch.tensor([values], dtype=torch.float64)
    _, returns_BT = generalized_advantages(REWARDS, values_BT, ALL, 1.0, 1.0)
    assert listed(returns_BT) == pytest.approx([1.0] * 3)


def test_a_constant_forecast_is_a_baseline():
    for forecast in (0.0, 0.3):
        values_BT = torch.full((1, 3), forecast, dtype=torch.float64)
        advantages_BT, _ = generalized_advantages(REWARDS, values_BT, ALL, 1.0, 1.0)
        assert listed(advantages_BT) == pytest.approx([1.0 - forecast] * 3)


def test_the_reward_falls_on_the_last_trained_token():
    trained_BT = torch.tensor([[True, False, True, False], [True] * 4, [False] * 4])
    rewards_BT = last_token_rewards(torch.tensor([2.0, -1.0, 5.0]), trained_BT)
    assert rewards_BT.tolist() == [[0, 0, 2, 0], [0, 0, 0, -1], [0, 0, 0, 0]]


def test_whitening_flips_a_sign():
    advantages_BT, _ = generalized_advantages(REWARDS, VALUES, ALL, 1.0, 0.95)
    assert (advantages_BT > 0).all()
    assert listed(whitened(advantages_BT, ALL)) == pytest.approx([1.03168, 0.32185, -1.35353], abs=1e-5)


def test_whitening_looks_at_trained_tokens_only_and_leaves_equal_ones_at_0():
    trained_BT = torch.tensor([[True, True, False]])
    assert listed(whitened(torch.tensor([[1.0, 3.0, 99.0]]), trained_BT)) == [-1.0, 1.0, 0.0]
    for constant in (0.1, 0.7, -1.3, 1 / 3):
        assert not whitened(torch.full((2, 7), constant), torch.ones(2, 7, dtype=torch.bool)).any()


def test_a_clipped_value_loss_has_no_gradient_once_the_value_moved_far_enough():
    old_BT, returns_BT = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]])
    values_BT = torch.tensor([[0.9, 0.9]], requires_grad=True)
    losses_BT = value_loss(values_BT, old_BT, returns_BT, clip=0.2)
    assert listed(losses_BT.detach()) == pytest.approx([0.3**2 / 2, 0.9**2 / 2])
    losses_BT.sum().backward()
    assert listed(values_BT.grad) == pytest.approx([0.0, 0.9]), "the second moved away from its return"
    assert listed(value_loss(values_BT.detach(), old_BT, returns_BT, clip=None)) == pytest.approx([0.005, 0.405])


def test_explained_variance():
    returns_N = torch.tensor([0.0, 0.0, 1.0, 1.0])
    assert explained_variance(returns_N, returns_N) == 1
    assert explained_variance(torch.full((4,), 0.5), returns_N) == 0
    assert explained_variance(1 - returns_N, returns_N) == -3
    assert explained_variance(returns_N, torch.ones(4)).isnan()
