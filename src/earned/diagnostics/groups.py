"""Which groups of attempts can teach something, and why the others cannot.

An attempt is *right* when the heaviest part of its reward gave its full value, 1: with a 0/1 check that is reward 1.
Small further parts (format, length) therefore never turn a right answer into a wrong one. Whether a group carries
*signal* is a question of rewards alone: equal rewards carry none, whatever their value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from earned.vocabulary import Rollout, RolloutGroup, Score

TOO_MANY = 0.5
"""A share from which on a cause is the one to mend first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupShares:
    """How the groups of a step came out; mixed, all right, all wrong and unusable together are all groups.

    Only scored attempts are looked at. Shares are of all groups, 0.0 when there are none.
    """

    mixed: float
    """Right and wrong attempts beside each other."""
    all_right: float
    all_wrong: float
    zero_signal: float
    """Equal rewards: with 0/1 rewards the all-right and the all-wrong groups."""
    unusable: int
    """Number of groups with fewer than two scored attempts, which are in none of the shares."""


def is_right(score: Score) -> bool:
    """Return whether the heaviest part of the reward gave its full value; among equal weights the first one decides."""
    heaviest = max(score.parts, key=lambda part: part.weight, default=None)
    return heaviest is not None and heaviest.value is not None and heaviest.value >= 1


def scored(group: RolloutGroup) -> list[Rollout]:
    """Return the attempts of a group that could be judged."""
    return [rollout for rollout in group.rollouts if rollout.score.value is not None]


def carries_signal(group: RolloutGroup) -> bool:
    """Return whether the scored attempts of a group got different rewards."""
    return len({rollout.score.value for rollout in scored(group)}) > 1


def outcomes(groups: Sequence[RolloutGroup]) -> dict[str, tuple[bool, ...]]:
    """Return by problem id whether each attempt that could be judged was right; empty where none could be."""
    found: dict[str, tuple[bool, ...]] = {}
    for group in groups:
        verdicts = tuple(is_right(rollout.score) for rollout in scored(group))
        found[group.prompt.problem.id] = found.get(group.prompt.problem.id, ()) + verdicts
    return found


def group_shares(groups: Sequence[RolloutGroup]) -> GroupShares:
    """Return the shares of mixed, all-right, all-wrong and zero-signal groups."""
    usable = [group for group in groups if len(scored(group)) >= 2]
    verdicts = [{is_right(rollout.score) for rollout in scored(group)} for group in usable]
    total = max(len(groups), 1)
    return GroupShares(
        mixed=verdicts.count({True, False}) / total,
        all_right=verdicts.count({True}) / total,
        all_wrong=verdicts.count({False}) / total,
        zero_signal=sum(not carries_signal(group) for group in usable) / total,
        unusable=len(groups) - len(usable),
    )


def no_signal_advice(groups: Sequence[RolloutGroup], truncated_share: float, empty_steps: int) -> str:
    """Return in words why `empty_steps` steps in a row taught nothing and which key of the recipe to change.

    `groups` are those of the last step; causes that hide others come first.
    """
    return f"{empty_steps} steps in a row taught nothing: {_cause(groups, truncated_share)}"


def no_signal_at_the_start(groups: Sequence[RolloutGroup]) -> str:
    """Return why the attempts of a pre-flight taught nothing, what to change, and how to train all the same."""
    completions = [rollout.completion for group in groups for rollout in group.rollouts]
    problems = len({group.prompt.problem.id for group in groups})
    truncated_share = sum(completion.truncated for completion in completions) / max(len(completions), 1)
    at = f"{problems} training problem{'' if problems == 1 else 's'}"
    return (
        f"there is nothing to learn from at the start: {len(completions)} attempts (preflight_tries) at {at} taught "
        f"nothing: {_cause(groups, truncated_share)} Nothing was written. To train all the same: "
        'rewards.allow = ["no_signal"]'
    )


def _cause(groups: Sequence[RolloutGroup], truncated_share: float) -> str:
    attempts = [len(group.rollouts) for group in groups]
    unscored_share = 1 - sum(len(scored(group)) for group in groups) / max(sum(attempts), 1)
    shares = group_shares(groups)
    if unscored_share >= TOO_MANY:
        return (
            f"{unscored_share:.0%} of the completions could not be scored, so they cannot be compared. Mend the check "
            "(`check` in [rewards]); the explanations of the unscored completions say what failed."
        )
    if attempts and max(attempts) == 1:
        return (
            "every problem got 1 attempt, and one attempt has nothing to be compared with. Raise sampling.group_size "
            "to at least 2, better 8."
        )
    if truncated_share >= TOO_MANY:
        return (
            f"{truncated_share:.0%} of the completions were cut off before they could give an answer. Raise "
            "sampling.max_new_tokens."
        )
    if shares.all_right > shares.all_wrong:
        return (
            f"every attempt was right at {shares.all_right:.0%} of the problems. Give harder problems "
            "(problems.options or problems.source)."
        )
    if shares.all_wrong > 0:
        return (
            f"every attempt was wrong at {shares.all_wrong:.0%} of the problems. Give easier problems "
            "(problems.options), more attempts for each (sampling.group_size), or start from a model warmed up by "
            "imitation of written-out answers (model)."
        )
    return (
        f"all attempts at a problem got the same reward at {shares.zero_signal:.0%} of the problems. Let the reward "
        "tell attempts apart ([rewards]), or raise sampling.temperature."
    )
