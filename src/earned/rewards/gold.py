"""Whether the problems hold what a check compares with: what cannot be checked cannot be rewarded."""

from collections.abc import Sequence

from earned.errors import RecipeError
from earned.recipe import Rewards
from earned.rewards.checks import GOLD_PARSERS
from earned.vocabulary import Problem

WITHOUT_GOLD = (
    "What cannot be checked cannot be rewarded. Give answers (problems.options.answer), or a reward of your own "
    "(rewards.NAME.check = 'FILE.py:function'). For taste, tone and helpfulness the way is a reward learned from "
    "people's preferences (RLHF: preferences -> reward model -> training against it), which is not part of this version"
)


def can_judge(check: str, problems: Sequence[Problem]) -> bool:
    """Return whether at least one problem has a gold answer the check can read; a check that reads none always can."""
    read = GOLD_PARSERS.get(check)
    return read is None or any(problem.gold is not None and read(problem.gold) is not None for problem in problems)


def require_gold(rewards: Rewards, source: str, problems: Sequence[Problem]) -> None:
    """Return if every part of the reward can judge an attempt at one of the training problems at least.

    One part that cannot judge leaves the whole score unscored, so a part without any gold is enough to refuse.

    Raises:
        RecipeError: otherwise, naming the source, the part and what can be done.
    """
    for name, part in rewards.parts.items():
        if not can_judge(part.check, problems):
            others = "nothing else judges" if len(rewards.parts) == 1 else "without it the other parts pay nothing"
            raise RecipeError(
                f"{source}: not one of its {len(problems)} training problems has an answer that the check "
                f"{part.check!r} (rewards.{name}) can read, and {others}. {WITHOUT_GOLD}"
            )
