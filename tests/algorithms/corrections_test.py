import math

import pytest
import torch

from earned.algorithms.corrections import (
    effective_sample_size,
    sequence_mask,
    sequence_truncate,
    token_mask,
    token_truncate,
)

ALL = torch.tensor([[True]])
DIFFERENCES_BT = torch.tensor([[0.1, -0.05, 0.25, 0.0]])


@pytest.mark.parametrize(
    ("cap", "expected"),
    [(1.2, [[1.105171, 0.951229, 1.2, 1.0]]), (2.0, [[1.105171, 0.951229, 1.284025, 1.0]])],
)
def test_weights_by_hand(cap, expected):
    weights_BT = token_truncate(DIFFERENCES_BT, torch.zeros(1, 4), ALL, cap)
    torch.testing.assert_close(weights_BT, torch.tensor(expected), atol=1e-6, rtol=0)


def test_equal_logprobs_weigh_exactly_one():
    logprobs_BT = torch.log_softmax(torch.randn(2, 5), -1)
    assert torch.equal(token_truncate(logprobs_BT, logprobs_BT.clone(), ALL, 2.0), torch.ones(2, 5))


def test_weights_carry_no_gradient():
    old_BT = DIFFERENCES_BT.clone().requires_grad_()
    assert not token_truncate(old_BT, torch.zeros(1, 4), ALL, 2.0).requires_grad
    assert (old_BT - 0.0).exp().requires_grad


def test_an_impossible_token_is_capped_and_an_excluded_one_weighs_nothing():
    old_BT = torch.tensor([[-1.0, -float("inf")]])
    sampler_BT = torch.tensor([[-1e4, -1.0]])
    assert token_truncate(old_BT, sampler_BT, ALL, 2.0).tolist() == [[2.0, 0.0]]


def test_weights_bring_the_expectation_back_when_the_cap_is_out_of_reach():
    sampler, trainer = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.6, 0.3, 0.1])
    values = torch.tensor([1.0, 2.0, 4.0])
    weights_BT = token_truncate(trainer.log().unsqueeze(0), sampler.log().unsqueeze(0), ALL, 2.0)
    torch.testing.assert_close((sampler * weights_BT[0] * values).sum(), (trainer * values).sum())
    capped_BT = token_truncate(trainer.log().unsqueeze(0), sampler.log().unsqueeze(0), ALL, 1.1)
    assert (sampler * capped_BT[0] * values).sum() < (trainer * values).sum() - 0.04


@pytest.mark.parametrize(
    ("weights", "share"),
    [([1.0, 1.0, 1.0, 1.0], 1.0), ([3.0, 0.0, 0.0, 0.0], 0.25), ([2.0, 1.0], 0.9), ([0.0, 0.0], 0.0), ([7.0], 1.0)],
)
def test_effective_sample_size_by_hand(weights, share):
    assert effective_sample_size(torch.tensor(weights)).item() == pytest.approx(share)


def test_effective_sample_size_does_not_depend_on_scale():
    weights_N = torch.rand(10)
    torch.testing.assert_close(effective_sample_size(weights_N), effective_sample_size(5 * weights_N))


CORRECTIONS = [token_truncate, sequence_truncate, token_mask, sequence_mask]
TWO = (torch.tensor([[0.25, 0.5], [-1.0, 0.8]]), torch.zeros(2, 2), torch.ones(2, 2, dtype=torch.bool))


@pytest.mark.parametrize(
    ("correction", "expected"),
    [
        (token_truncate, [[1.284025, 1.648721], [0.367879, 2.0]]),
        (sequence_truncate, [[2.0, 2.0], [0.818731, 0.818731]]),
        (token_mask, [[1.284025, 1.648721], [0.0, 0.0]]),
        (sequence_mask, [[0.0, 0.0], [0.818731, 0.818731]]),
    ],
)
def test_two_completions_by_hand(correction, expected):
    torch.testing.assert_close(correction(*TWO, 2.0), torch.tensor(expected), atol=1e-6, rtol=0)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_agreement_weighs_exactly_one_and_carries_no_gradient(correction):
    logprobs_BT = torch.log_softmax(torch.randn(2, 5), -1).requires_grad_()
    weights_BT = correction(logprobs_BT, logprobs_BT.detach().clone(), torch.ones(2, 5, dtype=torch.bool), 2.0)
    assert torch.equal(weights_BT, torch.ones(2, 5)) and not weights_BT.requires_grad


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("elsewhere", [math.nan, math.inf, -math.inf, 200.0, -200.0])
def test_what_is_not_trained_changes_no_weight(correction, elsewhere):
    old_BT, sampler_BT, trained_BT = (torch.cat([values_BT, values_BT[:, :1]], 1) for values_BT in TWO)
    trained_BT[:, 2] = False
    old_BT[:, 2] = elsewhere
    weights_BT = correction(old_BT, sampler_BT, trained_BT, 2.0)
    assert torch.equal(weights_BT[:, :2], correction(*TWO, 2.0)) and weights_BT.isfinite().all()


@pytest.mark.parametrize("correction", [token_truncate, sequence_truncate])
def test_a_weight_without_a_cap_is_still_a_number(correction):
    weights_BT = correction(torch.zeros(1, 3), torch.full((1, 3), -1e3), torch.ones(1, 3, dtype=torch.bool), math.inf)
    assert weights_BT.isfinite().all() and (weights_BT > 1e8).all()
