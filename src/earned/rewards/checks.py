"""The table of checks: what `check = "..."` in `[rewards.NAME]` may name."""

from collections.abc import Callable, Mapping

from earned.errors import RecipeError
from earned.recipe import Allowance, RewardPart, did_you_mean, validate
from earned.rewards.controls import ConstantReward, RandomReward
from earned.rewards.exact import ExactCheck, read_gold_text
from earned.rewards.number import NumberCheck, read_gold_number
from earned.rewards.user_reward import FILE_MARK, HANDED_OVER, Resources, file_reward, handed_over_reward
from earned.rewards.verdict import BuiltInCheck, Check, PerAttempt

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


def make_check(where: str, part: RewardPart, resources: Resources | None = None) -> Check:
    """Return the check of a part; `where` is its table in the recipe, such as `rewards.answer`.

    Raises:
        RecipeError: for an unknown check, an unknown or refused option of it, or a function that cannot be used.

    >>> make_check("rewards.answer", RewardPart(check="numbr"))
    Traceback (most recent call last):
    earned.errors.RecipeError: rewards.answer.check: unknown check 'numbr', allowed: 'number', 'exact', 'random', \
'constant', or a function of yours: 'FILE.py:function'. Did you mean 'number'?
    """
    if part.check in CHECKS:
        return PerAttempt(validate(CHECKS[part.check], part.options, f"{where}.options"))
    own = file_reward if FILE_MARK in part.check else handed_over_reward if part.check == HANDED_OVER else None
    if own is None:
        allowed = ", ".join(map(repr, CHECKS))
        raise RecipeError(
            f"{where}.check: unknown check {part.check!r}, allowed: {allowed}, or a function of yours: "
            f"'FILE.py:function'.{did_you_mean(part.check, [*CHECKS])}"
        )
    if resources is None:
        raise RecipeError(f"{where}.check: {part.check!r}: this command takes only the built-in checks")
    return own(where, part, resources)
