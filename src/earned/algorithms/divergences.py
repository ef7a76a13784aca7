"""How far the policy is from its reference, in nats a token.

Shapes: B sequences, T tokens, V vocabulary. With p the policy, q the reference and x drawn from p, `k1`, `k2` and `k3`
estimate the reverse divergence KL(p || q) = E_p[log p - log q] from the log-probabilities of the drawn token alone;
`exact` takes the whole distribution. What an estimator is worth as a number and as a loss are two questions: as a loss,
only its own dependence on the policy is differentiated, not that of the draw. Log-probabilities are in nats, and finite
where nothing is trained: a square passes NaN on to the gradient even at weight 0.

Source: Schulman 2020, "Approximating KL divergence".
"""

import math

import torch
from torch import Tensor

from earned.algorithms.surrogates import LOG_RATIO_LIMIT


def k1(policy_logprobs_BT: Tensor, reference_logprobs_BT: Tensor) -> Tensor:
    """Return the log-ratio: unbiased, of either sign, and useless as a loss.

    k1 = log p - log q. Shapes: [B, T] x 2 -> [B, T]. Its expected gradient as a loss is 0, E_p[grad log p]; taken
    off the reward its gradient is that of KL(p || q), and there it is the only right one of the three.

    Source: Schulman 2020, k1.

    >>> k1(torch.tensor([[0.5]]).log(), torch.tensor([[0.25]]).log())
    tensor([[0.6931]])
    """
    return policy_logprobs_BT - reference_logprobs_BT


def k2(policy_logprobs_BT: Tensor, reference_logprobs_BT: Tensor) -> Tensor:
    """Return half the squared log-ratio: biased, never negative, and right as a loss.

    k2 = (log p - log q)^2 / 2. Shapes: [B, T] x 2 -> [B, T]. Its expected gradient as a loss is that of KL(p || q).

    Source: Schulman 2020, k2.

    >>> k2(torch.tensor([[0.5]]).log(), torch.tensor([[0.25]]).log())
    tensor([[0.2402]])
    """
    return (policy_logprobs_BT - reference_logprobs_BT).square() / 2


def k3(policy_logprobs_BT: Tensor, reference_logprobs_BT: Tensor) -> Tensor:
    """Return the log-ratio with a control variate: unbiased, never negative, and as a loss the forward divergence.

    k3 = q / p - 1 - log(q / p). Shapes: [B, T] x 2 -> [B, T]. Its expected gradient as a loss is that of KL(q || p).
    A token the reference finds more than `LOG_RATIO_LIMIT` nats likelier is held there, far from overflow.

    Source: Schulman 2020, k3; GRPO, arXiv 2402.03300, equation 4.

    >>> k3(torch.tensor([[0.5]]).log(), torch.tensor([[0.25]]).log())
    tensor([[0.1931]])
    """
    log_ratio_BT = (reference_logprobs_BT - policy_logprobs_BT).clamp(max=LOG_RATIO_LIMIT)
    return torch.expm1(log_ratio_BT) - log_ratio_BT


def exact(policy_logprobs_BTV: Tensor, reference_logprobs_BTV: Tensor) -> Tensor:
    """Return the divergence itself, from the log-probabilities of the whole vocabulary.

    KL(p || q) = sum_v p_v (log p_v - log q_v). Shapes: [..., V] x 2 -> [...]. Never negative; its gradient is the true
    one. A token the policy never draws adds 0.

    Source: Kullback and Leibler 1951.

    >>> exact(torch.tensor([0.7, 0.2, 0.1]).log(), torch.tensor([0.5, 0.3, 0.2]).log())
    tensor(0.0851)
    """
    possible_BTV = policy_logprobs_BTV > -math.inf
    log_ratio_BTV = torch.where(possible_BTV, policy_logprobs_BTV - reference_logprobs_BTV, 0.0)
    return (policy_logprobs_BTV.exp() * log_ratio_BTV).sum(-1)
