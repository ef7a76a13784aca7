"""The table of checks: what `check = "..."` in `[rewards.NAME]` may name."""

from collections.abc import Callable, Mapping

from earned.errors import RecipeError, did_you_mean
from earned.recipe import Allowance, RewardPart
from earned.recipe_file import validate
from earned.rewards.controls import ConstantReward, RandomReward
from earned.rewards.countdown import CountdownCheck
from earned.rewards.exact import ExactCheck, read_gold_text
from earned.rewards.expression import math_check
from earned.rewards.format import FormatCheck
from earned.rewards.length import LengthCheck
from earned.rewards.maths.gold import read_gold_expression
from earned.rewards.number import NumberCheck, read_gold_number
from earned.rewards.reasoning_gym_check import reasoning_gym_check
from earned.rewards.repetition import RepetitionCheck
from earned.rewards.steps import StepsCheck
from earned.rewards.user_reward import FILE_MARK, HANDED_OVER, Resources, file_reward, handed_over_reward
from earned.rewards.verdict import BuiltInCheck, Check, PerAttempt

CHECKS: Mapping[str, type[BuiltInCheck]] = {
    "number": NumberCheck,
    "exact": ExactCheck,
    "countdown": CountdownCheck,
    "steps": StepsCheck,
    "format": FormatCheck,
    "length": LengthCheck,
    "repetition": RepetitionCheck,
    "random": RandomReward,
    "constant": ConstantReward,
}

POOLED: Mapping[str, Callable[[str, RewardPart, Resources], Check]] = {
    "math": math_check,
    "reasoning_gym": reasoning_gym_check,
}
"""Checks that judge in processes which can be killed, and so are made with the pool of the run."""

CONTROLS: Mapping[str, Allowance] = {
    "random": "random_reward",
    "constant": "constant_reward",
    **dict.fromkeys(("steps", "format", "length", "repetition"), "form_reward"),
}
"""Checks that know nothing of the right answer and so cannot teach it alone, and the word in `rewards.allow` that says
they are meant."""

PENALTIES = frozenset(["length", "repetition"])
"""Checks that give -1 to 0, where all others give 0 to 1."""

GOLD_PARSERS: Mapping[str, Callable[[str], object | None]] = {
    "number": read_gold_number,
    "exact": read_gold_text,
    "math": read_gold_expression,
}
"""From a check that compares with the gold answer to what it makes of one; None when it can make nothing of it."""


def make_check(where: str, part: RewardPart, resources: Resources | None = None) -> Check:
    """Return the check of a part; `where` is its table in the recipe, such as `rewards.answer`.

    Raises:
        RecipeError: for an unknown check, an unknown or refused option of it, or a function that cannot be used.

    >>> make_check("rewards.answer", RewardPart(check="numbr"))
    Traceback (most recent call last):
    earned.errors.RecipeError: rewards.answer.check: unknown check 'numbr', allowed: 'number', 'exact', 'countdown', \
'steps', 'format', 'length', 'repetition', 'random', 'constant', 'math', 'reasoning_gym', or a function of yours: \
'FILE.py:function'. Did you mean 'number'?
    """
    return _make(CHECKS, where, part, resources)


def make_answer_check(check: str, resources: Resources | None = None) -> Check:
    """Return the check that decides which answers are right: `evaluation.check` of the recipe.

    Raises:
        RecipeError: as `make_check` does, and for a check whose verdict does not depend on the right answer.

    >>> make_answer_check("random")
    Traceback (most recent call last):
    earned.errors.RecipeError: evaluation.check: 'random' does not compare with the right answer, so it measures no \
accuracy. Use 'number', 'exact', 'countdown', 'math', 'reasoning_gym', or a function of yours: 'FILE.py:function'. It \
can be part of a reward: check = "random" in [rewards.NAME]
    """
    judges = {name: kind for name, kind in CHECKS.items() if name not in CONTROLS}
    if check in CONTROLS:
        raise RecipeError(
            f"evaluation.check: {check!r} does not compare with the right answer, so it measures no accuracy. Use "
            f"{', '.join(map(repr, [*judges, *POOLED]))}, or a function of yours: 'FILE.py:function'. It can be "
            f'part of a reward: check = "{check}" in [rewards.NAME]'
        )
    return _make(judges, "evaluation", RewardPart(check=check), resources)


def _make(checks: Mapping[str, type[BuiltInCheck]], where: str, part: RewardPart, resources: Resources | None) -> Check:
    if part.check in checks:
        return PerAttempt(validate(checks[part.check], part.options, f"{where}.options"))
    if part.check in POOLED:
        return POOLED[part.check](where, part, _required(resources, where, part))
    own = file_reward if FILE_MARK in part.check else handed_over_reward if part.check == HANDED_OVER else None
    if own is None:
        allowed = ", ".join(map(repr, [*checks, *POOLED]))
        raise RecipeError(
            f"{where}.check: unknown check {part.check!r}, allowed: {allowed}, or a function of yours: "
            f"'FILE.py:function'.{did_you_mean(part.check, [*checks, *POOLED])}"
        )
    return own(where, part, _required(resources, where, part))


def _required(resources: Resources | None, where: str, part: RewardPart) -> Resources:
    if resources is None:
        raise RecipeError(f"{where}.check: {part.check!r}: this command takes only checks that need no processes")
    return resources
