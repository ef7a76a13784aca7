import pytest
import torch

from earned.algorithms.corrections import effective_sample_size, truncated_importance_weights

DIFFERENCES_BT = torch.tensor([[0.1, -0.05, 0.25, 0.0]])


@pytest.mark.parametrize(
    ("cap", "expected"),
    [(1.2, [[1.105171, 0.951229, 1.2, 1.0]]), (2.0, [[1.105171, 0.951229, 1.284025, 1.0]])],
)
def test_weights_by_hand(cap, expected):
    weights_BT = truncated_importance_weights(DIFFERENCES_BT, torch.zeros(1, 4), cap)
    torch.testing.assert_close(weights_BT, torch.tensor(expected), atol=1e-6, rtol=0)


def test_equal_logprobs_weigh_exactly_one():
    logprobs_BT = torch.log_softmax(torch.randn(2, 5), -1)
    assert torch.equal(truncated_importance_weights(logprobs_BT, logprobs_BT.clone(), 2.0), torch.ones(2, 5))


def test_weights_carry_no_gradient():
    old_BT = DIFFERENCES_BT.clone().requires_grad_()
    assert not truncated_importance_weights(old_BT, torch.zeros(1, 4), 2.0).requires_grad
    assert (old_BT - 0.0).exp().requires_grad


def test_an_impossible_token_is_capped_and_an_excluded_one_weighs_nothing():
    old_BT = torch.tensor([[-1.0, -float("inf")]])
    sampler_BT = torch.tensor([[-1e4, -1.0]])
    assert truncated_importance_weights(old_BT, sampler_BT, 2.0).tolist() == [[2.0, 0.0]]


def test_weights_bring_the_expectation_back_when_the_cap_is_out_of_reach():
    sampler, trainer = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.6, 0.3, 0.1])
    values = torch.tensor([1.0, 2.0, 4.0])
    weights_BT = truncated_importance_weights(trainer.log().unsqueeze(0), sampler.log().unsqueeze(0), 2.0)
    torch.testing.assert_close((sampler * weights_BT[0] * values).sum(), (trainer * values).sum())
    capped_BT = truncated_importance_weights(trainer.log().unsqueeze(0), sampler.log().unsqueeze(0), 1.1)
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
