"""From scored groups to one advantage a rollout, and to what each part of the reward contributed to it."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from earned.algorithms.contributions import SUMS, contributions
from earned.algorithms.named import Algorithm
from earned.vocabulary import Rollout, RolloutGroup


def group_advantages(groups: Sequence[RolloutGroup], algorithm: Algorithm) -> dict[str, float]:
    """Return the advantage of every rollout by its id; an unscored rollout gets 0 and moves no baseline.

    >>> group_advantages([], algorithm=None)
    {}
    """
    if not groups:
        return {}
    rewards_PG, scored_PG = _rewards(groups)
    advantages_PG = algorithm.advantage(rewards_PG, scored_PG).tolist()
    return {
        rollout.id: advantage
        for group, row in zip(groups, advantages_PG, strict=True)
        for rollout, advantage in zip(group.rollouts, row, strict=True)
    }


def with_contributions(groups: Sequence[RolloutGroup], algorithm: Algorithm) -> tuple[RolloutGroup, ...]:
    """Return the groups with the contribution of every part of every score to the advantage of its rollout.

    The contributions of a rollout add up to its advantage, those of an unscored one are 0. A part that does not apply
    contributes too, what its baseline takes away. Where the advantage is no sum over the parts, nothing is filled in.
    """
    how = SUMS.get(algorithm.advantage)
    names = [part.name for part in groups[0].rollouts[0].score.parts] if groups else []
    if how is None or not names:
        return tuple(groups)
    parts_KPG = torch.tensor(
        [[[_paid(rollout, name) for rollout in group.rollouts] for group in groups] for name in names],
        dtype=torch.float64,
    )
    by_part = contributions(parts_KPG, *_rewards(groups), how).permute(1, 2, 0).tolist()
    return tuple(
        replace(
            group,
            rollouts=tuple(
                _credited(rollout, dict(zip(names, values, strict=True)))
                for rollout, values in zip(group.rollouts, by_attempt, strict=True)
            ),
        )
        for group, by_attempt in zip(groups, by_part, strict=True)
    )


def _rewards(groups: Sequence[RolloutGroup]) -> tuple[Tensor, Tensor]:
    """Return `rewards_PG`, 0 where unscored, and `scored_PG`."""
    values_PG = [[rollout.score.value for rollout in group.rollouts] for group in groups]
    rewards_PG = torch.tensor([[value or 0.0 for value in row] for row in values_PG], dtype=torch.float64)
    return rewards_PG, torch.tensor([[value is not None for value in row] for row in values_PG])


def _paid(rollout: Rollout, name: str) -> float:
    """Return the weighted value of a part, 0 where it does not apply."""
    return sum(part.weight * (part.value or 0.0) for part in rollout.score.parts if part.name == name and part.applies)


def _credited(rollout: Rollout, by_name: dict[str, float]) -> Rollout:
    parts = tuple(replace(part, contribution=by_name.get(part.name)) for part in rollout.score.parts)
    return replace(rollout, score=replace(rollout.score, parts=parts))
