"""From scored groups to one advantage a rollout, and to what each part of the reward contributed to it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from earned.algorithms.contributions import SUMS, contributions
from earned.algorithms.named import Algorithm
from earned.vocabulary import Rollout, RolloutGroup


def is_trained(rollout: Rollout, algorithm: Algorithm) -> bool:
    """Return whether an update may train on a rollout: it was scored, and not cut off where that is masked."""
    return rollout.score.value is not None and not (algorithm.mask_truncated and rollout.completion.truncated)


def reward_of(rollout: Rollout, algorithm: Algorithm) -> float | None:
    """Return what the advantages are made of: the score, less the penalty for a missing end; None if unscored."""
    missing = algorithm.missing_eos_penalty if rollout.completion.truncated else 0.0
    return None if rollout.score.value is None else rollout.score.value - missing


def group_advantages(
    groups: Sequence[RolloutGroup], algorithm: Algorithm, penalties: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Return the advantage of every rollout by its id; `penalties`, by id too, are taken off the rewards first.

    An unscored rollout gets 0 and moves no baseline. One that is cut off and masked gets 0, but is compared with.

    >>> group_advantages([], algorithm=None)
    {}
    """
    if not groups:
        return {}
    rewards_PG, scored_PG = _rewards(groups, algorithm, penalties or {})
    advantages_PG = algorithm.advantage(rewards_PG, scored_PG).tolist()
    return {
        rollout.id: advantage if is_trained(rollout, algorithm) else 0.0
        for group, row in zip(groups, advantages_PG, strict=True)
        for rollout, advantage in zip(group.rollouts, row, strict=True)
    }


def with_contributions(groups: Sequence[RolloutGroup], algorithm: Algorithm) -> tuple[RolloutGroup, ...]:
    """Return the groups with the contribution of every part of every score to the advantage of its rollout.

    The contributions of a rollout add up to its advantage, those of one that is not trained on are 0. A part that does
    not apply contributes too, what its baseline takes away. Where the advantage is no sum over the parts, because of a
    value model or because more than the score goes into it, nothing is filled in.
    """
    more = algorithm.critic is not None or algorithm.missing_eos_penalty or algorithm.divergence_in == "reward"
    how = None if more else SUMS.get(algorithm.advantage)
    names = [part.name for part in groups[0].rollouts[0].score.parts] if groups else []
    if how is None or not names:
        return tuple(groups)
    parts_KPG = torch.tensor(
        [[[_paid(rollout, name) for rollout in group.rollouts] for group in groups] for name in names],
        dtype=torch.float64,
    )
    zeros = [0.0] * len(names)
    by_part = contributions(parts_KPG, *_rewards(groups, algorithm, {}), how).permute(1, 2, 0).tolist()
    return tuple(
        replace(
            group,
            rollouts=tuple(
                _credited(rollout, dict(zip(names, values if is_trained(rollout, algorithm) else zeros, strict=True)))
                for rollout, values in zip(group.rollouts, by_attempt, strict=True)
            ),
        )
        for group, by_attempt in zip(groups, by_part, strict=True)
    )


def _rewards(
    groups: Sequence[RolloutGroup], algorithm: Algorithm, penalties: Mapping[str, float]
) -> tuple[Tensor, Tensor]:
    """Return `rewards_PG`, 0 where unscored, and `scored_PG`."""
    rewards = [[reward_of(rollout, algorithm) for rollout in group.rollouts] for group in groups]
    less = [[penalties.get(rollout.id, 0.0) for rollout in group.rollouts] for group in groups]
    rewards_PG = torch.tensor([[value or 0.0 for value in row] for row in rewards], dtype=torch.float64)
    scored_PG = torch.tensor([[value is not None for value in row] for row in rewards])
    return torch.where(scored_PG, rewards_PG - torch.tensor(less, dtype=torch.float64), 0.0), scored_PG


def _paid(rollout: Rollout, name: str) -> float:
    """Return the weighted value of a part, 0 where it does not apply."""
    return sum(part.weight * (part.value or 0.0) for part in rollout.score.parts if part.name == name and part.applies)


def _credited(rollout: Rollout, by_name: dict[str, float]) -> Rollout:
    parts = tuple(replace(part, contribution=by_name.get(part.name)) for part in rollout.score.parts)
    return replace(rollout, score=replace(rollout.score, parts=parts))
