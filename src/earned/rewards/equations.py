r"""Reads the equations of a text, such as `47 + 58 = 105`, in exact rational numbers; nothing is evaluated as code.

An equation is two or more sides with `=` between them, on one line, that hold nothing but numbers and the operations
+ - * /, at least one operation in all: `<<48/2=24>>`, `$3 \times 4 = 12$`, `x = 3 + 4 = 7` (read as `3 + 4 = 7`).
Multiplication is also written `×`, `·`, `\times`, `\cdot` or as an `x` between spaces, division `÷` or `\div`, minus
`−` or `–`; `20%` is 1/5. Times and divided by bind closer than plus and minus. `=` is always equality: in `2+3=5+4=9`
the sides are 5, 9 and 9, so it is false. What holds anything else (parentheses, powers, letters, units before the `=`,
more than 20 numbers, a number of more than 100 digits) is not read, rather than read wrongly.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

MAX_DIGITS = 100
MAX_NUMBERS = 20

_PLAIN = r"(?:[0-9]{1,3}(?:,[0-9]{3})++|[0-9]++)(?:\.[0-9]++)?+|\.[0-9]++"
_NUMBER = re.compile(rf"({_PLAIN})(%?)")
# Of one line. Each alternative begins differently or is possessive, so reading is linear in the text.
_TOKEN = re.compile(
    rf"""
      (?P<bullet>^\s*+[-*+•]\ )
    | (?P<number>(?<![\w.,])(?:{_PLAIN})(?!\w|[.,][0-9])(?:\ ?\\?%(?!\w))?+)
    | (?P<operator>(?!\*\*)[-+*/×·÷\u2212\u2013]|\\(?:times|cdot|div)(?![a-z])|(?<=\s)x(?=\s))
    | (?P<equals>=++)
    | (?P<space>\s++|\$|\\[()\[\]])
    | (?P<break>\\\\)
    | (?P<binding>[\^%√]|\\[A-Za-z]*+|(?<=[0-9]):(?=[0-9])|(?<=[0-9])\(|\)(?=[0-9])
        |(?:(?<=[0-9])|(?<=[0-9]\ ))\*\*++(?=\ ?[0-9]))
    | (?P<word>(?:[^\W0-9][\w.,]*+\ ?)++|\w[\w.,]*+|\*\*++|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ASCII = {"×": "*", "·": "*", r"\times": "*", r"\cdot": "*", "x": "*", "÷": "/", r"\div": "/", "==": "="}
_ASCII |= dict.fromkeys("\u2212\u2013", "-")
_NOT_PLAIN = str.maketrans("", "", ", \\")
_TERM = re.compile(r"([-+*/]?)(-?)([0-9.]++%?)")
_SIDE = re.compile(r"[-+]?[0-9.]++%?(?:[-+*/]-?[0-9.]++%?)*+")


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of an equation."""

    text: str = field(compare=False)
    """Without spaces, operations as + - * /."""
    numbers: tuple[Fraction, ...]
    operations: str
    """One character between every two numbers."""

    @cached_property
    def value(self) -> Fraction | None:
        """What it comes to; None where it divides by zero."""
        terms = [self.numbers[0]]
        for operation, number in zip(self.operations, self.numbers[1:], strict=True):
            if operation == "*":
                terms[-1] *= number
            elif operation == "/" and number == 0:
                return None
            elif operation == "/":
                terms[-1] /= number
            else:
                terms.append(number if operation == "+" else -number)
        return sum(terms, Fraction(0))


@dataclass(frozen=True)
class Equation:
    """What a text says is equal; two that differ only in how they are written are equal."""

    sides: tuple[Side, ...]

    @property
    def fault(self) -> str | None:
        """Why it is false, None when it is true."""
        first = self.sides[0]
        for side in self.sides:
            if side.value is None:
                return f"{side.text} divides by zero"
            if side.value != first.value:
                return f"{first.text} is {first.value}, not {side.text}"
        return None

    def __str__(self) -> str:
        return "=".join(side.text for side in self.sides)


def read_equations(text: str) -> Iterator[Equation]:
    """Yield the equations of a text in order; linear in the text.

    >>> [str(equation) for equation in read_equations("47+58=105;105 + 19 = 125;A125")]
    ['47+58=105', '105+19=125']
    >>> [equation.fault for equation in read_equations("So 48/2 = <<48/2=24>>24, 2+3=5+4=9 and (1+2)*3=9")]
    [None, '2+3 is 5, not 5+4']
    """
    lines = (line for line in text.split("\n") if "=" in line)
    return (equation for line in lines for run in _runs(line) if (equation := _equation(run)) is not None)


def read_numbers(text: str) -> set[Fraction]:
    """Return the sizes of the numbers in a text, without their signs; of a percentage the hundredth part too.

    >>> sorted(map(str, read_numbers("He gives 20% of his $1,200.50 to 3 friends")))
    ['1/5', '20', '2401/2', '3']
    """
    found = [
        (_fraction(match[1].replace(",", "")), match[2])
        for match in _NUMBER.finditer(text)
        if len(match[1]) <= MAX_DIGITS
    ]
    return {number for number, _ in found} | {number / 100 for number, percent in found if percent}


def _runs(line: str) -> Iterator[list[re.Match[str]]]:
    """Yield the stretches of numbers, operators and equals signs; one that is bound to anything else is left out."""
    run: list[re.Match[str]] = []
    bound = False
    for token in _TOKEN.finditer(line):
        kind = token.lastgroup
        follows = kind != "number" or not run or run[-1].lastgroup != "number"
        if kind == "space":
            continue
        if kind in ("number", "operator", "equals") and follows:
            run.append(token)
            continue
        if not bound and kind != "binding":
            yield run
        run, bound = [token] if kind == "number" else [], kind == "binding"
    if not bound:
        yield run


def _equation(run: Sequence[re.Match[str]]) -> Equation | None:
    if not any(token.lastgroup == "equals" for token in run) or not _begins_well(run):
        return None
    if max(len(token.group()) for token in run) > MAX_DIGITS:
        return None
    written = "".join(_ASCII.get(token.group(), token.group().translate(_NOT_PLAIN)) for token in run)
    sides = [_side(side) for side in written.strip("=").split("=")]
    read = tuple(side for side in sides if side is not None)
    whole = len(read) == len(sides) > 1 and sum(len(side.numbers) for side in read) <= MAX_NUMBERS
    return Equation(read) if whole and any(side.operations for side in read) else None


def _begins_well(run: Sequence[re.Match[str]]) -> bool:
    """Return whether an operator at the beginning, if there is one, is the sign of the first number."""
    first = run[0]
    if first.lastgroup != "operator":
        return True
    before = first.string[max(0, first.start() - 1) : first.start()]
    return first.end() == run[1].start() and not before.isalnum() and before != ")"


def _side(written: str) -> Side | None:
    if not _SIDE.fullmatch(written):
        return None
    terms = _TERM.findall(written)
    first_sign = "-" if terms[0][0] == "-" else ""
    numbers = [_fraction(first_sign + terms[0][2]), *(_fraction(sign + number) for _, sign, number in terms[1:])]
    return Side(text=written, numbers=tuple(numbers), operations="".join(operation for operation, _, _ in terms[1:]))


def _fraction(number: str) -> Fraction:
    """Return what a number says; the sign of the whole comes first, a percentage is its hundredth part."""
    return Fraction(number[:-1]) / 100 if number.endswith("%") else Fraction(number)
