"""The metrics of a step that can be read off its rollouts; their keys are declared in the records."""

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev

from earned.diagnostics.groups import group_shares, is_right, scored
from earned.vocabulary import Rollout, RolloutGroup


def rollout_metrics(groups: Sequence[RolloutGroup], advantages: Mapping[str, float]) -> dict[str, float]:
    """Return `reward/*`, `groups/*`, `completions/*` and `advantage/*` of one step's groups.

    An unscored completion counts in the overall lengths, the truncated share and `reward/unscored_share`, nowhere
    else. The mean of nothing is left out, so without rollouts the result is empty. `advantages` are by rollout id.
    """
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    if not rollouts:
        return {}
    judged = [rollout for group in groups for rollout in scored(group)]
    means = {
        **_reward_values(judged),
        "reward/unscored_share": [rollout.score.value is None for rollout in rollouts],
        "completions/length_mean": _lengths(rollouts),
        "completions/length_right_mean": _lengths([rollout for rollout in judged if is_right(rollout.score)]),
        "completions/length_wrong_mean": _lengths([rollout for rollout in judged if not is_right(rollout.score)]),
        "completions/truncated_share": [rollout.completion.truncated for rollout in rollouts],
        "completions/distinct_answers_mean": [_distinct_answers(group) for group in groups],
        "advantage/absolute_mean": [abs(value) for value in advantages.values()],
    }
    shares = group_shares(groups)
    return {
        **{key: fmean(values) for key, values in means.items() if values},
        **_reward_deviation(judged),
        "completions/length_max": float(max(_lengths(rollouts))),
        "groups/mixed_share": shares.mixed,
        "groups/all_right_share": shares.all_right,
        "groups/all_wrong_share": shares.all_wrong,
        "groups/zero_signal_share": shares.zero_signal,
        "groups/unusable": float(shares.unusable),
    }


def _lengths(rollouts: Sequence[Rollout]) -> list[int]:
    return [rollout.completion.length for rollout in rollouts]


def _reward_values(judged: Sequence[Rollout]) -> dict[str, list[float]]:
    """Return the values whose means are the reward's and its parts'."""
    values: dict[str, list[float]] = {}
    for rollout in judged:
        if rollout.score.value is not None:
            values.setdefault("reward/mean", []).append(rollout.score.value)
        for part in rollout.score.parts:
            if part.value is not None:
                values.setdefault(f"reward/part/{part.name}", []).append(part.value)
            if part.contribution is not None:
                values.setdefault(f"reward/contribution/{part.name}", []).append(abs(part.contribution))
    return values


def _reward_deviation(judged: Sequence[Rollout]) -> dict[str, float]:
    rewards = [rollout.score.value for rollout in judged if rollout.score.value is not None]
    return {"reward/deviation": pstdev(rewards)} if rewards else {}


def _distinct_answers(group: RolloutGroup) -> int:
    """Return how many different answers were read; attempts without an answer add none."""
    return len({rollout.score.extracted for rollout in group.rollouts} - {None})
