"""What an algorithm makes of a few rewards and a clip of a few probabilities, in numbers and in words.

A twin in plain Python of `algorithms/advantages.py` and `algorithms/surrogates.py`, so that `earned explain` answers
before torch would be loaded; tests hold the two equal for every algorithm.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from earned.errors import RecipeError, did_you_mean

LARGEST = 1e100
"""Beyond it squares would overflow."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an algorithm gets from rewards to advantages."""

    baseline: Literal["nothing", "forecast", "batch", "siblings", "group", "best"]
    """What is subtracted: nothing, a value model's forecast, or a mean. With `best` only the best attempts count."""
    divisor: Literal["nothing", "group deviation", "batch deviation", "centered deviation", "mean"] = "nothing"
    """Deviations are those of the population; the centred one is of the differences from the means of the groups."""

    @property
    def formula(self) -> str:
        """The formula in words."""
        formula = {
            "nothing": "reward",
            "forecast": "reward - forecast of the value model at each token, here of one that still forecasts 0",
            "batch": "reward - mean of all rewards",
            "siblings": "reward - mean of the other attempts",
            "group": "reward - mean of the group",
            "best": "1 for the highest reward of the group, 0 for the others",
        }[self.baseline]
        divisor = {
            "nothing": "",
            "group deviation": "deviation of the group",
            "batch deviation": "deviation of all rewards",
            "centered deviation": "deviation of these differences over all groups",
            "mean": "mean of the group, a reward below 0 counting as 0",
        }[self.divisor]
        return f"({formula}) / {divisor}" if divisor else formula

    @property
    def within_group(self) -> bool:
        """True when an attempt is compared with its siblings alone."""
        return self.baseline in ("siblings", "group", "best")


RELATIVE = Comparison("group", "group deviation")
CENTERED = Comparison("group")
COMPARISONS = {
    "reinforce": Comparison("nothing"),
    "reinforce_baseline": Comparison("batch"),
    "rloo": Comparison("siblings"),
    "reinforce_pp": Comparison("batch", "batch deviation"),
    "reinforce_pp_baseline": Comparison("group", "centered deviation"),
    "grpo": RELATIVE,
    "grpo_paper": RELATIVE,
    "dr_grpo": CENTERED,
    "dapo": RELATIVE,
    "lite_ppo": Comparison("group", "batch deviation"),
    "gspo": RELATIVE,
    "cispo": RELATIVE,
    "maxrl": Comparison("group", "mean"),
    "ppo": Comparison("forecast"),
    "dppo": CENTERED,
    "sapo": RELATIVE,
    "best_of_group": Comparison("best"),
    "default": CENTERED,
}
"""By the names of `algorithms/named.py`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupExplanation:
    """What the attempts at one problem teach."""

    rewards: tuple[float, ...]
    mean: float
    deviation: float
    """Population standard deviation of the rewards, exactly 0 when they are equal."""
    divisor: float
    """What the difference from the baseline was divided by; 1 where there is no division, 0 where it gave 0."""
    advantages: tuple[float, ...]
    lesson: str
    """What the advantages do, in words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClipExplanation:
    """What the clipped objective does with one token."""

    ratio: float
    """New probability over old."""
    objective: float
    """min(ratio A, clipped ratio A), to be raised."""
    winner: Literal["unclipped", "clipped", "equal"]
    """Which side of the minimum is the smaller one."""
    clipped: bool
    """True when the clip leaves the token without gradient."""
    stops_at: float | None
    """Probability beyond which the token stops counting; None when no probability is."""
    lesson: str


def comparison(algorithm: str) -> Comparison:
    """Return how an algorithm compares; raises RecipeError naming the nearest known one."""
    if algorithm not in COMPARISONS:
        hint = did_you_mean(algorithm, list(COMPARISONS))
        raise RecipeError(f"algorithm: no {algorithm!r}.{hint} Known: {', '.join(COMPARISONS)}")
    return COMPARISONS[algorithm]


def explain_advantages(groups: Sequence[Sequence[float]], how: Comparison) -> tuple[GroupExplanation, ...]:
    """Return what each group of rewards teaches; the groups together are the batch.

    Rewards are taken above the lowest one first, so a constant cancels before anything is rounded: equal rewards give
    exactly 0 wherever there is a baseline.

    Raises:
        RecipeError: a group without rewards, or a reward that is not finite or beyond `LARGEST`.

    >>> [group] = explain_advantages([[1, 0, 0, 0]], comparison("dr_grpo"))
    >>> group.mean, group.advantages
    (0.25, (0.75, -0.25, -0.25, -0.25))
    """
    if not groups or not all(groups):
        raise RecipeError("rewards: a group without rewards; write for example 1 0 0 0, or 1 0 0 0 / 1 1 1 0")
    if not all(abs(reward) <= LARGEST for reward in chain(*groups)):
        raise RecipeError(f"rewards: only finite numbers, of size {LARGEST:g} at most, can be compared")
    return tuple(_group(rewards, groups, how) for rewards in groups)


def explain_clip(old: float, new: float, advantage: float, low: float, high: float) -> ClipExplanation:
    """Return what min(ratio A, clip(ratio, low, high) A) does with a token of probability `old`, now `new`.

    Raises:
        RecipeError: a probability outside (0, 1], bounds that are not around 1, or an advantage that is not finite.

    Source: PPO, arXiv 1707.06347, equation 7.

    >>> clip = explain_clip(old=0.2, new=0.3, advantage=1, low=0.8, high=1.2)
    >>> clip.ratio, clip.objective, clip.winner, clip.stops_at
    (1.5, 1.2, 'clipped', 0.24)
    """
    for name, probability in (("old", old), ("new", new)):
        if not 0 < probability <= 1:
            raise RecipeError(f"--{name}: {probability:g} is no probability; give one above 0 and at most 1")
    if not 0 <= low <= 1 <= high:
        raise RecipeError(f"--clip: {low:g} {high:g} are no bounds around 1; 0.8 1.2 holds the ratio within 0.2 of 1")
    if not math.isfinite(advantage):
        raise RecipeError(f"--advantage: {advantage:g} is not finite")
    ratio = _decimal(new / old)
    unclipped, held = ratio * advantage, min(max(ratio, low), high) * advantage
    winner = "equal" if unclipped == held else "unclipped" if unclipped < held else "clipped"
    bound = high if advantage > 0 else low
    limit = _decimal(old * bound)
    stops_at = limit if advantage and 0 < limit < 1 else None
    return ClipExplanation(
        ratio=ratio,
        objective=_decimal(min(unclipped, held)),
        winner=winner,
        clipped=winner == "clipped",
        stops_at=stops_at,
        lesson=_clip_lesson(advantage, winner == "clipped", bound, stops_at),
    )


def _group(rewards: Sequence[float], groups: Sequence[Sequence[float]], how: Comparison) -> GroupExplanation:
    lowest, mean_above = _above(rewards)
    divisor = _divisor(rewards, groups, how)
    advantages = tuple(_divided(value, divisor) for value in _minus_baseline(rewards, groups, how))
    return GroupExplanation(
        rewards=tuple(rewards),
        mean=_decimal(lowest + mean_above),
        deviation=_deviation(rewards),
        divisor=divisor,
        advantages=advantages,
        lesson=_lesson(rewards, advantages, how),
    )


def _minus_baseline(rewards: Sequence[float], groups: Sequence[Sequence[float]], how: Comparison) -> tuple[float, ...]:
    if how.baseline in ("nothing", "forecast"):
        return tuple(rewards)
    if how.divisor == "mean":
        rewards = _successes(rewards)
    lowest, mean_above = _above(list(chain(*groups)) if how.baseline == "batch" else rewards)
    above = [reward - lowest for reward in rewards]
    if how.baseline == "best":
        return tuple(float(value == max(above) > 0) for value in above)
    if how.baseline == "siblings":
        others = max(1, len(rewards) - 1)
        return tuple(value - (mean_above * len(rewards) - value) / others for value in above)
    return tuple(value - mean_above for value in above)


def _divisor(rewards: Sequence[float], groups: Sequence[Sequence[float]], how: Comparison) -> float:
    if how.divisor == "group deviation":
        return _deviation(rewards)
    if how.divisor == "batch deviation":
        return _deviation(list(chain(*groups)))
    if how.divisor == "centered deviation":
        squares = math.fsum(len(group) * _deviation(group) ** 2 for group in groups)
        return math.sqrt(squares / sum(map(len, groups)))
    if how.divisor == "mean":
        return math.fsum(_successes(rewards)) / len(rewards)
    return 1.0


def _successes(rewards: Sequence[float]) -> list[float]:
    return [max(reward, 0.0) for reward in rewards]


def _above(rewards: Sequence[float]) -> tuple[float, float]:
    """Return the lowest reward, and how far the mean is above it."""
    lowest = min(rewards)
    return lowest, math.fsum(reward - lowest for reward in rewards) / len(rewards)


def _deviation(rewards: Sequence[float]) -> float:
    lowest, mean_above = _above(rewards)
    return math.sqrt(math.fsum((reward - lowest - mean_above) ** 2 for reward in rewards) / len(rewards))


def _divided(value: float, divisor: float) -> float:
    return value / divisor if divisor > 0 else 0.0


def _lesson(rewards: Sequence[float], advantages: Sequence[float], how: Comparison) -> str:
    if how.within_group and len(rewards) == 1:
        return "One attempt has nothing to be compared with: its advantage is exactly 0 and it teaches nothing."
    if any(advantages) and len(set(rewards)) > 1:
        return _pushes(advantages)
    if not any(advantages):
        return f"{_why_nothing(rewards, how)}: every advantage is exactly 0 and the group teaches nothing."
    against = {"batch": "the batch", "forecast": "the forecast, here 0,"}.get(how.baseline, "0")
    return (
        f"All rewards are equal and still every attempt gets the same push, because they are compared with {against} "
        "and not with each other: it says nothing about which attempt was better."
    )


def _why_nothing(rewards: Sequence[float], how: Comparison) -> str:
    if len(set(rewards)) > 1:
        return "No reward is above 0, so none is a success"
    return {
        "nothing": "Every reward is 0 and nothing is subtracted",
        "forecast": "Every reward is 0, and so is the forecast",
        "batch": "All rewards are equal, and equal to the mean of the batch",
    }.get(how.baseline, "All rewards are equal, so no attempt did better than another, whatever the reward was")


def _pushes(advantages: Sequence[float]) -> str:
    up, down = sum(value > 0 for value in advantages), sum(value < 0 for value in advantages)
    kinds = (
        (up, "made likelier"),
        (down, "made less likely"),
        (len(advantages) - up - down, "left alone"),
    )
    return f"Of {len(advantages)} attempts: " + ", ".join(f"{count} {what}" for count, what in kinds if count) + "."


def _clip_lesson(advantage: float, clipped: bool, bound: float, stops_at: float | None) -> str:
    if advantage == 0:
        return "An advantage of 0 gives no gradient, whatever the ratio is."
    pushed = f"The token is pushed {'up' if advantage > 0 else 'down'}"
    if stops_at is None:
        return f"{pushed} and counts at every probability: none is beyond {bound:g} times the old one."
    if clipped:
        return (
            f"{pushed} to a probability of {stops_at:g}, {bound:g} times the old one. It is beyond that, so the "
            "clipped side of the minimum wins, which is flat: the token stops counting."
        )
    return f"{pushed} to a probability of {stops_at:g}, {bound:g} times the old one. Until then it counts in full."


def _decimal(value: float) -> float:
    """Return the value to 12 digits: in binary 0.3 / 0.2 is 1.4999999999999998."""
    return float(f"{value:.12g}")
