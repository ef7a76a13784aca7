"""Weights for tokens that were drawn from a slightly different distribution than the one trained on.

Shapes: B sequences, T tokens, N weights. The sampler and the trainer compute the same log-probability with different
kernels or precision, or the sampler is a version behind; the weight brings the expectation back. Every correction takes
`old_logprobs_BT` and `sampler_logprobs_BT` in nats, `trained_BT` (bool) and a positive `cap`, so that one table holds
them all. One row holds one whole sequence. No weight is infinite, and where nothing is trained it means nothing.
"""

import torch
from torch import Tensor

from earned.algorithms.surrogates import LOG_RATIO_LIMIT


@torch.no_grad()
def token_truncate(old_logprobs_BT: Tensor, sampler_logprobs_BT: Tensor, trained_BT: Tensor, cap: float) -> Tensor:
    """Return how much more likely each token is for the trainer than for the sampler, at most `cap`; no gradient.

    w = min(pi_old / pi_sampler, cap), without unit. Shapes: [B, T] x 3 -> [B, T]. Equal log-probabilities, in nats,
    give exactly 1. Biased where the cap is reached, which bounds the variance.

    Source: Ionides 2008, truncated importance sampling; Yao et al. 2025 (TIS) for samplers and trainers that differ.

    >>> token_truncate(torch.tensor([[0.5, 0.9]]).log(), torch.tensor([[0.4, 0.3]]).log(),
    ...                torch.tensor([[True, True]]), cap=2.0)
    tensor([[1.2500, 2.0000]])
    """
    return _token_weights(old_logprobs_BT, sampler_logprobs_BT, trained_BT).clamp(max=cap)


@torch.no_grad()
def sequence_truncate(old_logprobs_BT: Tensor, sampler_logprobs_BT: Tensor, trained_BT: Tensor, cap: float) -> Tensor:
    """Return for every token how much more likely its whole completion is for the trainer, at most `cap`; no gradient.

    w = min(prod_t pi_old / pi_sampler, cap), over the trained tokens, without unit. Shapes: [B, T] x 3 -> [B, T]. Right
    for a reward of the whole completion, but the product spreads with its length.

    Source: Yao et al. 2025; Liu et al. 2025, "When speed kills stability", truncation by the sequence.

    >>> sequence_truncate(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.4, 0.4]]).log(),
    ...                   torch.tensor([[True, True]]), cap=2.0)
    tensor([[1.5625, 1.5625]])
    """
    return _sequence_weights(old_logprobs_BT, sampler_logprobs_BT, trained_BT).clamp(max=cap)


@torch.no_grad()
def token_mask(old_logprobs_BT: Tensor, sampler_logprobs_BT: Tensor, trained_BT: Tensor, cap: float) -> Tensor:
    """Return each token's importance weight, 0 where trainer and sampler differ more than `cap`-fold; no gradient.

    w = pi_old / pi_sampler where 1/cap <= w <= cap, else 0, without unit. Shapes: [B, T] x 3 -> [B, T]. Both sides are
    cut: a token that the trainer finds far less likely tells as much about the disagreement as one far likelier. What
    is cut still counts in the divisor of the loss.

    Source: IcePop, in Ring-1T, arXiv 2510.18855, whose two bounds are chosen apart; one bound and its inverse here.

    >>> token_mask(torch.tensor([[0.5, 0.9, 0.1]]).log(), torch.tensor([[0.4, 0.3, 0.3]]).log(),
    ...            torch.tensor([[True, True, True]]), cap=2.0)
    tensor([[1.2500, 0.0000, 0.0000]])
    """
    weights_BT = _token_weights(old_logprobs_BT, sampler_logprobs_BT, trained_BT)
    return torch.where((weights_BT <= cap) & (weights_BT >= 1 / cap), weights_BT, 0.0)


@torch.no_grad()
def sequence_mask(old_logprobs_BT: Tensor, sampler_logprobs_BT: Tensor, trained_BT: Tensor, cap: float) -> Tensor:
    """Return each completion's importance weight, 0 where it is above `cap`; no gradient.

    w = prod_t pi_old / pi_sampler where that is at most cap, else 0, without unit. Shapes: [B, T] x 3 -> [B, T]. Only
    the upper side is cut: a small product weighs little anyway. What is cut still counts in the divisor of the loss.

    Source: Liu et al. 2025, "When speed kills stability", masked importance sampling (MIS).

    >>> sequence_mask(torch.tensor([[0.5, 0.5], [0.9, 0.4]]).log(), torch.tensor([[0.4, 0.4], [0.3, 0.4]]).log(),
    ...               torch.tensor([[True, True], [True, True]]), cap=2.0)
    tensor([[1.5625, 1.5625],
            [0.0000, 0.0000]])
    """
    weights_BT = _sequence_weights(old_logprobs_BT, sampler_logprobs_BT, trained_BT)
    return torch.where(weights_BT <= cap, weights_BT, 0.0)


def effective_sample_size(weights_N: Tensor) -> Tensor:
    """Return the share of samples that weighted ones are worth: 1 when all weigh the same, 1/N when one has it all.

    (sum w)^2 / (N sum w^2), a share. Shapes: [N] -> []. Weights that are all 0 are worth 0.

    Source: Kish 1965, design effect of unequal weights.

    >>> effective_sample_size(torch.tensor([1.0, 1.0, 0.0, 0.0]))
    tensor(0.5000)
    """
    assert weights_N.ndim == 1 and len(weights_N) > 0, "weights are [N], N >= 1"
    squares = len(weights_N) * weights_N.square().sum()
    return torch.where(squares > 0, weights_N.sum().square() / squares, 0.0)


def _token_weights(old_logprobs_BT: Tensor, sampler_logprobs_BT: Tensor, trained_BT: Tensor) -> Tensor:
    return _log_weights(old_logprobs_BT, sampler_logprobs_BT, trained_BT).clamp(max=LOG_RATIO_LIMIT).exp()


def _sequence_weights(old_logprobs_BT: Tensor, sampler_logprobs_BT: Tensor, trained_BT: Tensor) -> Tensor:
    log_weights_BT = _log_weights(old_logprobs_BT, sampler_logprobs_BT, trained_BT)
    return log_weights_BT.sum(1, keepdim=True).clamp(max=LOG_RATIO_LIMIT).exp().expand_as(log_weights_BT)


def _log_weights(old_logprobs_BT: Tensor, sampler_logprobs_BT: Tensor, trained_BT: Tensor) -> Tensor:
    """Return the log-ratio, 0 where nothing is trained: an infinity or NaN there reaches no weight."""
    return torch.where(trained_BT, old_logprobs_BT - sampler_logprobs_BT, 0.0)
