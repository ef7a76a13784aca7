r"""Arithmetic as it is written by hand, read strictly and computed exactly: for text that must never be evaluated.

    expression = term   {("+" | "-") term}
    term       = factor {("*" | "/") factor}
    factor     = number | "(" expression ")"
    number     = digits 0-9, without a leading zero

There is nothing else: no sign before a number, no power, no whole-number division, no decimal fraction, no name, and no
multiplication that is not written.
"""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

MAX_CHARACTERS = 300
MAX_DEPTH = 50
"""Parentheses inside each other."""

SYMBOLS = {"×": "*", "·": "*", "⋅": "*", "÷": "/", "−": "-", r"\times": "*", r"\cdot": "*", r"\div": "/"}
"""Further writings of the operations."""

_SPACES = " \t"
_TOKEN = re.compile(rf"([0-9]++|\*\*|//|[-+*/()×·⋅÷−]|\\(?:times|cdot|div)(?![a-zA-Z]))[{_SPACES}]*+")


class NotArithmetic(ValueError):
    """A text is no expression, or has no value; the message says why."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that was read."""

    value: Fraction
    numbers: tuple[int, ...]
    """As they are written, from left to right."""


def read_expression(text: str, *, symbols: bool = True) -> Expression:
    """Return the value of an expression and the numbers in it.

    Args:
        text: Nothing but the expression, on one line; spaces may stand between its parts.
        symbols: Whether the writings in `SYMBOLS` are read too.

    Raises:
        NotArithmetic: it is none by the grammar above, is too long or too deep, or divides by zero.

    >>> read_expression("3 × (4+5)")
    Expression(value=Fraction(27, 1), numbers=(3, 4, 5))
    >>> read_expression("3*-4")
    Traceback (most recent call last):
    earned.rewards.arithmetic.NotArithmetic: '-' follows '*', where a number or a parenthesis has to stand
    """
    if len(text) > MAX_CHARACTERS:
        raise NotArithmetic(f"it is longer than {MAX_CHARACTERS} characters")
    tokens = _tokens(text, symbols)
    value = _Reader(tokens).whole()
    return Expression(value, tuple(int(token) for token in tokens if token.isdigit()))


def _tokens(text: str, symbols: bool) -> list[str]:
    tokens: list[str] = []
    text, place = text.strip(_SPACES), 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or (match[1] in SYMBOLS and not symbols):
            raise NotArithmetic(f"{text[place]!a} is no digit 0-9, no operation + - * / and no parenthesis")
        tokens.append(_allowed(match[1]))
        place = match.end()
    return tokens


def _allowed(token: str) -> str:
    if token in ("**", "//"):
        raise NotArithmetic(f"{token} is none of the operations + - * /")
    if token.startswith("0") and token != "0":
        raise NotArithmetic(f"{token} has a leading zero")
    return SYMBOLS.get(token, token)


class _Reader:
    """Reads tokens from left to right; each method computes one rule of the grammar."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._left = deque(tokens)
        self._last: str | None = None

    def whole(self) -> Fraction:
        value = self._expression(0)
        if self._left:
            raise self._unexpected("an operation")
        return value

    def _expression(self, depth: int) -> Fraction:
        value = self._term(depth)
        while self._next in ("+", "-"):
            added = self._take() == "+"
            value += self._term(depth) if added else -self._term(depth)
        return value

    def _term(self, depth: int) -> Fraction:
        value = self._factor(depth)
        while self._next in ("*", "/"):
            multiplied = self._take() == "*"
            factor = self._factor(depth)
            if not multiplied and factor == 0:
                raise NotArithmetic("it divides by zero")
            value = value * factor if multiplied else value / factor
        return value

    def _factor(self, depth: int) -> Fraction:
        if self._next is None or not (self._next == "(" or self._next.isdigit()):
            raise self._unexpected("a number or a parenthesis")
        token = self._take()
        if token != "(":
            return Fraction(int(token))
        if depth == MAX_DEPTH:
            raise NotArithmetic(f"more than {MAX_DEPTH} parentheses stand inside each other")
        value = self._expression(depth + 1)
        if self._next != ")":
            raise self._unexpected("an operation or the closing parenthesis")
        self._take()
        return value

    @property
    def _next(self) -> str | None:
        return self._left[0] if self._left else None

    def _take(self) -> str:
        self._last = self._left.popleft()
        return self._last

    def _unexpected(self, wanted: str) -> NotArithmetic:
        what = "nothing" if self._next is None else repr(self._next)
        where = "comes first" if self._last is None else f"follows {self._last!r}"
        return NotArithmetic(f"{what} {where}, where {wanted} has to stand")
