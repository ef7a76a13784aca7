"""Compares one answer with one gold; runs in a process that is killed when it takes too long."""

from collections.abc import Mapping
from typing import Any

from earned.rewards.maths.equality import same
from earned.rewards.maths.evaluate import TooLargeError, UndefinedError
from earned.rewards.maths.gold import gold_readings
from earned.rewards.maths.policy import Policy
from earned.rewards.maths.structure_parser import readings
from earned.rewards.maths.tree import Node, UnreadableError
from earned.vocabulary import Rule


def compare(gold: str, answer: str, policy: Mapping[str, Any]) -> tuple[str, str]:
    """Return the rule that decided and the reason in words; a gold that cannot be read raises UnreadableError."""
    options = Policy.model_validate(policy)
    # A gold that may be a number of thousands is one; an answer may be a list of which the gold is the other writing.
    wanted = gold_readings(gold)[0]
    try:
        given = readings(answer, decimal_comma=options.decimal_comma)
    except UnreadableError as error:
        return Rule.UNREADABLE, str(error)
    except RecursionError:
        return Rule.UNREADABLE, "it is nested too deeply"
    said = [_said(wanted, one, options) for one in given]
    return min(said, key=lambda one: one[0] is not Rule.EQUAL)


def _said(gold: Node, answer: Node, policy: Policy) -> tuple[Rule, str]:
    try:
        equal = same(gold, answer, policy)
    except UndefinedError as error:
        return Rule.DIFFERENT, f"it has no value: {error}"
    except TooLargeError as error:
        return Rule.UNREADABLE, str(error)
    except (MemoryError, RecursionError):
        return Rule.UNREADABLE, "it is too large to be compared"
    return (Rule.EQUAL, "means the same") if equal else (Rule.DIFFERENT, "means something else")
