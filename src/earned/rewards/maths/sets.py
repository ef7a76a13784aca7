"""Sets of real numbers as intervals and points, from any way of writing them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from earned.rewards.maths.tree import (
    INFINITY,
    FiniteSet,
    Group,
    Listing,
    Node,
    Relation,
    SetOperation,
    Symbol,
    Words,
    minus,
    unknowns,
)

MINUS_INFINITY = minus(INFINITY)
REALS = frozenset([Symbol("mathbb R"), Words("all real numbers"), Words("all reals")])


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """All numbers between two ends."""

    low: Node
    high: Node
    low_closed: bool = False
    high_closed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Pieces:
    """A set as a union of intervals and points."""

    intervals: tuple[Interval, ...] = ()
    points: tuple[Node, ...] = ()
    name: str | None = None
    """The letter that an inequality bounds."""


def as_pieces(node: Node) -> Pieces | None:
    """Return a set as its pieces, None for what is no set of numbers or one that is not a union of simple pieces."""
    if node in REALS:
        return Pieces(intervals=(Interval(low=MINUS_INFINITY, high=INFINITY),))
    if isinstance(node, FiniteSet):
        return Pieces(points=node.items)
    if isinstance(node, Group) and len(node.items) == 2:
        closed = (node.opening == "[", node.closing == "]")
        low, high = node.items
        return Pieces(intervals=(Interval(low=low, high=high, low_closed=closed[0], high_closed=closed[1]),))
    if isinstance(node, SetOperation) and node.name == "union":
        return _union([as_pieces(part) for part in node.parts])
    if isinstance(node, SetOperation) and node.name == "difference" and len(node.parts) == 2:
        return _without(as_pieces(node.parts[0]), node.parts[1])
    if isinstance(node, Listing) and node.joint == "or":
        return _union([as_pieces(item) for item in node.items])
    return _relation(node) if isinstance(node, Relation) else None


def _without(pieces: Pieces | None, point: Node) -> Pieces | None:
    """Return an open interval without one point inside it."""
    if pieces is None or len(pieces.intervals) != 1 or not isinstance(point, FiniteSet) or len(point.items) != 1:
        return None
    whole = pieces.intervals[0]
    return Pieces(
        intervals=(
            replace(whole, high=point.items[0], high_closed=False),
            replace(whole, low=point.items[0], low_closed=False),
        )
    )


def _union(parts: Sequence[Pieces | None]) -> Pieces | None:
    known = [part for part in parts if part is not None]
    names = {part.name for part in known}
    if len(known) < len(parts) or len(names) > 1:
        return None
    return Pieces(
        intervals=tuple(interval for part in known for interval in part.intervals),
        points=tuple(point for part in known for point in part.points),
        name=names.pop() if names else None,
    )


def _relation(relation: Relation) -> Pieces | None:
    r"""Read `x \in S`, `a < x <= b`, `x != a` and the like."""
    operators, sides = relation.operators, relation.sides
    if operators == ("in",) and isinstance(sides[0], Symbol):
        inside = as_pieces(sides[1])
        return None if inside is None else Pieces(intervals=inside.intervals, points=inside.points, name=sides[0].name)
    names = [index for index, side in enumerate(sides) if isinstance(side, Symbol) and unknowns(side)]
    others = [side for index, side in enumerate(sides) if index not in names]
    if len(names) != 1 or any(unknowns(side) for side in others) or not _one_way(operators):
        return None
    name = sides[names[0]]
    assert isinstance(name, Symbol)
    if operators == ("!=",):
        below, above = Interval(low=MINUS_INFINITY, high=others[0]), Interval(low=others[0], high=INFINITY)
        return Pieces(intervals=(below, above), name=name.name)
    if len(sides) > 3 or (len(sides) == 3 and names[0] != 1) or set(operators) & {"in", "=", "!="}:
        return None
    return Pieces(intervals=(_interval(operators, sides, names[0]),), name=name.name)


def _one_way(operators: Sequence[str]) -> bool:
    return all(first[0] == second[0] for first, second in pairwise(operators))


def _interval(operators: Sequence[str], sides: Sequence[Node], at: int) -> Interval:
    """Return the interval of the name at a place of a chain such as `1 < x <= 2`."""
    low, high = (MINUS_INFINITY, False), (INFINITY, False)
    for index, operator in enumerate(operators):
        bound = sides[index] if index + 1 == at else sides[index + 1]
        name_is_right = index + 1 == at
        if (operator[0] == "<") == name_is_right:
            low = (bound, "=" in operator)
        else:
            high = (bound, "=" in operator)
    return Interval(low=low[0], low_closed=low[1], high=high[0], high_closed=high[1])
