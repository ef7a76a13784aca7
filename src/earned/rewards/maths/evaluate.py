"""The value of an expression, exactly where it is rational and to many digits elsewhere, in bounded time and memory.

Every operation is refused before it is done when its result would be too large, so a tower of powers costs nothing.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial, gcd, lcm
from typing import Any

import mpmath

from earned.rewards.maths.tree import Apply, Node, Number, Symbol

MAX_BITS = 40_000
"""Of the numerator or denominator of an exact value."""
MAX_MAGNITUDE = 10_000
"""Decimal digits before the point of any value on the way, or zeros behind it."""
MAX_SCALE = 500
"""As MAX_MAGNITUDE, where values are not exact."""
MAX_FACTORIAL = 3000
SCALES = (1, 40, 1, 1000)
POINTS = 2 * len(SCALES)
DIGITS = 40
"""To which two values have to agree beyond the scale of the smallest and largest number on the way."""


class UndefinedError(ArithmeticError):
    """The expression has no value: a division by zero, `0/0`."""


class TooLargeError(ArithmeticError):
    """A value on the way is too large to be worked with."""


def exact(node: Node) -> Fraction | None:
    """Return the rational value of an expression, None when it holds a letter, a root or a function of analysis.

    Raises:
        UndefinedError: it has no value.
        TooLargeError: a value on the way has more than 40,000 bits.
    """
    if isinstance(node, Number):
        return node.value
    if not isinstance(node, Apply) or node.name not in _EXACT:
        return None
    values = [exact(argument) for argument in node.arguments]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    value = _EXACT[node.name](known)
    if value is not None and max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise TooLargeError("a number in it is too large")
    return value


def _exact_sum(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0))


def _exact_product(values: list[Fraction]) -> Fraction:
    return values[0] * values[1]


def _exact_quotient(values: list[Fraction]) -> Fraction:
    if values[1] == 0:
        raise UndefinedError("it divides by zero")
    return values[0] / values[1]


def _exact_power(values: list[Fraction]) -> Fraction | None:
    base, exponent = values
    if exponent.denominator != 1:
        return None
    if base == 0 and exponent <= 0:
        raise UndefinedError("it raises zero to a power that is not positive")
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(base) != 1 and base != 0 and abs(exponent) * (bits - 1 or 1) > MAX_BITS:
        raise TooLargeError("a power in it is too large")
    return base ** int(exponent % 2 if abs(base) == 1 else exponent)


def _natural(value: Fraction, largest: int) -> int:
    if value.denominator != 1 or value < 0:
        raise UndefinedError("a factorial or binomial of something that is no natural number")
    if value > largest:
        raise TooLargeError("a factorial or binomial in it is too large")
    return int(value)


def _exact_binomial(values: list[Fraction]) -> Fraction:
    return Fraction(comb(_natural(values[0], MAX_FACTORIAL), _natural(values[1], MAX_FACTORIAL)))


def _whole(function: Callable[..., int]) -> Callable[[list[Fraction]], Fraction]:
    def of(values: list[Fraction]) -> Fraction:
        if any(value.denominator != 1 for value in values):
            raise UndefinedError("a common divisor of something that is no whole number")
        return Fraction(function(*(int(value) for value in values)))

    return of


_EXACT: Mapping[str, Callable[[list[Fraction]], Fraction | None]] = {
    "add": _exact_sum,
    "multiply": _exact_product,
    "divide": _exact_quotient,
    "power": _exact_power,
    "factorial": lambda values: Fraction(factorial(_natural(values[0], MAX_FACTORIAL))),
    "binomial": _exact_binomial,
    "abs": lambda values: abs(values[0]),
    "floor": lambda values: Fraction(values[0].__floor__()),
    "ceil": lambda values: Fraction(values[0].__ceil__()),
    "max": max,
    "min": min,
    "gcd": _whole(gcd),
    "lcm": _whole(lcm),
}


@dataclass(slots=True)
class Evaluation:
    """The value of expressions at one point, and the scale of the numbers met on the way."""

    context: Any
    """An mpmath context of its own, so that threads do not share a precision."""
    point: int
    """Values of letters are drawn from the letter's name and this number: at even points positive, at point 1 negative,
    at other odd points either; of the size that SCALES has for every pair of points."""
    threshold: float = 0.0
    """-log10 of what counts as zero; 0 for nothing but zero itself."""
    scale: float = 0.0
    """The largest |log10| of a value on the way."""

    def value(self, node: Node) -> Any:
        """Return the value, a real or complex number of the context.

        Raises:
            UndefinedError: there is none.
            TooLargeError: a value on the way is too large.
        """
        if isinstance(node, Number):
            return self._kept(self.context.mpf(node.value.numerator) / node.value.denominator)
        if isinstance(node, Symbol):
            return self._symbol(node.name)
        if not isinstance(node, Apply):
            raise UndefinedError("it is no expression")
        values = [self.value(argument) for argument in node.arguments]
        try:
            if node.name in _OPERATIONS:
                return self._kept(_OPERATIONS[node.name](self, *values))
            function = _FUNCTIONS.get(node.name)
            if function is None:
                return self._drawn(f"{node.name}({', '.join(self.context.nstr(value, 12) for value in values)})")
            self._require_moderate(values)
            return self._kept(function(self.context, *values))
        except (ZeroDivisionError, ValueError, TypeError, OverflowError) as error:
            raise UndefinedError(f"it has no value ({error})") from None

    def _kept(self, value: Any) -> Any:
        if not self.context.isfinite(value):
            raise UndefinedError("it is not finite")
        size = abs(value)
        if size != 0:
            magnitude = abs(float(self.context.mag(size))) * 0.30103
            if magnitude > MAX_MAGNITUDE:
                raise TooLargeError("a number in it is too large or too small")
            self.scale = max(self.scale, magnitude)
        return value

    def _symbol(self, name: str) -> Any:
        if name in ("\\pi", "e"):
            return +(self.context.pi if name == "\\pi" else self.context.e)
        if name == "i":
            return self.context.mpc(0, 1)
        if name == "\\infty":
            raise UndefinedError("it is not finite")
        return self._drawn(name)

    def _drawn(self, name: str) -> Any:
        digest = hashlib.sha256(f"{self.point} {name}".encode()).digest()
        size = self.context.mpf(2**14 + int.from_bytes(digest[:2], "big")) / 2**15 * SCALES[self.point // 2]
        negative = self.point == 1 or (self.point % 2 and digest[2] % 2)
        return -size if negative else size

    def _require_moderate(self, values: list[Any]) -> None:
        if any(abs(value) > self.context.mpf(10) ** 200 for value in values):
            raise TooLargeError("a function in it is taken of too large a number")

    def vanishes(self, value: Any) -> bool:
        """Return whether a value is zero as far as the digits go."""
        return value == 0 or (self.threshold > 0 and abs(value) < self.context.mpf(10) ** -self.threshold)

    def _add(self, *values: Any) -> Any:
        total = self.context.fsum(values)
        return self.context.mpf(0) if self.vanishes(total) else total

    def _multiply(self, first: Any, second: Any) -> Any:
        return first * second

    def _divide(self, first: Any, second: Any) -> Any:
        if self.vanishes(second):
            raise UndefinedError("it divides by zero")
        return first / second

    def _power(self, base: Any, exponent: Any) -> Any:
        context = self.context
        if self.vanishes(base):
            if context.re(exponent) <= 0:
                raise UndefinedError("it raises zero to a power that is not positive")
            return context.mpf(0)
        if abs(exponent) * (abs(context.log(abs(base))) + 4) > MAX_MAGNITUDE * 2.4:
            raise TooLargeError("a power in it is too large")
        real = context.im(base) == 0 and context.im(exponent) == 0
        if real and context.re(base) < 0:
            fraction = Fraction(int(context.nint(exponent * 5040)), 5040)
            near = abs(exponent - context.mpf(fraction.numerator) / fraction.denominator) < context.mpf(10) ** -30
            if near and fraction.denominator % 2:
                sign = -1 if fraction.numerator % 2 else 1
                return sign * context.power(-base, exponent)
        return context.power(base, exponent)

    def _root(self, inside: Any, degree: Any) -> Any:
        if degree == 0:
            raise UndefinedError("a root of degree zero")
        return self._power(inside, 1 / degree) if inside != 0 else inside

    def _factorial(self, value: Any) -> Any:
        if abs(value) > MAX_FACTORIAL:
            raise TooLargeError("a factorial in it is too large")
        return self.context.gamma(value + 1)

    def _binomial(self, above: Any, below: Any) -> Any:
        return self._factorial(above) / (self._factorial(below) * self._factorial(above - below))

    def _max(self, *values: Any) -> Any:
        return max(values)

    def _min(self, *values: Any) -> Any:
        return min(values)

    def _log(self, value: Any, base: Any = None) -> Any:
        logarithm = self.context.log(value)
        return logarithm if base is None else self._divide(logarithm, self.context.log(base))


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": Evaluation._add,
    "multiply": Evaluation._multiply,
    "divide": Evaluation._divide,
    "power": Evaluation._power,
    "root": Evaluation._root,
    "factorial": Evaluation._factorial,
    "binomial": Evaluation._binomial,
    "max": Evaluation._max,
    "min": Evaluation._min,
    "log": Evaluation._log,
}

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{name: lambda c, x, name=name: getattr(c, name)(x) for name in ("sin", "cos", "tan", "cot", "sec", "csc")},
    **{name: lambda c, x, name=name: getattr(c, name)(x) for name in ("sinh", "cosh", "tanh", "coth", "exp", "ln")},
    "arcsin": lambda c, x: c.asin(x),
    "arccos": lambda c, x: c.acos(x),
    "arctan": lambda c, x: c.atan(x),
    "arsinh": lambda c, x: c.asinh(x),
    "lg": lambda c, x: c.log10(x),
    "cbrt": lambda c, x: c.cbrt(x) if c.im(x) or x >= 0 else -c.cbrt(-x),
    "abs": lambda _, x: abs(x),
    "floor": lambda c, x: c.floor(x),
    "ceil": lambda c, x: c.ceil(x),
}


def agree(first: Node, second: Node, point: int, tolerance: float = 0.0) -> tuple[bool, bool]:
    r"""Return whether two expressions have the same value at a point, and whether both are real there.

    A first pass finds the scale s of the numbers on the way; the second works with 60 + 2 s digits and takes what
    differs by less than 10^-(40 + s) for equal. So `\sqrt{2} + 10^{-50}` is not `\sqrt{2}`: its scale is 50.

    Raises:
        UndefinedError: one of them has no value there.
        TooLargeError: a value on the way is too large.
    """
    rough = Evaluation(context=_context(DIGITS + 20), point=point)
    for node in (first, second):
        rough.value(node)
    if rough.scale > MAX_SCALE:
        raise TooLargeError("a number in it is too large or too small")
    context = _context(DIGITS + 20 + 2 * int(rough.scale))
    fine = Evaluation(context=context, point=point, threshold=DIGITS + rough.scale)
    a, b = fine.value(first), fine.value(second)
    real = fine.vanishes(context.im(a)) and fine.vanishes(context.im(b))
    near = tolerance > 0 and abs(a - b) <= tolerance * abs(a)
    return near or fine.vanishes((a - b) / max(1, abs(a))), real


def _context(digits: int) -> Any:
    context = mpmath.MPContext()
    context.dps = digits
    return context
