import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from earned.algorithms.divergences import exact, k1, k2, k3

P = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
Q = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)


@pytest.mark.parametrize(("estimator", "value"), [(k1, 0.693147), (k2, 0.240227), (k3, 0.193147)])
def test_one_token_twice_as_likely(estimator, value):
    policy_BT, reference_BT = torch.tensor([[0.5]]).log(), torch.tensor([[0.25]]).log()
    assert estimator(policy_BT, reference_BT).item() == pytest.approx(value, abs=1e-6)


def test_exact_by_hand():
    assert exact(P.log(), Q.log()).item() == pytest.approx(0.0851228, abs=1e-7)


@pytest.mark.parametrize(("estimator", "value"), [(k1, 0.0851228), (k2, 0.0800876), (k3, 0.0851228)])
def test_expectation_under_the_policy(estimator, value):
    assert (P * estimator(P.log(), Q.log())).sum().item() == pytest.approx(value, abs=1e-7)


TRUE_REVERSE = [0.17594, -0.09812, -0.07783]
FORWARD = [0.2, -0.1, -0.1]


@pytest.mark.parametrize(("estimator", "slope"), [(k1, [0.0, 0.0, 0.0]), (k2, TRUE_REVERSE), (k3, FORWARD)])
def test_expected_gradient_as_a_loss(estimator, slope):
    logits = P.log().requires_grad_()
    loss = (P * estimator(torch.log_softmax(logits, -1), Q.log())).sum()
    expected = torch.tensor(slope, dtype=torch.float64)
    torch.testing.assert_close(torch.autograd.grad(loss, logits)[0], expected, atol=6e-6, rtol=0)


@pytest.mark.parametrize(("estimator", "right"), [(k1, True), (k2, False), (k3, False)])
def test_expected_gradient_in_the_reward(estimator, right):
    """Taken off the reward and not differentiated, only the unbiased number whose expectation is KL(p || q) is right.

    k3 is unbiased as a number too, but its gradient as a reward is that of E_p[k3] with k3 held, another one.
    """
    logits = P.log().requires_grad_()
    penalties = estimator(P.log(), Q.log())
    loss = (P * penalties * torch.log_softmax(logits, -1)).sum()
    (slope,) = torch.autograd.grad(loss, logits)
    true = torch.tensor(TRUE_REVERSE, dtype=torch.float64)
    assert torch.allclose(slope, true, atol=6e-6, rtol=0) == right


def test_gradient_of_the_exact_one_is_the_true_one():
    logits = P.log().requires_grad_()
    (reverse,) = torch.autograd.grad(exact(torch.log_softmax(logits, -1), Q.log()), logits)
    (forward,) = torch.autograd.grad(exact(Q.log(), torch.log_softmax(logits, -1)), logits)
    torch.testing.assert_close(reverse, torch.tensor(TRUE_REVERSE, dtype=torch.float64), atol=6e-6, rtol=0)
    torch.testing.assert_close(forward, torch.tensor(FORWARD, dtype=torch.float64), atol=6e-6, rtol=0)


LOGPROB = st.floats(-15, 0)


@given(policy=LOGPROB, reference=LOGPROB)
def test_k2_and_k3_are_never_negative(policy, reference):
    policy_BT, reference_BT = torch.tensor([[policy]]), torch.tensor([[reference]])
    assert k2(policy_BT, reference_BT) >= 0
    assert k3(policy_BT, reference_BT) >= 0


@pytest.mark.parametrize("estimator", [k1, k2, k3])
def test_zero_at_the_reference(estimator):
    logprobs_BT = torch.log_softmax(torch.randn(2, 4), -1)
    assert torch.equal(estimator(logprobs_BT, logprobs_BT.clone()), torch.zeros(2, 4))


@pytest.mark.parametrize("estimator", [k1, k2, k3])
@given(policy=LOGPROB, reference=LOGPROB)
def test_gradients_are_those_of_finite_differences(estimator, policy, reference):
    def value(logprob: float) -> float:
        return estimator(
            torch.tensor(logprob, dtype=torch.float64), torch.tensor(reference, dtype=torch.float64)
        ).item()

    leaf = torch.tensor(policy, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(estimator(leaf, torch.tensor(reference, dtype=torch.float64)), leaf)
    step = 1e-5
    assert slope.item() == pytest.approx((value(policy + step) - value(policy - step)) / (2 * step), rel=1e-5, abs=1e-5)


def test_exact_keeps_leading_axes_and_survives_impossible_tokens():
    policy_BTV = torch.tensor([[[0.0, -math.inf], [-math.inf, 0.0]]], requires_grad=True)
    reference_BTV = torch.tensor([[[0.0, -math.inf], [-1.0, -0.5]]])
    value_BT = exact(policy_BTV, reference_BTV)
    assert value_BT.tolist() == [[0.0, 0.5]]
    assert torch.autograd.grad(value_BT.sum(), policy_BTV)[0].isfinite().all()
    assert ((policy_BTV.exp() * (policy_BTV - reference_BTV)).sum(-1)).isnan().any()


def test_a_reference_that_finds_the_token_far_likelier_does_not_overflow():
    policy_BT = torch.tensor([[-200.0]], requires_grad=True)
    value_BT = k3(policy_BT, torch.zeros(1, 1))
    assert value_BT.isfinite().all()
    assert torch.autograd.grad(value_BT.sum(), policy_BT)[0].isfinite().all()
    assert torch.tensor(200.0).exp().isinf()


@pytest.mark.parametrize(("estimator", "slope"), [(k2, 40.0), (k3, 1.0)])
def test_a_policy_that_left_the_reference_far_behind_is_still_pulled_back(estimator, slope):
    policy_BT = torch.zeros(1, 1, requires_grad=True)
    value_BT = estimator(policy_BT, torch.tensor([[-40.0]]))
    assert torch.autograd.grad(value_BT.sum(), policy_BT)[0].item() == pytest.approx(slope)
