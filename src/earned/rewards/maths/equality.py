"""When two trees mean the same.

Structures are compared part by part. Expressions are compared exactly where they are rational, and elsewhere by their
values to at least forty digits beyond the scale of the numbers in them; with letters, at eight points where the letters
have drawn values. So equality of formulas is decided as polynomial identities are, by evaluation: a formula that agrees
at all points is equal but for a chance that is negligible, and no step can run away as a simplification can.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from earned.rewards.maths.evaluate import POINTS, TooLargeError, UndefinedError, agree, exact
from earned.rewards.maths.policy import Policy
from earned.rewards.maths.sets import REALS, Interval, as_pieces
from earned.rewards.maths.tree import (
    INFINITY,
    MINUS_ONE,
    Apply,
    Dots,
    FiniteSet,
    Group,
    Listing,
    Matrix,
    Node,
    Number,
    Quantity,
    Ratio,
    Relation,
    SetOperation,
    Symbol,
    Words,
    minus,
    unknowns,
    walk,
)

ENOUGH_POINTS = 3
"""At so many points at least two expressions must be comparable to be found equal."""
_HUNDREDTH = Number(Fraction(1, 100))
_OPERATIONS = frozenset(["add", "multiply", "divide", "power"])


def same(gold: Node, answer: Node, policy: Policy) -> bool:
    """Return whether an answer means what the gold means.

    Raises:
        UndefinedError: one of them has no value.
        TooLargeError: a value on the way is too large.
    """
    if gold == answer:
        return True
    if (isinstance(gold, Words) or isinstance(answer, Words)) and REALS.isdisjoint((gold, answer)):
        return False
    if isinstance(gold, Listing) or isinstance(answer, Listing):
        return _same_listing(gold, answer, policy)
    if isinstance(gold, Relation) or isinstance(answer, Relation):
        return _same_relation(gold, answer, policy)
    if isinstance(gold, Quantity) or isinstance(answer, Quantity):
        return _same_quantity(gold, answer, policy)
    collections = Group | FiniteSet | SetOperation
    if isinstance(gold, collections) or isinstance(answer, collections) or not REALS.isdisjoint((gold, answer)):
        return _same_collection(gold, answer, policy)
    if isinstance(gold, Ratio) or isinstance(answer, Ratio):
        return _same_ratio(gold, answer, policy)
    if isinstance(gold, Matrix) or isinstance(answer, Matrix):
        return _same_matrix(gold, answer, policy)
    if isinstance(gold, Dots) or isinstance(answer, Dots):
        return False
    return _same_expression(gold, answer, policy)


def _same_listing(gold: Node, answer: Node, policy: Policy) -> bool:
    pieces = _same_pieces(gold, answer, policy)
    if pieces is not None:
        return pieces
    wanted, given = _items(gold), _items(answer)
    for node in (gold, answer):
        if isinstance(node, Group) and (node.opening, node.closing) != ("(", ")"):
            return False
    if isinstance(gold, Group) or isinstance(answer, Group):
        return _in_order(wanted, given, policy)
    if any(isinstance(item, Dots) for item in (*wanted, *given)):
        return _in_order(wanted, given, policy)
    return _matched(wanted, given, policy)


def _items(node: Node) -> tuple[Node, ...]:
    """Return the items of a list, of which a name before the first holds for all: `k = 3, 5, 7`."""
    if isinstance(node, FiniteSet | Group):
        return node.items
    if isinstance(node, Relation) and node.operators == ("in",) and isinstance(node.sides[1], FiniteSet):
        return node.sides[1].items
    if isinstance(node, Relation):
        name, value = _named(node)
        if name is not None and isinstance(value, Listing | FiniteSet | Group):
            return value.items
    if not isinstance(node, Listing):
        return (node,)
    name, first = _named(node.items[0])
    rest = node.items[1:]
    if name is not None and not any(isinstance(item, Relation) for item in rest):
        return (first, *rest)
    named = [_named(item) for item in node.items]
    if len({name for name, _ in named}) == 1 and named[0][0] is not None:
        return tuple(value for _, value in named)
    return node.items


def _matched(wanted: Sequence[Node], given: Sequence[Node], policy: Policy) -> bool:
    """Return whether the items can be paired, in any order."""
    if len(wanted) != len(given):
        return False
    left = list(given)
    for item in wanted:
        found = next((index for index, other in enumerate(left) if same(item, other, policy)), None)
        if found is None:
            return False
        del left[found]
    return True


def _in_order(wanted: Sequence[Node], given: Sequence[Node], policy: Policy) -> bool:
    return len(wanted) == len(given) and all(same(a, b, policy) for a, b in zip(wanted, given, strict=True))


def _same_relation(gold: Node, answer: Node, policy: Policy) -> bool:
    pieces = _same_pieces(gold, answer, policy)
    if pieces is not None:
        return pieces
    gold_name, wanted = _named(gold)
    answer_name, given = _named(answer)
    if not isinstance(gold, Relation) and answer_name is not None:
        return same(gold, given, policy)
    if not isinstance(answer, Relation) and gold_name is not None:
        return same(wanted, answer, policy)
    if not (isinstance(gold, Relation) and isinstance(answer, Relation)):
        return False
    if gold_name is not None and gold_name == answer_name:
        return same(wanted, given, policy)
    if gold.operators != ("=",) or answer.operators != ("=",):
        return gold.operators == answer.operators and _in_order(gold.sides, answer.sides, policy)
    solved = gold_name is not None and not isinstance(wanted, Apply | Symbol | Number)
    if solved or (gold_name is not None and not unknowns(wanted)):
        return False
    return _same_equation(gold, answer)


def _same_equation(gold: Relation, answer: Relation) -> bool:
    """Return whether the differences of the sides are the same up to a constant factor that is not 0."""
    sides = (*gold.sides, *answer.sides)
    if not all(isinstance(side, Number | Symbol | Apply) for side in sides):
        return False
    first, second = (Apply("add", (one.sides[0], minus(one.sides[1]))) for one in (gold, answer))
    names = sorted(unknowns(first) | unknowns(second))
    if not names or not unknowns(first) or not unknowns(second):
        return False
    # first(p) / second(p) is constant where first(p) second(q) = first(q) second(p) for all p; q is the letters at
    # another drawn point, which is the same expression with every letter renamed.
    product = Apply("multiply", (first, _renamed(second)))
    other = Apply("multiply", (_renamed(first), second))
    return _same_expression(product, other, Policy()) and not _vanishes(second)


def _renamed(node: Node) -> Node:
    if isinstance(node, Symbol) and node.name in unknowns(node):
        return Symbol(node.name + "~")
    if isinstance(node, Apply):
        return Apply(node.name, tuple(_renamed(argument) for argument in node.arguments))
    return node


def _vanishes(node: Node) -> bool:
    return _same_expression(node, Number(Fraction(0)), Policy())


def _named(node: Node) -> tuple[Node | None, Node]:
    """Return the name and the value of `x = 5`, of a chain its ends; no name where the left side is no name."""
    if not isinstance(node, Relation) or set(node.operators) != {"="}:
        return None, node
    if _is_name(node.sides[0]):
        *between, value = node.sides[1:]
        if all(_surely_same(side, value) for side in between):
            return node.sides[0], value
    if len(node.sides) == 2 and isinstance(node.sides[1], Symbol) and not unknowns(node.sides[0]):
        return node.sides[1], node.sides[0]
    if not any(unknowns(side) for side in node.sides) and all(_surely_same(a, b) for a, b in pairwise(node.sides)):
        return Words("a calculation"), node.sides[-1]
    return None, node


def _surely_same(first: Node, second: Node) -> bool:
    try:
        return same(first, second, Policy())
    except ArithmeticError:
        return False


def _is_name(node: Node) -> bool:
    """Return whether a side of an equation only names something: `x`, `f(x)`, `AB`, `(x, y)`, words."""
    if isinstance(node, Group):
        return all(isinstance(item, Symbol) for item in node.items)
    if isinstance(node, Apply) and node.name == "multiply":
        return all(_is_name(argument) for argument in node.arguments)
    if isinstance(node, Apply):
        return node.name not in _OPERATIONS and bool(unknowns(node) or len(node.name) == 1)
    return isinstance(node, Words) or (isinstance(node, Symbol) and bool(unknowns(node)))


def _same_quantity(gold: Node, answer: Node, policy: Policy) -> bool:
    wanted, unit = _measure(gold)
    given, other = _measure(answer)
    if unit == other:
        return same(wanted, given, policy)
    if "%" in (unit, other) and "" in (unit, other):
        if unit == "%":
            wanted_share, given_share = _hundredth(wanted), given
        else:
            wanted_share, given_share = wanted, _hundredth(given)
        if same(wanted_share, given_share, policy):
            return True
        return policy.percent_as_number and same(wanted, given, policy)
    if unit and other:
        return False
    return (policy.missing_units or not unit) and same(wanted, given, policy)


def _measure(node: Node) -> tuple[Node, str]:
    return (node.value, node.unit) if isinstance(node, Quantity) else (node, "")


def _hundredth(node: Node) -> Node:
    return Apply("multiply", (_HUNDREDTH, node))


def _same_collection(gold: Node, answer: Node, policy: Policy) -> bool:
    pieces = _same_pieces(gold, answer, policy)
    if pieces is not None:
        return pieces
    if isinstance(gold, SetOperation) and isinstance(answer, SetOperation):
        return gold.name == answer.name and _in_order(gold.parts, answer.parts, policy)
    if isinstance(gold, Group) and isinstance(answer, Group):
        brackets = (gold.opening, gold.closing) == (answer.opening, answer.closing)
        return brackets and _in_order(gold.items, answer.items, policy)
    if isinstance(gold, FiniteSet) and isinstance(answer, FiniteSet):
        return _matched(_distinct(gold.items, policy), _distinct(answer.items, policy), policy)
    singles = [node.items for node in (gold, answer) if isinstance(node, FiniteSet) and len(node.items) == 1]
    if len(singles) == 1 and not isinstance(gold, Group) and not isinstance(answer, Group):
        return same(singles[0][0], answer, policy) if isinstance(gold, FiniteSet) else same(gold, singles[0][0], policy)
    return False


def _distinct(items: Sequence[Node], policy: Policy) -> list[Node]:
    kept: list[Node] = []
    for item in items:
        if not any(same(other, item, policy) for other in kept):
            kept.append(item)
    return kept


def _same_pieces(gold: Node, answer: Node, policy: Policy) -> bool | None:
    """Compare two sets of real numbers by their intervals and points; None when neither is written as one."""
    if not any(_is_set(node) for node in (gold, answer)):
        return None
    wanted, given = as_pieces(gold), as_pieces(answer)
    if wanted is None or given is None:
        return None
    swapped = isinstance(answer, Relation) and "in" not in answer.operators and not isinstance(gold, Relation)
    if swapped and not policy.intervals_as_inequalities:
        return False
    if None not in (wanted.name, given.name) and wanted.name != given.name:
        return False
    points = _matched(_distinct(wanted.points, policy), _distinct(given.points, policy), policy)
    return points and _intervals_matched(wanted.intervals, given.intervals, policy)


def _is_set(node: Node) -> bool:
    """Return whether a node can only be a set of numbers: a union, an inequality, or a list of them."""
    if isinstance(node, Listing):
        return any(_is_set(item) for item in node.items)
    return (
        isinstance(node, SetOperation) or node in REALS or (isinstance(node, Relation) and set(node.operators) != {"="})
    )


def _intervals_matched(wanted: Sequence[Interval], given: Sequence[Interval], policy: Policy) -> bool:
    if len(wanted) != len(given):
        return False
    left = list(given)
    for interval in wanted:
        found = next((other for other in left if _same_interval(interval, other, policy)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _same_interval(wanted: Interval, given: Interval, policy: Policy) -> bool:
    closed = (wanted.low_closed, wanted.high_closed) == (given.low_closed, given.high_closed)
    return closed and same(wanted.low, given.low, policy) and same(wanted.high, given.high, policy)


def _same_ratio(gold: Node, answer: Node, policy: Policy) -> bool:
    if isinstance(gold, Ratio) and isinstance(answer, Ratio):
        if len(gold.parts) != len(answer.parts):
            return False
        if not policy.scaled_ratios:
            return _in_order(gold.parts, answer.parts, policy)
        crossed = [
            (Apply("multiply", (g, answer.parts[0])), Apply("multiply", (a, gold.parts[0])))
            for g, a in zip(gold.parts, answer.parts, strict=True)
        ]
        return not _vanishes(answer.parts[0]) and all(same(first, second, policy) for first, second in crossed)
    ratio, other = (gold, answer) if isinstance(gold, Ratio) else (answer, gold)
    assert isinstance(ratio, Ratio)
    whole = isinstance(other, Number) and other.value.denominator == 1
    return len(ratio.parts) == 2 and not whole and same(Apply("divide", ratio.parts), other, policy)


def _same_matrix(gold: Node, answer: Node, policy: Policy) -> bool:
    if not (isinstance(gold, Matrix) and isinstance(answer, Matrix)) or len(gold.rows) != len(answer.rows):
        return False
    return all(_in_order(a, b, policy) for a, b in zip(gold.rows, answer.rows, strict=True))


def _infinite(node: Node) -> int:
    """Return 1 or -1 for plus or minus infinity, else 0."""
    if node == INFINITY:
        return 1
    return -1 if node == Apply("multiply", (MINUS_ONE, INFINITY)) else 0


def _same_expression(gold: Node, answer: Node, policy: Policy) -> bool:
    if _infinite(gold) or _infinite(answer):
        return _infinite(gold) == _infinite(answer)
    if not policy.unevaluated and isinstance(gold, Number) and not _written_out(answer):
        return False
    wanted, given = exact(gold), exact(answer)
    if wanted is not None and given is not None:
        return wanted == given or abs(wanted - given) <= Fraction(policy.tolerance) * abs(wanted)
    if not _has_letters(gold) and not _has_letters(answer):
        return agree(gold, answer, 0, policy.tolerance)[0]
    return _agree_everywhere(gold, answer, policy)


def _agree_everywhere(gold: Node, answer: Node, policy: Policy) -> bool:
    real = elsewhere = 0
    too_large: TooLargeError | None = None
    for point in range(POINTS):
        try:
            agrees, is_real = agree(gold, answer, point)
        except UndefinedError:
            continue
        except TooLargeError as error:
            too_large = error
            continue
        if not agrees and (is_real or policy.domain == "complex"):
            return False
        real += agrees and is_real
        elsewhere += agrees and not is_real
    if too_large is not None and real + elsewhere < ENOUGH_POINTS:
        raise too_large
    return real >= ENOUGH_POINTS or (real == 0 and elsewhere >= ENOUGH_POINTS)


def _has_letters(node: Node) -> bool:
    applied = any(isinstance(part, Apply) and (len(part.name) == 1 or part.name[0] == "\\") for part in walk(node))
    return applied or bool(unknowns(node))


def _written_out(node: Node) -> bool:
    return all(isinstance(part, Number) or (isinstance(part, Apply) and part.name == "divide") for part in walk(node))
