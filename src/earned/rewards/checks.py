"""The table of checks: what `check = "..."` in `[rewards.NAME]` may name."""

from collections.abc import Callable, Mapping

from earned.errors import RecipeError
from earned.recipe import Allowance, RewardPart, did_you_mean, validate
from earned.rewards.controls import ConstantReward, RandomReward
from earned.rewards.exact import ExactCheck, read_gold_text
from earned.rewards.number import NumberCheck, read_gold_number
from earned.rewards.verdict import BuiltInCheck, Check

CHECKS: Mapping[str, type[BuiltInCheck]] = {
    "number": NumberCheck,
    "exact": ExactCheck,
    "random": RandomReward,
    "constant": ConstantReward,
}

CONTROLS: Mapping[str, Allowance] = {"random": "random_reward", "constant": "constant_reward"}
"""Checks that cannot teach anything, and the word in `rewards.allow` that says they are meant."""

GOLD_PARSERS: Mapping[str, Callable[[str], object | None]] = {"number": read_gold_number, "exact": read_gold_text}
"""From a check that compares with the gold answer to what it makes of one; None when it can make nothing of it."""


def make_check(name: str, part: RewardPart) -> Check:
    """Return the check of `[rewards.name]`.

    Raises:
        RecipeError: for an unknown check, or an unknown or refused option of it.

    >>> make_check("answer", RewardPart(check="numbr"))
    Traceback (most recent call last):
    earned.errors.RecipeError: rewards.answer.check: unknown check 'numbr', allowed: 'number', 'exact', 'random', \
'constant'. Did you mean 'number'?
    """
    if part.check not in CHECKS:
        allowed = ", ".join(map(repr, CHECKS))
        raise RecipeError(
            f"rewards.{name}.check: unknown check {part.check!r}, allowed: {allowed}."
            f"{did_you_mean(part.check, [*CHECKS])}"
        )
    return validate(CHECKS[part.check], part.options, f"rewards.{name}.options")
