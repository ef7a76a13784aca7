import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from earned.algorithms.surrogates import LOG_RATIO_LIMIT, clipped_tokens, policy_gradient, ppo_clip


def ppo_at(ratio: float, advantage: float, low: float = 0.2, high: float = 0.2) -> tuple[float, float, bool]:
    """Return the objective of one token, its slope in the ratio, and whether the token counts as clipped."""
    logprob_BT = torch.tensor([[math.log(ratio)]], dtype=torch.float64, requires_grad=True)
    advantages_BT = torch.full((1, 1), advantage, dtype=torch.float64)
    loss_BT, clipped_BT = ppo_clip(logprob_BT, torch.zeros_like(advantages_BT), advantages_BT, low, high)
    (slope,) = torch.autograd.grad(-loss_BT.sum(), logprob_BT)
    return -loss_BT.item(), slope.item() / ratio, bool(clipped_BT)


@pytest.mark.parametrize(
    ("ratio", "advantage", "high", "objective", "slope"),
    [
        (1.3, 1, 0.2, 1.2, 0),
        (1.3, -1, 0.2, -1.3, -1),
        (0.7, 1, 0.2, 0.7, 1),
        (0.7, -1, 0.2, -0.8, 0),
        (1.25, 1, 0.2, 1.2, 0),
        (1.25, 1, 0.28, 1.25, 1),
        (5.0, -1, 0.2, -5.0, -1),
        (1.0, 1, 0.2, 1.0, 1),
        (1.0, -1, 0.2, -1.0, -1),
    ],
)
def test_clip_by_hand(ratio, advantage, high, objective, slope):
    expected = (pytest.approx(objective), pytest.approx(slope), slope == 0)
    assert ppo_at(ratio, advantage, high=high) == expected


def test_probability_from_20_to_30_percent_stops_counting_at_24():
    assert ppo_at(0.30 / 0.20, 1) == (pytest.approx(1.2), 0, True)
    assert ppo_at(0.2401 / 0.20, 1)[2] and not ppo_at(0.2399 / 0.20, 1)[2]


def test_ratios_are_those_of_the_log_differences():
    differences_BT = torch.tensor([[0.1, -0.05, 0.25, 0.0]])
    loss_BT, _ = ppo_clip(differences_BT, torch.zeros(1, 4), torch.ones(1, 1), 1.0, 10.0)
    expected = torch.tensor([[1.105171, 0.951229, 1.284025, 1.0]])
    torch.testing.assert_close(-loss_BT, expected, atol=1e-6, rtol=0)


def test_on_policy_loss_is_minus_the_advantage_exactly():
    logprobs_BT = torch.log_softmax(torch.randn(4, 7), -1)
    advantages_BT = torch.randn(4, 1)
    loss_BT, clipped_BT = ppo_clip(logprobs_BT, logprobs_BT.clone(), advantages_BT, 0.2, 0.2)
    assert torch.equal(loss_BT, -advantages_BT.expand(4, 7))
    assert not clipped_BT.any()


def test_on_policy_gradient_is_the_policy_gradient():
    old_BT = torch.log_softmax(torch.randn(3, 5, dtype=torch.float64), -1)
    advantages_BT = torch.randn(3, 1, dtype=torch.float64)
    for clip in (0.2, 1e6):
        assert torch.equal(
            gradient(ppo_clip, old_BT, old_BT, advantages_BT, clip, clip),
            gradient(policy_gradient, old_BT, old_BT, advantages_BT, clip, clip),
        )


def test_with_the_clip_wide_open_the_gradient_is_the_policy_gradient_times_the_ratio():
    old_BT = torch.log_softmax(torch.randn(3, 5, dtype=torch.float64), -1)
    policy_BT = old_BT + torch.randn(3, 5, dtype=torch.float64)
    advantages_BT = torch.randn(3, 1, dtype=torch.float64)
    corrected = gradient(policy_gradient, policy_BT, old_BT, advantages_BT, 0.2, 0.2) * (policy_BT - old_BT).exp()
    torch.testing.assert_close(gradient(ppo_clip, policy_BT, old_BT, advantages_BT, 1e6, 1e6), corrected)
    assert not torch.allclose(gradient(ppo_clip, policy_BT, old_BT, advantages_BT, 0.2, 0.2), corrected)


def gradient(surrogate, policy_BT: Tensor, *others: Tensor | float) -> Tensor:
    leaf_BT = policy_BT.clone().requires_grad_()
    return torch.autograd.grad(surrogate(leaf_BT, *others).loss_BT.sum(), leaf_BT)[0]


AWAY_FROM_KINKS = st.floats(-1, 1).filter(
    lambda log_ratio: min(abs(log_ratio - math.log(0.8)), abs(log_ratio - math.log(1.28))) > 1e-3
)


@pytest.mark.parametrize("surrogate", [policy_gradient, ppo_clip])
@given(log_ratio=AWAY_FROM_KINKS, advantage=st.floats(-3, 3), old=st.floats(-8, -0.01))
def test_gradients_are_those_of_finite_differences(surrogate, log_ratio, advantage, old):
    def float64(value: float) -> Tensor:
        return torch.full((1, 1), value, dtype=torch.float64)

    others = (float64(old), float64(advantage), 0.2, 0.28)
    policy, step = old + log_ratio, 1e-6
    above, below = (surrogate(float64(policy + shift), *others).loss_BT.item() for shift in (step, -step))
    slope = gradient(surrogate, float64(policy), *others).item()
    assert slope == pytest.approx((above - below) / (2 * step), abs=1e-6)


@given(log_ratio=st.floats(-30, 30), advantage=st.sampled_from([-2.0, -0.5, 0.5, 2.0]))
def test_clipped_is_exactly_where_there_is_no_gradient(log_ratio, advantage):
    logprob_BT = torch.tensor([[log_ratio]], dtype=torch.float64, requires_grad=True)
    advantages_BT = torch.full((1, 1), advantage, dtype=torch.float64)
    loss_BT, clipped_BT = ppo_clip(logprob_BT, torch.zeros_like(advantages_BT), advantages_BT, 0.2, 0.28)
    (slope,) = torch.autograd.grad(loss_BT.sum(), logprob_BT)
    assert bool(clipped_BT) == (slope.item() == 0)


def test_without_an_advantage_nothing_counts_as_clipped():
    far_BT = torch.tensor([[3.0, -3.0, 40.0]])
    assert not clipped_tokens(far_BT, torch.zeros(1, 3), torch.zeros(1, 1), 0.2, 0.2).any()


def test_policy_gradient_clips_nothing_and_reads_no_old_logprobs():
    policy_BT = torch.tensor([[-1.0, -50.0]])
    for old_BT in (torch.zeros(1, 2), torch.full((1, 2), float("nan"))):
        loss_BT, clipped_BT = policy_gradient(policy_BT, old_BT, torch.tensor([[2.0]]), 0.2, 0.2)
        assert loss_BT.tolist() == [[2.0, 100.0]]
        assert not clipped_BT.any()


@pytest.mark.parametrize("difference", [-1e4, -100.0, 100.0, 1e4])
def test_no_log_ratio_overflows(difference):
    policy_BT = torch.full((1, 1), difference, requires_grad=True)
    assert math.exp(LOG_RATIO_LIMIT) < torch.finfo(torch.float32).max
    for advantage in (-1.0, 1.0):
        loss_BT, clipped_BT = ppo_clip(policy_BT, torch.zeros(1, 1), torch.full((1, 1), advantage), 0.2, 0.2)
        (slope,) = torch.autograd.grad(loss_BT.sum(), policy_BT)
        assert loss_BT.isfinite() and slope.isfinite() and clipped_BT.all()
    unheld = -(policy_BT.exp() * -1.0)
    assert not unheld.isfinite() or difference < 0


P = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)


@pytest.mark.parametrize("baseline", [0.0, 0.7])
@pytest.mark.parametrize("surrogate", [policy_gradient, ppo_clip])
def test_expected_gradient_of_a_policy_over_three_actions(surrogate, baseline):
    logits = P.log().requires_grad_()
    logprobs_BT = torch.log_softmax(logits, -1).unsqueeze(1)
    advantages_BT = torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64) - baseline
    loss_BT, _ = surrogate(logprobs_BT, logprobs_BT.detach(), advantages_BT, 0.2, 0.2)
    (slope,) = torch.autograd.grad((P.unsqueeze(1) * loss_BT).sum(), logits)
    torch.testing.assert_close(-slope, torch.tensor([0.21, -0.14, -0.07], dtype=torch.float64))
