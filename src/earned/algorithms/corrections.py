"""Weights for tokens that were drawn from a slightly different distribution than the one trained on.

Shapes: B sequences, T tokens, N weights. The sampler and the trainer compute the same log-probability with different
kernels or precision; the weight brings the expectation back.
"""

import torch
from torch import Tensor


@torch.no_grad()
def truncated_importance_weights(old_logprobs_BT: Tensor, sampler_logprobs_BT: Tensor, cap: float) -> Tensor:
    """Return how much more likely each token is for the trainer than for the sampler, at most `cap`; no gradient.

    w = min(pi_old / pi_sampler, cap), without unit. Shapes: [B, T] x 2 -> [B, T]. Equal log-probabilities, in nats,
    give exactly 1. Positions that are not trained must hold finite log-probabilities for their weights to be finite.

    Source: Ionides 2008, truncated importance sampling; Yao et al. 2025 for samplers and trainers that differ.

    >>> truncated_importance_weights(torch.tensor([[0.5, 0.9]]).log(), torch.tensor([[0.4, 0.3]]).log(), cap=2.0)
    tensor([[1.2500, 2.0000]])
    """
    assert cap > 0, "the cap is a positive weight"
    return (old_logprobs_BT - sampler_logprobs_BT).exp().clamp(max=cap)


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
