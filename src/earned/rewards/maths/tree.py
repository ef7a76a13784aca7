"""What a mathematical text says, as a tree: expressions, and the structures that hold them."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction


class UnreadableError(ValueError):
    """The text is not in the grammar; the message says where it stops being so."""


@dataclass(frozen=True, slots=True)
class Number:
    """An exact rational."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Symbol:
    r"""A letter with its subscript and accents, such as `x_0`; also a constant: `\pi`, `e`, `i`, `\infty`."""

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation or a function of expressions: `add`, `multiply`, `divide`, `power`, `sin`, `f`, ..."""

    name: str
    arguments: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with a unit: `cm^2`, `%`, `$`."""

    value: "Node"
    unit: str


@dataclass(frozen=True, slots=True)
class Words:
    """Plain words, letter case and spaces evened out."""

    text: str


@dataclass(frozen=True, slots=True)
class Dots:
    """An ellipsis in a list."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Several answers side by side, in any order: `3, 5 and 7`; `joint` is the word `or` where it joins them."""

    items: tuple["Node", ...]
    joint: str = ","


@dataclass(frozen=True, slots=True)
class Group:
    """A tuple, a point or an interval, with its brackets: `(1, 2]`."""

    opening: str
    items: tuple["Node", ...]
    closing: str


@dataclass(frozen=True, slots=True)
class FiniteSet:
    """`{1, 2}`."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class SetOperation:
    """`union`, `intersection` or `difference` of sets."""

    name: str
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of expressions."""

    rows: tuple[tuple["Node", ...], ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    """`3:4:5`."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """`a = b`, `1 < x <= 2`: one more side than operators; operators are `=`, `<`, `<=`, `!=` and `in`."""

    operators: tuple[str, ...]
    sides: tuple["Node", ...]


Node = (
    Number
    | Symbol
    | Apply
    | Quantity
    | Words
    | Dots
    | Listing
    | Group
    | FiniteSet
    | SetOperation
    | Matrix
    | Ratio
    | Relation
)

INFINITY = Symbol("\\infty")
CONSTANTS = frozenset([Symbol("\\pi"), Symbol("e"), Symbol("i"), INFINITY])
MINUS_ONE = Number(Fraction(-1))


def minus(node: Node) -> Node:
    """Return the negative of an expression."""
    return Number(-node.value) if isinstance(node, Number) else Apply("multiply", (MINUS_ONE, node))


def walk(node: Node) -> Iterator[Node]:
    """Yield an expression and all its parts; of structures only themselves."""
    yield node
    if isinstance(node, Apply):
        for argument in node.arguments:
            yield from walk(argument)


def unknowns(node: Node) -> frozenset[str]:
    """Return the names of the symbols of an expression that are no constants."""
    return frozenset(part.name for part in walk(node) if isinstance(part, Symbol) and part not in CONSTANTS)
