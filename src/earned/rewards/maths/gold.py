"""What a gold answer means; unreadable golds are found when problems are loaded, not when they are compared."""

from earned.rewards.answer import trim
from earned.rewards.marks import last_mark
from earned.rewards.maths.evaluate import TooLargeError, UndefinedError, exact
from earned.rewards.maths.structure_parser import readings
from earned.rewards.maths.tree import Node, Number, UnreadableError, Words

PLACEHOLDERS = frozenset(["proof", "see solution", "see above", "answers vary", "not applicable", "unknown", "omitted"])
"""Words that stand in for an answer that nobody wrote down."""


def gold_text(gold: str) -> str:
    r"""Return the answer that a gold holds, without a box and maths marks around it.

    >>> gold_text(r"$\boxed{\frac{1}{2}}$")
    '\\frac{1}{2}'
    """
    mark = last_mark(gold)
    return trim(mark.answer if mark is not None and mark.enclosed and mark.answer is not None else gold)


def gold_readings(gold: str) -> tuple[Node, ...]:
    """Return what a gold answer can mean.

    Raises:
        UnreadableError: it means nothing that can be compared: not in the grammar, no value, a placeholder.
    """
    trees = readings(gold_text(gold))
    if any(isinstance(tree, Words) and tree.text in PLACEHOLDERS for tree in trees):
        raise UnreadableError("it is a placeholder, not an answer")
    try:
        for tree in trees:
            _worked_out(tree)
    except UndefinedError as error:
        raise UnreadableError(f"it has no value: {error}") from None
    return trees


def read_gold_expression(gold: str) -> tuple[Node, ...] | None:
    """Return what a gold answer can mean, rational values worked out; None when nothing can be compared with it.

    >>> read_gold_expression("1/2") == read_gold_expression("0.50")
    True
    """
    try:
        return tuple(_worked_out(tree) for tree in gold_readings(gold))
    except (UnreadableError, RecursionError):
        return None


def _worked_out(tree: Node) -> Node:
    try:
        value = exact(tree)
    except TooLargeError:
        return tree
    return tree if value is None else Number(value)
