"""From scored groups to one advantage a rollout."""

from collections.abc import Sequence

import torch

from earned.algorithms.named import Algorithm
from earned.vocabulary import RolloutGroup


def group_advantages(groups: Sequence[RolloutGroup], algorithm: Algorithm) -> dict[str, float]:
    """Return the advantage of every rollout by its id; an unscored rollout gets 0 and moves no baseline.

    >>> group_advantages([], algorithm=None)
    {}
    """
    if not groups:
        return {}
    scores_PG = [[rollout.score.value for rollout in group.rollouts] for group in groups]
    rewards_PG = torch.tensor([[value or 0.0 for value in row] for row in scores_PG], dtype=torch.float64)
    scored_PG = torch.tensor([[value is not None for value in row] for row in scores_PG])
    advantages_PG = algorithm.advantage(rewards_PG, scored_PG).tolist()
    return {
        rollout.id: advantage
        for group, row in zip(groups, advantages_PG, strict=True)
        for rollout, advantage in zip(group.rollouts, row, strict=True)
    }
