"""What each part of a reward contributes to the advantage.

Shapes: K parts, P problems, G samples each. An advantage that subtracts means and divides by a deviation is a sum over
the parts of the reward: means are linear, and the deviation is one number for all parts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from earned.algorithms import advantages
from earned.algorithms.advantages import BATCH, GROUP

AdvantageFunction = Callable[[Tensor, Tensor | None], Tensor]


@dataclass(frozen=True, slots=True)
class Deviation:
    """The number that an advantage is divided by."""

    centered: AdvantageFunction
    """Rewards minus their mean."""
    over: tuple[int, ...]
    correction: int = 0
    """0 for the population deviation, 1 for the sample deviation."""

    def __call__(self, rewards_PG: Tensor, scored_PG: Tensor) -> Tensor:
        """Return sqrt(sum_j (r_j - mean(r))^2 / (n - correction)), [P, 1] or [1, 1]."""
        count = (scored_PG.sum(self.over, keepdim=True) - self.correction).clamp(min=1)
        return (self.centered(rewards_PG, scored_PG).square().sum(self.over, keepdim=True) / count).sqrt()


@dataclass(frozen=True, slots=True)
class Sum:
    """An advantage as a linear function of the rewards, divided by a number that is the same for all parts."""

    linear: AdvantageFunction
    divisor: Deviation | None = None


SUMS: Mapping[AdvantageFunction, Sum] = {
    advantages.plain_reward: Sum(advantages.plain_reward),
    advantages.batch_mean_baseline: Sum(advantages.batch_mean_baseline),
    advantages.leave_one_out: Sum(advantages.leave_one_out),
    advantages.group_centered: Sum(advantages.group_centered),
    advantages.group_relative: Sum(advantages.group_centered, Deviation(advantages.group_centered, GROUP)),
    advantages.group_relative_sample: Sum(advantages.group_centered, Deviation(advantages.group_centered, GROUP, 1)),
    advantages.batch_deviation: Sum(advantages.group_centered, Deviation(advantages.batch_mean_baseline, BATCH)),
    advantages.batch_relative: Sum(advantages.batch_mean_baseline, Deviation(advantages.batch_mean_baseline, BATCH)),
    advantages.centered_deviation: Sum(advantages.group_centered, Deviation(advantages.group_centered, BATCH)),
}
"""From an advantage to how it is a sum. Those that are none are not here: `mean_relative` counts a reward below 0 as 0,
which no part does alone; `best_of_group` compares whole rewards."""


def contributions(parts_KPG: Tensor, rewards_PG: Tensor, scored_PG: Tensor, how: Sum) -> Tensor:
    """Return the share of every part in the advantage; summed over the parts it is the advantage, up to rounding.

    c_ki = (w_k v_ki - baseline of w_k v_k) / deviation of r, in units of the advantage. Shapes: [K, P, G] weighted
    values and [P, G] rewards, their sums -> [K, P, G]. An unscored attempt gets 0 for every part. Where all rewards are
    equal, parts that cancel each other show as such, unless the advantage divides by the deviation of just these
    rewards: then every part gets 0.

    >>> parts_KPG = torch.tensor([[[1.0, 0.0]], [[0.0, 0.5]]])
    >>> rewards_PG, scored_PG = parts_KPG.sum(0), torch.tensor([[True, True]])
    >>> contributions(parts_KPG, rewards_PG, scored_PG, SUMS[advantages.group_centered]).tolist()
    [[[0.5, -0.5]], [[-0.25, 0.25]]]
    """
    linear_KPG = torch.stack([how.linear(part_PG, scored_PG) for part_PG in parts_KPG])
    if how.divisor is None:
        return linear_KPG
    deviation = how.divisor(rewards_PG, scored_PG)
    return torch.where(deviation > 0, linear_KPG / deviation, 0.0)
