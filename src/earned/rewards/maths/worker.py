"""Compares one answer with one gold; runs in a process that is killed when it takes too long."""

from collections.abc import Mapping
from typing import Any

from earned.rewards.maths.equality import same
from earned.rewards.maths.evaluate import TooLargeError, UndefinedError
from earned.rewards.maths.gold import gold_readings
from earned.rewards.maths.policy import Policy
from earned.rewards.maths.structure_parser import readings
from earned.rewards.maths.tree import Listing, Node, Number, UnreadableError
from earned.vocabulary import Rule


def compare(gold: str, answer: str, policy: Mapping[str, Any]) -> tuple[str, str]:
    """Return the rule that decided and the reason in words; a gold that cannot be read raises UnreadableError."""
    options = Policy.model_validate(policy)
    wanted = gold_readings(gold)
    try:
        given = _chosen(readings(answer), options)
    except UnreadableError as error:
        return Rule.UNREADABLE, str(error)
    except RecursionError:
        return Rule.UNREADABLE, "it is nested too deeply"
    try:
        if any(same(one, other, options) for one in _chosen(wanted, options) for other in given):
            return Rule.EQUAL, "means the same"
    except UndefinedError as error:
        return Rule.DIFFERENT, f"it has no value: {error}"
    except TooLargeError as error:
        return Rule.UNREADABLE, str(error)
    except (MemoryError, RecursionError):
        return Rule.UNREADABLE, "it is too large to be compared"
    return Rule.DIFFERENT, "means something else"


def _chosen(trees: tuple[Node, ...], policy: Policy) -> tuple[Node, ...]:
    """Return the readings of a text; `3,14` is also 3.14 where a decimal comma is allowed."""
    if not policy.decimal_comma:
        return trees
    return (*trees, *(decimal for tree in trees if (decimal := _decimal(tree)) is not None))


def _decimal(tree: Node) -> Node | None:
    if not (isinstance(tree, Listing) and len(tree.items) == 2):
        return None
    whole, decimals = tree.items
    if not (isinstance(whole, Number) and isinstance(decimals, Number)) or decimals.value.denominator != 1:
        return None
    digits = len(str(decimals.value.numerator))
    return Number(whole.value + (1 if whole.value >= 0 else -1) * decimals.value / 10**digits)
