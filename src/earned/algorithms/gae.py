"""Advantages from a value model, and what the value model is trained on.

Shapes: B sequences, T tokens. `values_BT` at token t is the forecast made before token t, of what is still to come;
after the last trained token nothing comes, whether the model ended there or was cut off. Only trained tokens count:
what something else wrote in between (a tool) is passed over, and takes no discount.
"""

import torch
from torch import Tensor


def last_token_rewards(rewards_B: Tensor, trained_BT: Tensor) -> Tensor:
    """Return each sequence's reward at its last trained token, 0 at all others.

    Shapes: [B] and bool [B, T] -> [B, T], in units of reward. A row without trained token has no place for its reward.

    Source: Ziegler et al. 2019, arXiv 1909.08593, section 2.1.

    >>> last_token_rewards(torch.tensor([1.0, 0.5]), torch.tensor([[True, True, False], [False, True, True]]))
    tensor([[0.0000, 1.0000, 0.0000],
            [0.0000, 0.0000, 0.5000]])
    """
    after_BT = trained_BT.flip(1).cumsum(1).flip(1)
    return rewards_B[:, None] * (trained_BT & (after_BT == 1))


@torch.no_grad()
def generalized_advantages(
    rewards_BT: Tensor, values_BT: Tensor, trained_BT: Tensor, gamma: float, gae_lambda: float
) -> tuple[Tensor, Tensor]:
    """Return the advantage of every token, and the return that its value should have forecast.

    A_t = sum_l (gamma lambda)^l delta_{t+l} with delta_t = r_t + gamma V_{t+1} - V_t, and R_t = A_t + V_t. Shapes:
    [B, T] x 2, bool [B, T] -> [B, T] x 2, in units of reward; 0 where not trained. With gamma = lambda = 1 the return
    is the reward still to come, whatever the values; with values of 0 the advantage is too.

    Source: Schulman et al. 2015, arXiv 1506.02438, equation 16.

    >>> rewards, values = torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([[0.5, 0.6, 0.8]])
    >>> generalized_advantages(rewards, values, torch.ones(1, 3, dtype=torch.bool), gamma=1.0, gae_lambda=0.95)
    (tensor([[0.4705, 0.3900, 0.2000]]), tensor([[0.9705, 0.9900, 1.0000]]))
    """
    advantages_BT = torch.zeros_like(values_BT)
    next_value_B = next_advantage_B = torch.zeros_like(values_BT[:, 0])
    for t in reversed(range(values_BT.shape[1])):
        trained_B = trained_BT[:, t]
        delta_B = rewards_BT[:, t] + gamma * next_value_B - values_BT[:, t]
        advantage_B = delta_B + gamma * gae_lambda * next_advantage_B
        advantages_BT[:, t] = torch.where(trained_B, advantage_B, 0.0)
        next_value_B = torch.where(trained_B, values_BT[:, t], next_value_B)
        next_advantage_B = torch.where(trained_B, advantage_B, next_advantage_B)
    return advantages_BT, torch.where(trained_BT, advantages_BT + values_BT, 0.0)


def whitened(values_BT: Tensor, trained_BT: Tensor) -> Tensor:
    """Return the values in population deviations from their mean, both over all trained tokens.

    (x - mean) / std, without unit. Shapes: [B, T] and bool [B, T] -> [B, T]; 0 where not trained, and everywhere when
    all are equal. Signs can flip: a token better than nothing but worse than most is pushed down.

    Source: Ziegler et al. 2019, lm-human-preferences at 1ab856d, which uses the population deviation too.

    >>> whitened(torch.tensor([[0.4705, 0.3900, 0.2000]]), torch.ones(1, 3, dtype=torch.bool))
    tensor([[ 1.0317,  0.3218, -1.3535]])
    """
    count = trained_BT.sum().clamp(min=1)
    above_BT = torch.where(trained_BT, values_BT - values_BT.masked_fill(~trained_BT, torch.inf).min(), 0.0)
    centered_BT = torch.where(trained_BT, above_BT - above_BT.sum() / count, 0.0)
    deviation = (centered_BT.square().sum() / count).sqrt()
    return torch.where(deviation > 0, centered_BT / deviation, 0.0)


def value_loss(values_BT: Tensor, old_values_BT: Tensor, returns_BT: Tensor, clip: float | None) -> Tensor:
    """Return half the squared error of every value; with a clip, of the worse of the value and the value held near.

    max((V - R)^2, (clip(V, V_old - c, V_old + c) - R)^2) / 2. Shapes: [B, T] x 3 -> [B, T], in squared units of reward.
    A value that moved farther than the clip towards its return has no gradient.

    Source: Ziegler et al. 2019, lm-human-preferences at 1ab856d.

    >>> value_loss(torch.tensor([[0.9]]), torch.tensor([[0.5]]), torch.tensor([[1.0]]), clip=0.2)
    tensor([[0.0450]])
    """
    error_BT = (values_BT - returns_BT).square()
    if clip is not None:
        held_BT = old_values_BT + (values_BT - old_values_BT).clamp(-clip, clip)
        error_BT = torch.maximum(error_BT, (held_BT - returns_BT).square())
    return error_BT / 2


def explained_variance(values_N: Tensor, returns_N: Tensor) -> Tensor:
    """Return how much of the variance of the returns the values forecast: 1 all, 0 no more than their mean would.

    1 - Var(R - V) / Var(R), a share. Shapes: [N] x 2 -> []. Below 0 the values are worse than a constant. Returns that
    are all equal leave nothing to explain: NaN.

    >>> explained_variance(torch.tensor([0.0, 0.5, 1.0]), torch.tensor([0.0, 0.0, 1.0]))
    tensor(0.7500)
    """
    spread = returns_N.var(correction=0)
    unexplained = (returns_N - values_N).var(correction=0)
    return torch.where(returns_N.min() < returns_N.max(), 1 - unexplained / spread, torch.nan)
