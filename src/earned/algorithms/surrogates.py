"""What one token contributes to the loss, given how good its completion was.

Shapes: B sequences, T tokens. Every function takes `policy_logprobs_BT` (now, with gradient), `old_logprobs_BT` (start
of the update), `advantages_BT` ([B, T] or [B, 1]), `clip_low` and `clip_high`, so that one table holds them all.
Log-probabilities are in nats. Where nothing is trained they may be anything, infinite and NaN too: the caller masks
with `aggregation.weighted_sum`, which keeps those positions from the loss and from its gradient. `clipped_BT` means
nothing there.
"""

from typing import NamedTuple

import torch
from torch import Tensor

LOG_RATIO_LIMIT = 20.0
"""Nats at which a log-ratio is held: exp(20) = 4.9e8 means nothing any more but is far from overflow."""


class Surrogate(NamedTuple):
    """A loss to be minimised, and where it is flat."""

    loss_BT: Tensor
    """Its gradient is that of minus the objective."""
    clipped_BT: Tensor
    """True where the token has an advantage but, because of the clip, no gradient."""


def policy_gradient(
    policy_logprobs_BT: Tensor, old_logprobs_BT: Tensor, advantages_BT: Tensor, clip_low: float, clip_high: float
) -> Surrogate:
    """Return the loss whose gradient is the policy gradient; old log-probabilities and clips are not used.

    loss = -A log pi. Shapes: [B, T] x 3 -> [B, T]. No token is ever clipped.

    Source: Williams 1992, REINFORCE.

    >>> policy_gradient(torch.tensor([[-0.5, -2.0]]), torch.zeros(1, 2), torch.tensor([[1.0]]), 0.2, 0.2).loss_BT
    tensor([[0.5000, 2.0000]])
    """
    loss_BT = -advantages_BT * policy_logprobs_BT
    return Surrogate(loss_BT, torch.zeros_like(loss_BT, dtype=torch.bool))


def ppo_clip(
    policy_logprobs_BT: Tensor, old_logprobs_BT: Tensor, advantages_BT: Tensor, clip_low: float, clip_high: float
) -> Surrogate:
    """Return the pessimistic one of the ratio and the clipped ratio, times the advantage.

    loss = -min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A) with rho = pi / pi_old. Shapes: [B, T] x 3 -> [B, T].
    Where nothing was updated yet rho is exactly 1 and the gradient is that of `policy_gradient`.

    Source: PPO, arXiv 1707.06347, equation 7; one bound each for both sides: DAPO, arXiv 2503.14476, equation 8.

    >>> loss_BT, clipped_BT = ppo_clip(torch.tensor([[0.3, 0.2]]).log(), torch.tensor([[0.2, 0.2]]).log(),
    ...                                torch.tensor([[1.0]]), 0.2, 0.2)
    >>> loss_BT, clipped_BT
    (tensor([[-1.2000, -1.0000]]), tensor([[ True, False]]))
    """
    ratio_BT = _log_ratio(policy_logprobs_BT, old_logprobs_BT).exp()
    clipped_ratio_BT = ratio_BT.clamp(1 - clip_low, 1 + clip_high)
    loss_BT = -torch.minimum(ratio_BT * advantages_BT, clipped_ratio_BT * advantages_BT)
    return Surrogate(loss_BT, clipped_tokens(policy_logprobs_BT, old_logprobs_BT, advantages_BT, clip_low, clip_high))


@torch.no_grad()
def clipped_tokens(
    policy_logprobs_BT: Tensor, old_logprobs_BT: Tensor, advantages_BT: Tensor, clip_low: float, clip_high: float
) -> Tensor:
    """Return where `ppo_clip` gives a token with an advantage no gradient.

    (A > 0 and rho > 1 + clip_high) or (A < 0 and rho < 1 - clip_low). Shapes: [B, T] x 3 -> bool [B, T]. A log-ratio
    beyond `LOG_RATIO_LIMIT` is held, so such a token counts as clipped too.

    Source: PPO, arXiv 1707.06347, figure 1.

    >>> clipped_tokens(torch.tensor([[1.3, 1.3, 0.7, 0.7]]).log(), torch.zeros(1, 4),
    ...                torch.tensor([[1.0, -1.0, 1.0, -1.0]]), 0.2, 0.2)
    tensor([[ True, False, False,  True]])
    """
    ratio_BT = _log_ratio(policy_logprobs_BT, old_logprobs_BT).exp()
    raised_BT = (advantages_BT > 0) & (ratio_BT > 1 + clip_high)
    lowered_BT = (advantages_BT < 0) & (ratio_BT < 1 - clip_low)
    held_BT = (advantages_BT != 0) & ((policy_logprobs_BT - old_logprobs_BT).abs() > LOG_RATIO_LIMIT)
    return raised_BT | lowered_BT | held_BT


def _log_ratio(policy_logprobs_BT: Tensor, old_logprobs_BT: Tensor) -> Tensor:
    return (policy_logprobs_BT - old_logprobs_BT).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
