import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from earned.algorithms.aggregation import Counts, sequence_mean, token_mean, weighted_sum
from earned.algorithms.parts import CLIPS, SURROGATES
from earned.algorithms.surrogates import LOG_RATIO_LIMIT, cispo, dppo, gspo, policy_gradient, ppo_clip, sapo

EVERY = list(SURROGATES.values())
CLIPPING = [ppo_clip, gspo, dppo]
"""Those that leave a token without gradient beyond a bound; the others weigh or fade it."""
ONE = torch.tensor([[True]])


def usual_clips(surrogate) -> tuple[float, float]:
    return CLIPS[surrogate].get("clip_low", 0.0), CLIPS[surrogate].get("clip_high", 0.0)


def at(surrogate, ratio: float, advantage: float, low: float, high: float, old: float = 0.5):
    """Return the objective of one token, its slope in the ratio, and whether the token counts as clipped."""
    old_BT = torch.tensor([[math.log(old)]], dtype=torch.float64)
    policy_BT = (old_BT + math.log(ratio)).requires_grad_()
    advantages_BT = torch.full((1, 1), advantage, dtype=torch.float64)
    loss_BT, clipped_BT = surrogate(policy_BT, old_BT, advantages_BT, ONE, low, high)
    (slope,) = torch.autograd.grad(-loss_BT.sum(), policy_BT)
    return -loss_BT.item(), slope.item() / ratio, bool(clipped_BT)


def gradient(surrogate, policy_BT: Tensor, old_BT: Tensor, advantages_BT: Tensor, low: float, high: float) -> Tensor:
    """Return the slope of the mean over completions, all tokens trained."""
    leaf_BT, trained_BT = policy_BT.clone().requires_grad_(), torch.ones_like(policy_BT, dtype=torch.bool)
    loss_BT = surrogate(leaf_BT, old_BT, advantages_BT, trained_BT, low, high).loss_BT
    return torch.autograd.grad(loss_BT.mean(1).sum(), leaf_BT)[0]


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
    assert at(ppo_clip, ratio, advantage, 0.2, high) == (pytest.approx(objective), pytest.approx(slope), slope == 0)


def test_probability_from_20_to_30_percent_stops_counting_at_24():
    assert at(ppo_clip, 0.30 / 0.20, 1, 0.2, 0.2) == (pytest.approx(1.2), 0, True)
    assert at(ppo_clip, 0.2401 / 0.20, 1, 0.2, 0.2)[2] and not at(ppo_clip, 0.2399 / 0.20, 1, 0.2, 0.2)[2]


DIFFERENCES_BT = torch.tensor([[0.1, -0.05, 0.25, 0.0]])
FOUR = torch.ones(1, 4, dtype=torch.bool)


def test_ratios_are_those_of_the_log_differences():
    loss_BT, _ = ppo_clip(DIFFERENCES_BT, torch.zeros(1, 4), torch.ones(1, 1), FOUR, 1.0, 10.0)
    expected = torch.tensor([[1.105171, 0.951229, 1.284025, 1.0]])
    torch.testing.assert_close(-loss_BT, expected, atol=1e-6, rtol=0)


def test_the_ratio_of_a_sequence_is_the_geometric_mean_of_its_tokens():
    loss_BT, _ = gspo(DIFFERENCES_BT, torch.zeros(1, 4), torch.ones(1, 1), FOUR, 1.0, 10.0)
    torch.testing.assert_close(-loss_BT, torch.full((1, 4), 1.077884), atol=1e-6, rtol=0)
    slope_BT = gradient(gspo, DIFFERENCES_BT, torch.zeros(1, 4), torch.ones(1, 1), 1.0, 10.0)
    torch.testing.assert_close(-slope_BT, torch.full((1, 4), 1.077884 / 4), atol=1e-6, rtol=0)
    assert math.exp(float(DIFFERENCES_BT.sum())) == pytest.approx(1.349859, abs=1e-6), "without the power of 1/L"


def test_a_sequence_is_clipped_as_a_whole():
    policy_BT = torch.tensor([[0.1, -0.0985], [0.1, -0.0999]])
    loss_BT, clipped_BT = gspo(policy_BT, torch.zeros(2, 2), torch.ones(2, 1), torch.ones(2, 2).bool(), 3e-4, 4e-4)
    assert clipped_BT.tolist() == [[True, True], [False, False]]
    torch.testing.assert_close(-loss_BT[0], torch.full((2,), 1.0004))
    slope_BT = gradient(gspo, policy_BT, torch.zeros(2, 2), torch.ones(2, 1), 3e-4, 4e-4)
    assert not slope_BT[0].any() and slope_BT[1].all()


def test_a_capped_weight_drops_no_token():
    slope_BT = 4 * gradient(cispo, DIFFERENCES_BT, torch.zeros(1, 4), torch.ones(1, 1), 0.0, 1.2)
    torch.testing.assert_close(-slope_BT, torch.tensor([[1.105171, 0.951229, 1.2, 1.0]]), atol=1e-6, rtol=0)
    assert at(cispo, 3.0, 1, 0.0, 1.2)[1:] == (pytest.approx(1.2 / 3.0), False)
    assert at(cispo, 3.0, -1, 0.0, 1.2)[1:] == (pytest.approx(-1.2 / 3.0), False)


@pytest.mark.parametrize(
    ("old", "ratio", "advantage", "objective"),
    [
        (0.3, 1.4, 1, 1.4),  # .12 more
        (0.3, 1.6, 1, 0.0),  # .18 more, and pushed on
        (0.3, 1.6, -1, -1.6),  # .18 more, and pushed back
        (0.9, 0.8, -1, 0.0),  # .18 less, which a ratio of 0.8 would have let pass
        (0.9, 0.8, 1, 0.8),
        (1e-4, 100.0, 1, 100.0),  # .0099 more: a rare token may grow
    ],
)
def test_what_has_moved_far_in_probability_is_masked_where_it_is_pushed_on(old, ratio, advantage, objective):
    found = at(dppo, ratio, advantage, 0.15, 0.15, old)
    slope = 0 if objective == 0 else advantage
    assert found == (pytest.approx(objective), pytest.approx(slope), objective == 0)


@pytest.mark.parametrize(
    ("ratio", "advantage", "objective", "slope"),
    [
        (1.0, 1, 2.0, 1.0),
        (1.0, -1, -4 / 1.05 / 2, -1.0),
        (1.5, 1, 2.489837, 0.940015),
        (1.5, -1, -2.393585, -0.934140),
        (0.5, 1, 1.510163, 0.940015),
    ],
)
def test_soft_gate_by_hand(ratio, advantage, objective, slope):
    found = at(sapo, ratio, advantage, 1.05, 1.0)
    assert found == (pytest.approx(objective, abs=1e-6), pytest.approx(slope, abs=1e-6), False)


def test_a_gate_that_is_shut_counts_as_clipped():
    assert at(sapo, 3.0, 1, 1.05, 1.0)[1] == pytest.approx(0.419974, abs=1e-6)
    assert at(sapo, 100.0, 1, 1.05, 1.0)[1:] == (0.0, True)
    assert at(sapo, 100.0, -1, 1.05, 1.0)[1:] == (0.0, True)


def test_on_policy_loss_is_minus_the_advantage_exactly():
    logprobs_BT = torch.log_softmax(torch.randn(4, 7), -1)
    advantages_BT = torch.randn(4, 1)
    for surrogate in CLIPPING:
        loss_BT, clipped_BT = surrogate(
            logprobs_BT, logprobs_BT.clone(), advantages_BT, torch.ones(4, 7).bool(), *usual_clips(surrogate)
        )
        assert torch.equal(loss_BT, -advantages_BT.expand(4, 7))
        assert not clipped_BT.any()


@pytest.mark.parametrize("surrogate", EVERY)
def test_on_policy_gradient_is_the_policy_gradient(surrogate):
    old_BT = torch.log_softmax(torch.randn(3, 5, dtype=torch.float64), -1)
    advantages_BT = torch.randn(3, 1, dtype=torch.float64)
    expected = gradient(policy_gradient, old_BT, old_BT, advantages_BT, 0.0, 0.0)
    torch.testing.assert_close(gradient(surrogate, old_BT, old_BT, advantages_BT, *usual_clips(surrogate)), expected)


WIDE_OPEN = {ppo_clip: (1e6, 1e6), gspo: (1e6, 1e6), cispo: (0.0, 1e9), dppo: (1.0, 1.0)}


@pytest.mark.parametrize("surrogate", WIDE_OPEN)
def test_with_the_clip_wide_open_the_gradient_is_the_policy_gradient_times_the_ratio(surrogate):
    generator = torch.Generator().manual_seed(1)
    old_BT = torch.log_softmax(torch.randn(3, 5, dtype=torch.float64, generator=generator), -1)
    policy_BT = torch.log_softmax(torch.randn(3, 5, dtype=torch.float64, generator=generator), -1)
    advantages_BT = torch.tensor([[1.0], [-0.5], [2.0]], dtype=torch.float64)
    log_ratio_BT = policy_BT - old_BT
    ratio = log_ratio_BT.mean(1, keepdim=True).exp() if surrogate is gspo else log_ratio_BT.exp()
    corrected = gradient(policy_gradient, policy_BT, old_BT, advantages_BT, 0.0, 0.0) * ratio
    torch.testing.assert_close(gradient(surrogate, policy_BT, old_BT, advantages_BT, *WIDE_OPEN[surrogate]), corrected)
    usual = gradient(surrogate, policy_BT, old_BT, advantages_BT, *usual_clips(surrogate))
    assert not torch.allclose(usual, corrected) or surrogate is cispo, "the usual clips do something here"


class Batch:
    """Four completions of different lengths, some tokens beyond the bounds of a surrogate and some within."""

    def __init__(self, surrogate) -> None:
        generator = torch.Generator().manual_seed(3)
        spread = 4e-4 if surrogate is gspo else 0.4
        self.surrogate, self.clips = surrogate, usual_clips(surrogate)
        self.trained_BT = torch.arange(6) < torch.tensor([[6], [3], [1], [4]])
        self.old_BT = -1.5 * torch.rand(4, 6, dtype=torch.float64, generator=generator) - 0.4
        self.policy_BT = self.old_BT + spread * torch.randn(4, 6, dtype=torch.float64, generator=generator)
        self.advantages_BT = torch.tensor([[1.0], [-0.5], [2.0], [-1.5]], dtype=torch.float64)
        self.counts = Counts(sequences=4, tokens=14, max_length=6)

    def loss(self, policy_BT: Tensor, old_BT: Tensor) -> Tensor:
        loss_BT = self.surrogate(policy_BT, old_BT, self.advantages_BT, self.trained_BT, *self.clips).loss_BT
        return weighted_sum(loss_BT, sequence_mean(self.trained_BT, self.counts))

    def gradient(self) -> Tensor:
        leaf_BT = self.policy_BT.clone().requires_grad_()
        return torch.autograd.grad(self.loss(leaf_BT, self.old_BT), leaf_BT)[0]

    def slope(self, place: tuple[int, int], freeze_ratio: bool) -> float:
        step_BT = torch.zeros_like(self.policy_BT)
        step_BT[place] = 1e-6
        old_step_BT = step_BT if freeze_ratio else torch.zeros_like(step_BT)
        above = self.loss(self.policy_BT + step_BT, self.old_BT + old_step_BT)
        below = self.loss(self.policy_BT - step_BT, self.old_BT - old_step_BT)
        return float(above - below) / 2e-6


@pytest.mark.parametrize("surrogate", EVERY)
def test_gradients_are_those_of_finite_differences(surrogate):
    """With the weight of `cispo` frozen, which the old log-probability does when it moves along."""
    batch = Batch(surrogate)
    found = batch.gradient()
    slopes = [[batch.slope((row, t), surrogate is cispo) for t in range(6)] for row in range(4)]
    expected = torch.tensor(slopes, dtype=torch.float64)
    assert float((found - expected).norm() / expected.norm()) < 1e-7
    assert (found != 0).any() and not found[~batch.trained_BT].any()
    if surrogate in CLIPPING:
        _, clipped_BT = surrogate(batch.policy_BT, batch.old_BT, batch.advantages_BT, batch.trained_BT, *batch.clips)
        kept_BT, clipped_BT = batch.trained_BT & ~clipped_BT, batch.trained_BT & clipped_BT
        assert clipped_BT.any() and kept_BT.any(), "both sides of the clip are compared"
        assert (found[kept_BT] != 0).all() and not found[clipped_BT].any()


def test_the_weight_of_cispo_has_no_gradient():
    batch = Batch(cispo)
    assert batch.gradient()[0, 0] != pytest.approx(batch.slope((0, 0), freeze_ratio=False), rel=1e-3)


@pytest.mark.parametrize("surrogate", EVERY)
def test_neither_padding_nor_the_layout_of_rows_matters(surrogate):
    whole = Batch(surrogate)
    expected = whole.gradient()
    padded = Batch(surrogate)
    padded.old_BT = torch.cat([whole.old_BT, torch.full((4, 7), -9.0, dtype=torch.float64)], 1)
    padded.policy_BT = torch.cat([whole.policy_BT, torch.full((4, 7), -2.0, dtype=torch.float64)], 1)
    padded.trained_BT = torch.cat([whole.trained_BT, torch.zeros(4, 7).bool()], 1)
    assert torch.equal(padded.gradient()[:, :6], expected) and not padded.gradient()[:, 6:].any()
    for rows in ([3, 1], [0], [2]):
        part = Batch(surrogate)
        for name in ("old_BT", "policy_BT", "trained_BT", "advantages_BT"):
            setattr(part, name, getattr(whole, name)[rows])
        assert torch.equal(part.gradient(), expected[rows]), "each row is as it was in the batch"


def test_a_ratio_over_all_positions_of_a_row_would_make_padding_matter():
    def over_all(policy_BT, old_BT, advantages_BT, trained_BT, low, high):
        return gspo(policy_BT, old_BT, advantages_BT, torch.ones_like(trained_BT), low, high)

    right, wrong = Batch(gspo), Batch(gspo)
    wrong.surrogate = over_all
    assert not torch.allclose(wrong.gradient(), right.gradient())


NOT_NUMBERS = [math.inf, -math.inf, math.nan, 200.0, -200.0]


@pytest.mark.parametrize("old", NOT_NUMBERS)
@pytest.mark.parametrize("policy", NOT_NUMBERS)
@pytest.mark.parametrize("surrogate", EVERY)
def test_whatever_stands_where_nothing_is_trained_reaches_neither_loss_nor_gradient(surrogate, policy, old):
    clean, dirty = Batch(surrogate), Batch(surrogate)
    dirty.policy_BT = torch.where(clean.trained_BT, clean.policy_BT, policy)
    dirty.old_BT = torch.where(clean.trained_BT, clean.old_BT, old)
    assert torch.equal(dirty.loss(dirty.policy_BT, dirty.old_BT), clean.loss(clean.policy_BT, clean.old_BT))
    assert torch.equal(dirty.gradient(), clean.gradient())


@pytest.mark.parametrize("surrogate", [surrogate for surrogate in EVERY if surrogate is not gspo])
def test_an_advantage_for_every_token_is_taken_token_by_token(surrogate):
    batch, alone = Batch(surrogate), Batch(surrogate)
    batch.advantages_BT = torch.tensor([[1.0, -1.0, 0.0, 2.0, -2.0, 0.5]], dtype=torch.float64).expand(4, 6)
    found = batch.gradient()
    for t, advantage in enumerate(batch.advantages_BT[0].tolist()):
        alone.advantages_BT = torch.full((4, 1), advantage, dtype=torch.float64)
        assert torch.equal(found[:, t], alone.gradient()[:, t])


@pytest.mark.parametrize("surrogate", [ppo_clip, gspo, dppo, sapo])
@given(log_ratio=st.floats(-30, 30), advantage=st.sampled_from([-2.0, -0.5, 0.5, 2.0]))
def test_clipped_is_exactly_where_there_is_no_gradient(surrogate, log_ratio, advantage):
    policy_BT = torch.tensor([[log_ratio]], dtype=torch.float64, requires_grad=True)
    old_BT, advantages_BT = torch.tensor([[-1e-9]]).double(), torch.full((1, 1), advantage, dtype=torch.float64)
    loss_BT, clipped_BT = surrogate(policy_BT, old_BT, advantages_BT, ONE, *usual_clips(surrogate))
    (slope,) = torch.autograd.grad(loss_BT.sum(), policy_BT)
    assert bool(clipped_BT) == (slope.item() == 0)


@pytest.mark.parametrize("surrogate", EVERY)
def test_without_an_advantage_nothing_counts_as_clipped(surrogate):
    far_BT = torch.tensor([[3.0, -3.0, 40.0]])
    three = torch.ones(1, 3, dtype=torch.bool)
    _, clipped_BT = surrogate(far_BT, torch.zeros(1, 3), torch.zeros(1, 1), three, *usual_clips(surrogate))
    assert not clipped_BT.any()


def test_policy_gradient_clips_nothing_and_reads_no_old_logprobs():
    policy_BT = torch.tensor([[-1.0, -50.0]])
    for old_BT in (torch.zeros(1, 2), torch.full((1, 2), math.nan)):
        loss_BT, clipped_BT = policy_gradient(
            policy_BT, old_BT, torch.tensor([[2.0]]), torch.tensor([[True, True]]), 0.2, 0.2
        )
        assert loss_BT.tolist() == [[2.0, 100.0]]
        assert not clipped_BT.any()


@pytest.mark.parametrize("difference", [-1e4, -100.0, 100.0, 1e4])
@pytest.mark.parametrize("surrogate", [ppo_clip, gspo, cispo, dppo, sapo])
def test_no_log_ratio_overflows(surrogate, difference):
    policy_BT = torch.full((1, 1), difference, requires_grad=True)
    assert math.exp(LOG_RATIO_LIMIT) < torch.finfo(torch.float32).max
    for advantage in (-1.0, 1.0):
        loss_BT, clipped_BT = surrogate(
            policy_BT, torch.zeros(1, 1), torch.full((1, 1), advantage), ONE, *usual_clips(surrogate)
        )
        (slope,) = torch.autograd.grad(loss_BT.sum(), policy_BT)
        assert loss_BT.isfinite() and slope.isfinite()
        assert clipped_BT.all() == (surrogate is not cispo)
    unheld = -(policy_BT.exp() * -1.0)
    assert not unheld.isfinite() or difference < 0


P = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)


@pytest.mark.parametrize("baseline", [0.0, 0.7])
@pytest.mark.parametrize("surrogate", EVERY)
def test_expected_gradient_of_a_policy_over_three_actions(surrogate, baseline):
    logits = P.log().requires_grad_()
    logprobs_BT = torch.log_softmax(logits, -1).unsqueeze(1)
    advantages_BT = torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64) - baseline
    trained_BT = torch.ones(3, 1, dtype=torch.bool)
    loss_BT, _ = surrogate(logprobs_BT, logprobs_BT.detach(), advantages_BT, trained_BT, *usual_clips(surrogate))
    (slope,) = torch.autograd.grad((P.unsqueeze(1) * loss_BT).sum(), logits)
    torch.testing.assert_close(-slope, torch.tensor([0.21, -0.14, -0.07], dtype=torch.float64))


def test_the_first_update_of_a_batch_has_a_loss_but_no_clip():
    """The loss is minus the mean advantage, 0 for advantages that add up to 0, and the gradient is not."""
    logprobs_BT = torch.log_softmax(torch.randn(2, 3), -1).requires_grad_()
    trained_BT, advantages_BT = torch.ones(2, 3, dtype=torch.bool), torch.tensor([[1.0], [-1.0]])
    loss_BT, _ = ppo_clip(logprobs_BT, logprobs_BT.detach(), advantages_BT, trained_BT, 0.2, 0.2)
    loss = weighted_sum(loss_BT, token_mean(trained_BT, Counts(sequences=2, tokens=6, max_length=3)))
    assert loss.item() == 0
    assert torch.autograd.grad(loss, logprobs_BT)[0].abs().min() > 0.1
