"""How much better than its siblings each attempt did.

Shapes: P problems, G samples each. Every function takes `rewards_PG` and `scored_PG` (bool, True = scored; None = all)
and returns `advantages_PG` in the unit named. An unscored attempt is left out of every mean and deviation and gets
exactly 0. Means and deviations are taken of rewards above the lowest one: a constant cancels before anything is
rounded, so equal rewards give exactly 0 in every method with a baseline, whatever their value.
"""

import math

import torch
from torch import Tensor

GROUP = (1,)
BATCH = (0, 1)


def plain_reward(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return the reward itself: no baseline, hence the highest variance.

    A_i = r_i, in units of reward. Shapes: [P, G] -> [P, G]. Equal rewards do not give 0.

    Source: Williams 1992, REINFORCE with b = 0.

    >>> plain_reward(torch.tensor([[1.0, 0.0, 0.0, 0.0]])).tolist()
    [[1.0, 0.0, 0.0, 0.0]]
    """
    return torch.where(_scored_or_all(rewards_PG, scored_PG), rewards_PG, 0.0)


def batch_mean_baseline(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return the reward minus the mean over the whole batch.

    A_i = r_i - mean(all r), in units of reward. Shapes: [P, G] -> [P, G]. A group of equal rewards does not give 0
    unless the whole batch is equal.

    Source: Williams 1992, REINFORCE with a reinforcement baseline.

    >>> batch_mean_baseline(torch.tensor([[1.0, 1.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.5], [-0.5, -0.5]]
    """
    return _centered(rewards_PG, _scored_or_all(rewards_PG, scored_PG), BATCH)


def leave_one_out(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return the reward minus the mean of the other attempts at the same problem.

    A_i = r_i - sum_{j != i} r_j / (G - 1), in units of reward. Shapes: [P, G] -> [P, G]. A group of equal rewards, or
    with a single scored attempt, gives exactly 0.

    Source: Kool et al. 2019; RLOO, arXiv 2402.14740.

    >>> leave_one_out(torch.tensor([[1.0, 0.0, 0.0]])).tolist()
    [[1.0, -0.5, -0.5]]
    """
    scored_PG = _scored_or_all(rewards_PG, scored_PG)
    above_PG = _above_lowest(rewards_PG, scored_PG, GROUP)
    others_P1 = (scored_PG.sum(GROUP, keepdim=True) - 1).clamp(min=1)
    baseline_PG = (above_PG.sum(GROUP, keepdim=True) - above_PG) / others_P1
    return torch.where(scored_PG, above_PG - baseline_PG, 0.0)


def group_centered(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return the reward minus the mean of its group.

    A_i = r_i - mean(r), in units of reward. Shapes: [P, G] -> [P, G]. A group of equal rewards, or with a single scored
    attempt, gives exactly 0.

    Source: Dr. GRPO, arXiv 2503.20783, section 3.

    >>> group_centered(torch.tensor([[1.0, 0.0, 0.0, 0.0]])).tolist()
    [[0.75, -0.25, -0.25, -0.25]]
    """
    return _centered(rewards_PG, _scored_or_all(rewards_PG, scored_PG), GROUP)


def group_relative(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return the reward in population deviations from the mean of its group.

    A_i = (r_i - mean(r)) / sqrt(sum_j (r_j - mean(r))^2 / G), without unit. Shapes: [P, G] -> [P, G]. A group of equal
    rewards, or with a single scored attempt, gives exactly 0; no attempt is beyond sqrt(G - 1).

    Source: GRPO, arXiv 2402.03300, section 4.1.

    >>> group_relative(torch.tensor([[1.0, 0.0, 1.0, 0.0]])).tolist()
    [[1.0, -1.0, 1.0, -1.0]]
    """
    scored_PG = _scored_or_all(rewards_PG, scored_PG)
    centered_PG = _centered(rewards_PG, scored_PG, GROUP)
    return _divided(centered_PG, _deviation(centered_PG, scored_PG, GROUP))


def group_relative_sample(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return the reward in sample deviations from the mean of its group.

    A_i = (r_i - mean(r)) / sqrt(sum_j (r_j - mean(r))^2 / (G - 1)), without unit. Shapes: [P, G] -> [P, G]. A group of
    equal rewards, or with a single scored attempt, gives exactly 0.

    Source: the deviation in the GRPO of TRL and of verl, which add 1e-4 and 1e-6 to it; nothing is added here.

    >>> group_relative_sample(torch.tensor([[1.0, 0.0, 0.0, 0.0]])).tolist()
    [[1.5, -0.5, -0.5, -0.5]]
    """
    scored_PG = _scored_or_all(rewards_PG, scored_PG)
    centered_PG = _centered(rewards_PG, scored_PG, GROUP)
    return _divided(centered_PG, _deviation(centered_PG, scored_PG, GROUP, correction=1))


def batch_deviation(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return the reward minus the mean of its group, in population deviations of the whole batch.

    A_i = (r_i - mean(group r)) / std(all r), without unit. Shapes: [P, G] -> [P, G]. A group of equal rewards, or with
    a single scored attempt, gives exactly 0.

    Source: Lite PPO, arXiv 2508.08221.

    >>> batch_deviation(torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]])).tolist()
    [[1.5, -0.5, -0.5, -0.5], [0.5, 0.5, 0.5, -1.5]]
    """
    scored_PG = _scored_or_all(rewards_PG, scored_PG)
    deviation_11 = _deviation(_centered(rewards_PG, scored_PG, BATCH), scored_PG, BATCH)
    return _divided(_centered(rewards_PG, scored_PG, GROUP), deviation_11)


def batch_relative(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return the reward in population deviations from the mean of the whole batch.

    A_i = (r_i - mean(all r)) / std(all r), without unit. Shapes: [P, G] -> [P, G]. A group of equal rewards does not
    give 0 unless the whole batch is equal, so a hard problem's failures count as much as an easy one's.

    Source: REINFORCE++, arXiv 2501.03262, one attempt a problem. Statistics are over attempts here, not over tokens.

    >>> batch_relative(torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]])).tolist()
    [[1.0, -1.0, -1.0, -1.0], [1.0, 1.0, 1.0, -1.0]]
    """
    scored_PG = _scored_or_all(rewards_PG, scored_PG)
    centered_PG = _centered(rewards_PG, scored_PG, BATCH)
    return _divided(centered_PG, _deviation(centered_PG, scored_PG, BATCH))


def centered_deviation(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return the reward minus the mean of its group, in population deviations of these differences over the batch.

    A_i = c_i / sqrt(mean(all c^2)) with c_i = r_i - mean(group r), without unit. Shapes: [P, G] -> [P, G]. A group of
    equal rewards, or with a single scored attempt, gives exactly 0, but makes the deviation smaller for the others.

    Source: REINFORCE++ with baseline, arXiv 2501.03262. Statistics are over attempts here, not over tokens.

    >>> centered_deviation(torch.tensor([[2.0, 0.0], [14.0, 0.0]]))
    tensor([[ 0.2000, -0.2000],
            [ 1.4000, -1.4000]])
    """
    scored_PG = _scored_or_all(rewards_PG, scored_PG)
    centered_PG = _centered(rewards_PG, scored_PG, GROUP)
    return _divided(centered_PG, _deviation(centered_PG, scored_PG, BATCH))


def mean_relative(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return the reward minus the mean of its group, divided by that mean: what is rarely solved counts more.

    A_i = (r_i - mean(r)) / mean(r), 0 where mean(r) = 0, without unit. Shapes: [P, G] -> [P, G]. Meant for rewards of 0
    and 1, where it raises the logarithm of the chance to solve a problem; defined for all from 0 on, and within -1 and
    G - 1. A reward below 0 counts as 0: it is no success, and a mean near 0 would make advantages as large as you like.
    A group of equal rewards, or with a single scored attempt, gives exactly 0.

    Source: MaxRL, arXiv 2602.02710.

    >>> mean_relative(torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 0.0, -1.0, -1.0]])).tolist()
    [[3.0, -1.0, -1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [3.0, -1.0, -1.0, -1.0]]
    """
    scored_PG = _scored_or_all(rewards_PG, scored_PG)
    successes_PG = torch.where(scored_PG, rewards_PG, 0.0).clamp(min=0)
    mean_P1 = successes_PG.sum(GROUP, keepdim=True) / scored_PG.sum(GROUP, keepdim=True).clamp(min=1)
    return _divided(_centered(successes_PG, scored_PG, GROUP), mean_P1)


def best_of_group(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return 1 for the attempts with the highest reward of their group, 0 for the others: they are imitated.

    A_i = 1 where r_i = max(r) > min(r), else 0, without unit. Shapes: [P, G] -> [P, G]. All that share the highest
    reward get 1. Nothing is ever pushed down. A group of equal rewards, or with a single scored attempt, gives exactly
    0: its best beat nobody.

    Source: RAFT, arXiv 2304.06767, which keeps one attempt of a problem, also where all are equal.

    >>> best_of_group(torch.tensor([[1.0, 0.0, 0.5, 1.0], [0.3, 0.3, 0.3, 0.3]])).tolist()
    [[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]
    """
    scored_PG = _scored_or_all(rewards_PG, scored_PG)
    above_PG = _above_lowest(rewards_PG, scored_PG, GROUP)
    highest_P1 = above_PG.amax(GROUP, keepdim=True)
    return ((above_PG == highest_P1) & (above_PG > 0)).to(rewards_PG.dtype)


def _scored_or_all(rewards_PG: Tensor, scored_PG: Tensor | None) -> Tensor:
    assert rewards_PG.ndim == 2 and rewards_PG.is_floating_point(), "rewards are floats [P, G]"
    if scored_PG is None:
        return torch.ones_like(rewards_PG, dtype=torch.bool)
    assert scored_PG.shape == rewards_PG.shape and scored_PG.dtype == torch.bool, "scored is bool [P, G]"
    return scored_PG


def _above_lowest(rewards_PG: Tensor, scored_PG: Tensor, over: tuple[int, ...]) -> Tensor:
    """Return r - min(r) over the scored, 0 where unscored; all exactly 0 when the scored rewards are equal."""
    lowest = rewards_PG.masked_fill(~scored_PG, math.inf).amin(over, keepdim=True)
    return torch.where(scored_PG, rewards_PG - lowest, 0.0)


def _centered(rewards_PG: Tensor, scored_PG: Tensor, over: tuple[int, ...]) -> Tensor:
    """Return r - mean(r) over the scored, 0 where unscored."""
    above_PG = _above_lowest(rewards_PG, scored_PG, over)
    mean = above_PG.sum(over, keepdim=True) / scored_PG.sum(over, keepdim=True).clamp(min=1)
    return torch.where(scored_PG, above_PG - mean, 0.0)


def _deviation(centered_PG: Tensor, scored_PG: Tensor, over: tuple[int, ...], correction: int = 0) -> Tensor:
    """Return the deviation of values that are centred already: E[x^2] - E[x]^2 would not be 0 for equal rewards."""
    count = (scored_PG.sum(over, keepdim=True) - correction).clamp(min=1)
    return (centered_PG.square().sum(over, keepdim=True) / count).sqrt()


def _divided(values_PG: Tensor, deviation: Tensor) -> Tensor:
    return torch.where(deviation > 0, values_PG / deviation, 0.0)
