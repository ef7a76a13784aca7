"""What one token contributes to the loss, given how good its completion was.

Shapes: B sequences, T tokens. Every function takes `policy_logprobs_BT` (now, with gradient), `old_logprobs_BT` (start
of the update), `advantages_BT` ([B, T] or [B, 1]), `trained_BT` (bool), `clip_low` and `clip_high`, so that one table
holds them all; each says what its two numbers are. One row holds one whole sequence. Log-probabilities are in nats, and
rho = pi / pi_old. Where nothing is trained they may be anything, infinite and NaN too: `aggregation.weighted_sum` keeps
those positions from the loss and from its gradient, and `clipped_BT` means nothing there.
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
    policy_logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_BT: Tensor,
    trained_BT: Tensor,
    clip_low: float,
    clip_high: float,
) -> Surrogate:
    """Return the loss whose gradient is the policy gradient; old log-probabilities and clips are not used.

    loss = -A log pi. Shapes: [B, T] x 4 -> [B, T]. No token is ever clipped.

    Source: Williams 1992, REINFORCE.

    >>> policy_gradient(torch.tensor([[-0.5, -2.0]]), torch.zeros(1, 2), torch.tensor([[1.0]]),
    ...                 torch.tensor([[True, True]]), 0.2, 0.2).loss_BT
    tensor([[0.5000, 2.0000]])
    """
    loss_BT = -advantages_BT * policy_logprobs_BT
    return Surrogate(loss_BT, torch.zeros_like(loss_BT, dtype=torch.bool))


def ppo_clip(
    policy_logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_BT: Tensor,
    trained_BT: Tensor,
    clip_low: float,
    clip_high: float,
) -> Surrogate:
    """Return the pessimistic one of the ratio and the clipped ratio, times the advantage.

    loss = -min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A). Shapes: [B, T] x 4 -> [B, T]. The clips are distances
    of the ratio from 1. Where nothing was updated yet rho is exactly 1 and the gradient is that of `policy_gradient`.

    Source: PPO, arXiv 1707.06347, equation 7; one bound each for both sides: DAPO, arXiv 2503.14476, equation 8.

    >>> loss_BT, clipped_BT = ppo_clip(torch.tensor([[0.3, 0.2]]).log(), torch.tensor([[0.2, 0.2]]).log(),
    ...                                torch.tensor([[1.0]]), torch.tensor([[True, True]]), 0.2, 0.2)
    >>> loss_BT, clipped_BT
    (tensor([[-1.2000, -1.0000]]), tensor([[ True, False]]))
    """
    log_ratio_BT = _log_ratio(policy_logprobs_BT, old_logprobs_BT, trained_BT)
    return _with_clipped_ratio(log_ratio_BT, advantages_BT, clip_low, clip_high)


def gspo(
    policy_logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_BT: Tensor,
    trained_BT: Tensor,
    clip_low: float,
    clip_high: float,
) -> Surrogate:
    """Return for every token the clipped ratio of its whole sequence, taken to the power of one over its length.

    loss = -min(s A, clip(s, 1 - clip_low, 1 + clip_high) A) with s = (prod_t rho_t)^(1 / L). Shapes: [B, T] x 4 ->
    [B, T]. The clips are distances of s from 1: far smaller than those of a token's ratio. A sequence counts or is
    clipped as a whole; the gradient goes through all of its trained tokens, so only means and sums over whole sequences
    give the paper's objective.

    Source: GSPO, arXiv 2507.18071, equations 5 and 7.

    >>> loss_BT, clipped_BT = gspo(torch.tensor([[0.1, -0.05, 0.25, 0.0]]), torch.zeros(1, 4), torch.tensor([[-1.0]]),
    ...                            torch.ones(1, 4, dtype=torch.bool), 3e-4, 4e-4)
    >>> loss_BT, clipped_BT.any()
    (tensor([[1.0779, 1.0779, 1.0779, 1.0779]]), tensor(False))
    """
    log_ratio_BT = _log_ratio(policy_logprobs_BT, old_logprobs_BT, trained_BT)
    mean_B1 = log_ratio_BT.sum(1, keepdim=True) / trained_BT.sum(1, keepdim=True).clamp(min=1)
    return _with_clipped_ratio(mean_B1.expand_as(log_ratio_BT), advantages_BT, clip_low, clip_high)


def cispo(
    policy_logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_BT: Tensor,
    trained_BT: Tensor,
    clip_low: float,
    clip_high: float,
) -> Surrogate:
    """Return the policy gradient weighted by the ratio, the weight being capped instead of the token dropped.

    loss = -sg(min(rho, clip_high)) A log pi, where sg stops the gradient. Shapes: [B, T] x 4 -> [B, T]. `clip_high` is
    the largest weight itself, not a distance from 1; `clip_low` is not used. No token is ever clipped.

    Source: CISPO, MiniMax-M1, arXiv 2506.13585, equations 4 and 5; a cap of 5: ScaleRL, arXiv 2510.13786.

    >>> policy_BT = torch.tensor([[0.1, -0.05, 0.25, 0.0]], requires_grad=True)
    >>> surrogate = cispo(policy_BT, torch.zeros(1, 4), torch.tensor([[-1.0]]), torch.ones(1, 4).bool(), 0.0, 1.2)
    >>> torch.autograd.grad(surrogate.loss_BT.sum(), policy_BT)
    (tensor([[1.1052, 0.9512, 1.2000, 1.0000]]),)
    """
    ratio_BT = _ratio(_log_ratio(policy_logprobs_BT, old_logprobs_BT, trained_BT)).detach()
    loss_BT = -ratio_BT.clamp(max=clip_high) * advantages_BT * policy_logprobs_BT
    return Surrogate(loss_BT, torch.zeros_like(loss_BT, dtype=torch.bool))


def dppo(
    policy_logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_BT: Tensor,
    trained_BT: Tensor,
    clip_low: float,
    clip_high: float,
) -> Surrogate:
    """Return the ratio times the advantage, without tokens whose probability has moved far where it is pushed.

    loss = -M rho A; M = 0 where A > 0 and pi - pi_old > clip_high, or A < 0 and pi_old - pi > clip_low, else 1. Shapes:
    [B, T] x 4 -> [B, T]. The clips are probabilities: |pi - pi_old| is the total variation between the two policies
    when all other tokens count as one. A rare token may grow many times, a common one may not.

    Source: DPPO with binary total variation, arXiv 2602.04879, whose old policy is the sampler; 0.15: its code in verl.

    >>> now, old = torch.tensor([[0.3, 0.001, 0.5]]), torch.tensor([[0.2, 0.0001, 0.3]])
    >>> loss_BT, clipped_BT = dppo(now.log(), old.log(), torch.tensor([[1.0]]), torch.ones(1, 3).bool(), 0.15, 0.15)
    >>> loss_BT, clipped_BT
    (tensor([[ -1.5000, -10.0000,  -0.0000]]), tensor([[False, False,  True]]))
    """
    log_ratio_BT = _log_ratio(policy_logprobs_BT, old_logprobs_BT, trained_BT)
    moved_BT = torch.where(trained_BT, policy_logprobs_BT.detach().exp() - old_logprobs_BT.exp(), 0.0)
    beyond_BT = _beyond(moved_BT, advantages_BT, -clip_low, clip_high)
    loss_BT = -torch.where(beyond_BT, 0.0, _ratio(log_ratio_BT)) * advantages_BT
    return Surrogate(loss_BT, beyond_BT | _held(log_ratio_BT, advantages_BT))


def sapo(
    policy_logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_BT: Tensor,
    trained_BT: Tensor,
    clip_low: float,
    clip_high: float,
) -> Surrogate:
    """Return the ratio through a soft gate, times the advantage: the farther from 1, the smaller the gradient.

    loss = -4 / tau sigmoid(tau (rho - 1)) A, tau = clip_high where A > 0 and clip_low where A < 0. Shapes: [B, T] x 4
    -> [B, T]. The clips are temperatures, above 0: how fast the gradient fades. At rho = 1 it is that of
    `policy_gradient`. A token counts as clipped where the gate is shut so far that nothing is left of its gradient.

    Source: SAPO, arXiv 2511.20347, with temperatures of 1 upwards and 1.05 downwards.

    >>> sapo(torch.tensor([[0.0, 0.5]]), torch.zeros(1, 2), torch.tensor([[1.0]]), torch.ones(1, 2).bool(), 1.05, 1.0)
    Surrogate(loss_BT=tensor([[-2.0000, -2.6269]]), clipped_BT=tensor([[False, False]]))
    """
    log_ratio_BT = _log_ratio(policy_logprobs_BT, old_logprobs_BT, trained_BT)
    temperature_BT = torch.full_like(advantages_BT, clip_low).masked_fill(advantages_BT > 0, clip_high)
    gate_BT = torch.sigmoid(temperature_BT * (_ratio(log_ratio_BT) - 1))
    shut_BT = (gate_BT * (1 - gate_BT) == 0) & (advantages_BT != 0)
    loss_BT = -4 / temperature_BT * gate_BT * advantages_BT
    return Surrogate(loss_BT, shut_BT | _held(log_ratio_BT, advantages_BT))


def _log_ratio(policy_logprobs_BT: Tensor, old_logprobs_BT: Tensor, trained_BT: Tensor) -> Tensor:
    """Return log rho, 0 where nothing is trained: an infinity or NaN there reaches neither a ratio nor a gradient."""
    return torch.where(trained_BT, policy_logprobs_BT - old_logprobs_BT, 0.0)


def _ratio(log_ratio_BT: Tensor) -> Tensor:
    return log_ratio_BT.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()


def _with_clipped_ratio(log_ratio_BT: Tensor, advantages_BT: Tensor, clip_low: float, clip_high: float) -> Surrogate:
    ratio_BT, low, high = _ratio(log_ratio_BT), 1 - clip_low, 1 + clip_high
    loss_BT = -torch.minimum(ratio_BT * advantages_BT, ratio_BT.clamp(low, high) * advantages_BT)
    beyond_BT = _beyond(ratio_BT.detach(), advantages_BT, low, high)
    return Surrogate(loss_BT, beyond_BT | _held(log_ratio_BT, advantages_BT))


def _beyond(moved_BT: Tensor, advantages_BT: Tensor, low: float, high: float) -> Tensor:
    """Return where a token has moved past the bound in the direction in which its advantage pushes it."""
    return ((advantages_BT > 0) & (moved_BT > high)) | ((advantages_BT < 0) & (moved_BT < low))


def _held(log_ratio_BT: Tensor, advantages_BT: Tensor) -> Tensor:
    """Return where the log-ratio is held at its limit, so that there is no gradient whatever the clips are."""
    return (advantages_BT != 0) & (log_ratio_BT.detach().abs() > LOG_RATIO_LIMIT)
