import pytest
import torch
from torch import Tensor

from earned.algorithms.aggregation import (
    Counts,
    fixed_length,
    sequence_mean,
    sequence_sum,
    token_mean,
    weighted_sum,
)
from earned.algorithms.parts import SURROGATES
from earned.algorithms.surrogates import policy_gradient, ppo_clip

ALL = [token_mean, sequence_mean, sequence_sum, fixed_length]

SHORT_AND_LONG_BT = torch.arange(8) < torch.tensor([[2], [8]])
RIGHT_AND_WRONG_BT = torch.tensor([[1.0], [-1.0]])
COUNTS = Counts(sequences=2, tokens=10, max_length=10)


@pytest.mark.parametrize(
    ("aggregation", "loss"), [(sequence_mean, 0.0), (token_mean, 0.6), (fixed_length, 0.3), (sequence_sum, 3.0)]
)
def test_a_short_right_and_a_long_wrong_completion(aggregation, loss):
    logprobs_BT = torch.randn(2, 8)
    loss_BT, _ = ppo_clip(logprobs_BT, logprobs_BT, RIGHT_AND_WRONG_BT, SHORT_AND_LONG_BT, 0.2, 0.2)
    assert weighted_sum(loss_BT, aggregation(SHORT_AND_LONG_BT, COUNTS)).item() == pytest.approx(loss, abs=1e-6)


@pytest.mark.parametrize(
    ("aggregation", "short", "long"),
    [(sequence_mean, 0.25, 0.0625), (token_mean, 0.1, 0.1), (fixed_length, 0.05, 0.05), (sequence_sum, 0.5, 0.5)],
)
def test_weight_of_a_token(aggregation, short, long):
    expected = torch.tensor([[short], [long]]) * SHORT_AND_LONG_BT
    torch.testing.assert_close(aggregation(SHORT_AND_LONG_BT, COUNTS), expected)


class Step:
    """Eight completions of different lengths under a policy small enough to differentiate in every layout."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.weights_HV = torch.randn(6, 5, generator=generator, dtype=torch.float64)
        self.features_BTH = torch.randn(8, 9, 6, generator=generator, dtype=torch.float64)
        self.token_ids_BT = torch.randint(5, (8, 9), generator=generator)
        self.lengths_B = torch.tensor([9, 1, 4, 2, 7, 3, 8, 5])
        self.trained_BT = torch.arange(9) < self.lengths_B.unsqueeze(1)
        self.advantages_BT = torch.tensor([1.5, -0.5, 0.0, 2.0, -1.0, 0.0, 0.7, -2.0], dtype=torch.float64).unsqueeze(1)
        self.counts = Counts(sequences=8, tokens=int(self.lengths_B.sum()), max_length=9)
        self.old_BT = self.logprobs(self.weights_HV, slice(None)) + 0.1 * torch.randn(8, 9, generator=generator)

    def logprobs(self, weights_HV: Tensor, rows: slice | Tensor) -> Tensor:
        logprobs_BTV = torch.log_softmax(self.features_BTH[rows] @ weights_HV, -1)
        return logprobs_BTV.gather(2, self.token_ids_BT[rows].unsqueeze(2)).squeeze(2)

    def gradient(self, aggregation, surrogate, micro_batches: list) -> Tensor:
        leaf_HV = self.weights_HV.clone().requires_grad_()
        for rows in micro_batches:
            logprobs_BT = self.logprobs(leaf_HV, rows)
            batch = self.old_BT[rows], self.advantages_BT[rows], self.trained_BT[rows]
            loss_BT = surrogate(logprobs_BT, *batch, 0.2, 0.28).loss_BT
            weighted_sum(loss_BT, aggregation(self.trained_BT[rows], self.counts)).backward()
        assert leaf_HV.grad is not None
        return leaf_HV.grad


def cut(size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, 8, size)]


@pytest.mark.parametrize("surrogate", SURROGATES.values())
@pytest.mark.parametrize("aggregation", ALL)
def test_the_gradient_does_not_depend_on_the_micro_batches(aggregation, surrogate):
    step = Step()
    whole = step.gradient(aggregation, surrogate, cut(8))
    assert whole.norm() > 1e-2
    for layout in (cut(1), cut(4), [slice(0, 3), slice(3, 8)]):
        torch.testing.assert_close(step.gradient(aggregation, surrogate, layout), whole, atol=1e-10, rtol=0)


@pytest.mark.parametrize("aggregation", ALL)
def test_leaving_out_rows_without_an_advantage_changes_nothing(aggregation):
    step = Step()
    whole = step.gradient(aggregation, ppo_clip, cut(8))
    kept = step.advantages_BT.squeeze(1).nonzero().squeeze(1)
    assert len(kept) == 6
    torch.testing.assert_close(step.gradient(aggregation, ppo_clip, [kept]), whole, atol=1e-10, rtol=0)


def test_dividing_by_the_tokens_of_each_micro_batch_would_change_the_gradient():
    step = Step()

    def per_micro_batch(trained_BT: Tensor, counts: Counts) -> Tensor:
        return trained_BT / trained_BT.sum() * len(trained_BT) / counts.sequences

    whole = step.gradient(per_micro_batch, ppo_clip, cut(8))
    torch.testing.assert_close(whole, step.gradient(token_mean, ppo_clip, cut(8)), atol=1e-6, rtol=0)
    assert (step.gradient(per_micro_batch, ppo_clip, cut(1)) - whole).norm() > 1e-2


@pytest.mark.parametrize("aggregation", ALL)
def test_padding_changes_nothing(aggregation):
    padded_BT = torch.cat([SHORT_AND_LONG_BT, torch.zeros(2, 7, dtype=torch.bool)], 1)
    weights_BT = aggregation(padded_BT, COUNTS)
    assert torch.equal(weights_BT[:, :8], aggregation(SHORT_AND_LONG_BT, COUNTS))
    assert not weights_BT[:, 8:].any()


@pytest.mark.parametrize("aggregation", ALL)
def test_an_empty_row_weighs_nothing(aggregation):
    weights_BT = aggregation(torch.tensor([[False, False], [True, True]]), Counts(sequences=2, tokens=2, max_length=2))
    assert weights_BT[0].tolist() == [0.0, 0.0]
    assert (weights_BT[1] > 0).all()


def test_there_is_something_to_divide_by():
    for nothing in ({"sequences": 0}, {"tokens": 0}, {"max_length": 0}):
        with pytest.raises(AssertionError, match="nothing to divide by"):
            Counts(**({"sequences": 1, "tokens": 1, "max_length": 1} | nothing))


NOT_NUMBERS = [float("inf"), -float("inf"), float("nan"), 200.0, -200.0]
HALF_BT = torch.tensor([[True, False, True, False]])
HALF_COUNTS = Counts(sequences=1, tokens=2, max_length=4)


def step_loss(surrogate, policy_BT: Tensor, old_BT: Tensor, weighted) -> tuple[Tensor, Tensor]:
    leaf_BT = policy_BT.clone().requires_grad_()
    loss_BT = surrogate(leaf_BT, old_BT, torch.tensor([[0.5]]), HALF_BT, 0.2, 0.2).loss_BT
    loss = weighted(loss_BT, token_mean(HALF_BT, HALF_COUNTS))
    return loss.detach(), torch.autograd.grad(loss, leaf_BT)[0]


@pytest.mark.parametrize("old", NOT_NUMBERS)
@pytest.mark.parametrize("policy", NOT_NUMBERS)
@pytest.mark.parametrize("surrogate", [policy_gradient, ppo_clip])
def test_whatever_stands_at_masked_positions_reaches_neither_loss_nor_gradient(surrogate, policy, old):
    clean_BT = torch.tensor([[-0.5, -1.0, -0.6, -1.0]])
    old_BT = clean_BT + 0.05
    expected = step_loss(surrogate, clean_BT, old_BT, weighted_sum)
    dirty = step_loss(
        surrogate, torch.where(HALF_BT, clean_BT, policy), torch.where(HALF_BT, old_BT, old), weighted_sum
    )
    assert torch.equal(dirty[0], expected[0])
    assert torch.equal(dirty[1], expected[1])


def test_multiplying_by_a_weight_of_zero_would_not_be_enough():
    dirty_BT = torch.tensor([[-0.5, float("inf"), -0.6, float("nan")]])
    loss, _ = step_loss(policy_gradient, dirty_BT, dirty_BT, lambda values, weights: (values * weights).sum())
    assert loss.isnan()


def test_a_fault_at_a_trained_position_is_not_hidden():
    values_BT = torch.tensor([[1.0, float("nan")]])
    assert weighted_sum(values_BT, torch.tensor([[0.5, 0.5]])).isnan()
