r"""Expressions: a recursive descent over tokens, with a bound on nesting instead of a list of forbidden words.

Juxtaposition multiplies (`2xy`), save that two numbers side by side are no expression and a whole number before a
fraction is a mixed one. `f(x)` is a function where the letter is one that usually names a function, or where a single
number or letter stands in the brackets; otherwise a bracket after a letter multiplies.
"""

from collections.abc import Sequence
from fractions import Fraction

from earned.rewards.maths.tokens import Token
from earned.rewards.maths.tree import MINUS_ONE, Apply, Node, Number, Symbol, UnreadableError, minus

MAX_DEPTH = 60

FUNCTIONS = frozenset(
    [
        *("sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "coth"),
        *("arsinh", "ln", "log", "lg", "exp", "sqrt", "cbrt", "abs", "gcd", "lcm", "max", "min", "floor", "ceil"),
    ]
)
INVERSES = {"sin": "arcsin", "cos": "arccos", "tan": "arctan", "sinh": "arsinh"}
NAMED_LIKE_FUNCTIONS = frozenset("fghuFGH")
LETTERS = frozenset(
    [
        *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"),
        *("iota", "kappa", "lambda", "mu", "nu", "xi", "pi", "rho"),
        *("sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Gamma"),
        *("Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi"),
        *("Psi", "Omega", "hbar", "ell", "infty", "odot", "emptyset", "nabla", "partial"),
    ]
)
ACCENTS = frozenset(["vec", "hat", "bar", "dot", "ddot", "tilde", "overline", "mathbb", "mathcal", "mathfrak"])
DEGREE = Apply("divide", (Symbol("\\pi"), Number(Fraction(180))))
_BRACKETS = {"(": ")", "[": "]", "{": "}", "|": "|"}
_ROUND = {"\\lfloor": ("floor", "\\rfloor"), "\\lceil": ("ceil", "\\rceil")}


class ExpressionParser:
    r"""Reads one expression from tokens; `plus` is the sign of `\pm`, 1 or -1, and that of `\mp` is the other."""

    def __init__(self, tokens: Sequence[Token], plus: int = 1) -> None:
        self._tokens = _split_letters(tokens)
        self._at = 0
        self._depth = 0
        self._plus = plus
        self._in_bars = False
        """Whether a further bar closes one that is open."""

    def read(self) -> Node:
        """Return the tree of all tokens; raises UnreadableError when they are not one expression."""
        node = self._sum()
        if self._at < len(self._tokens):
            raise UnreadableError(f"{self._tokens[self._at].text!r} stands where an expression should be over")
        return node

    def _text(self, ahead: int = 0) -> str:
        """Return the text of a token ahead, empty for a number and past the end."""
        at = self._at + ahead
        return self._tokens[at].text if at < len(self._tokens) and self._tokens[at].kind != "number" else ""

    def _is_number(self, ahead: int = 0) -> bool:
        at = self._at + ahead
        return at < len(self._tokens) and self._tokens[at].kind == "number"

    def _take(self, text: str) -> bool:
        found = self._text() == text
        self._at += found
        return found

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise UnreadableError(f"{text!r} is missing")

    def _sum(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableError(f"it is nested more than {MAX_DEPTH} deep")
        terms = [self._signed()]
        while (sign := self._sign()) is not None:
            term = self._product()
            terms.append(term if sign > 0 else minus(term))
        self._depth -= 1
        return terms[0] if len(terms) == 1 else Apply("add", tuple(terms))

    def _sign(self) -> int | None:
        """Take a sign, if there is one, and return 1 or -1."""
        known = {"+": 1, "-": -1, "\\pm": self._plus, "\\mp": -self._plus}
        sign = known.get(self._text())
        self._at += sign is not None
        return sign

    def _signed(self) -> Node:
        value = 1
        while (sign := self._sign()) is not None:
            value *= sign
        term = self._product()
        return term if value > 0 else minus(term)

    def _product(self) -> Node:
        node = self._power()
        while True:
            if self._take("*"):
                node = Apply("multiply", (node, self._negatable()))
            elif self._take("/"):
                node = Apply("divide", (node, self._negatable()))
            elif self._starts_atom() and not (self._is_number() and self._is_number(-1)):
                node = Apply("multiply", (node, self._power()))
            else:
                return node

    def _negatable(self) -> Node:
        return minus(self._power()) if self._take("-") else self._power()

    def _starts_atom(self) -> bool:
        text = self._text()
        return self._is_number() or (
            text in ("(", "[", "{", "\\frac", "\\sqrt", "\\binom", *_ROUND)
            or text.removeprefix("\\") in FUNCTIONS | ACCENTS | LETTERS
            or (len(text) == 1 and text.isalpha())
            or (text == "|" and not self._in_bars)
        )

    def _power(self) -> Node:
        return self._postfix(self._atom())

    def _postfix(self, node: Node) -> Node:
        while True:
            if self._take("!"):
                node = Apply("factorial", (node,))
            elif self._degrees():
                node = Apply("multiply", (node, DEGREE))
            elif self._text() == "^" and self._text(1) == "\\prime":
                return node
            elif self._take("^"):
                node = Apply("power", (node, self._exponent()))
            else:
                return node

    def _degrees(self) -> bool:
        """Take a degree sign, if there is one."""
        for sign in (["^", "\\circ"], ["^", "{", "\\circ", "}"]):
            if [self._text(ahead) for ahead in range(len(sign))] == sign:
                self._at += len(sign)
                return True
        return False

    def _exponent(self) -> Node:
        if self._text() == "{":
            return self._bracketed()
        if self._take("-"):
            return minus(self._exponent())
        self._take("+")
        base = self._atom()
        return Apply("power", (base, self._exponent())) if self._take("^") else base

    def _atom(self) -> Node:
        if self._at >= len(self._tokens):
            raise UnreadableError("it ends where a number or a letter should be")
        if self._is_number():
            return self._mixed()
        text = self._text()
        if text in _BRACKETS:
            return self._bracketed()
        if text in _ROUND:
            self._at += 1
            inside = self._sum()
            self._need(_ROUND[text][1])
            return Apply(_ROUND[text][0], (inside,))
        name = text.removeprefix("\\")
        if text in ("\\frac", "\\binom"):
            self._at += 1
            kind = "divide" if text == "\\frac" else "binomial"
            return Apply(kind, (self._argument(), self._argument()))
        if name in FUNCTIONS and (text != name or len(name) > 1):
            return self._function(name)
        return self._symbol()

    def _mixed(self) -> Node:
        r"""Read a number, with the fraction that follows a whole one: `2\frac{1}{3}` or `2 1/3`."""
        number = self._tokens[self._at]
        self._at += 1
        if self._text() == "_":
            return self._based(number)
        node = Number(number.value)
        if not number.text.isdigit():
            return node
        if self._text() == "\\frac" and self._is_simple_fraction():
            return Apply("add", (node, self._atom()))
        if self._is_number() and self._text(1) == "/" and self._is_number(2):
            above, below = self._tokens[self._at], self._tokens[self._at + 2]
            self._at += 3
            if not (above.text.isdigit() and below.text.isdigit()) or below.value == 0 or above.value >= below.value:
                raise UnreadableError("two numbers stand side by side")
            return Number(number.value + above.value / below.value)
        return node

    def _is_simple_fraction(self) -> bool:
        """Return whether both arguments of the fraction ahead are whole numbers."""
        rest = [token.text for token in self._tokens[self._at + 1 : self._at + 7]]
        flat = "".join(rest)
        braced = len(rest) == 6 and rest[0] == rest[3] == "{" and rest[2] == rest[5] == "}"
        return (braced and rest[1].isdigit() and rest[4].isdigit()) or (flat[:2].isdigit() and rest[0].isdigit())

    def _based(self, number: Token) -> Node:
        """Read a number in another base: `1011_2`."""
        self._need("_")
        base = self._argument()
        if not (isinstance(base, Number) and base.value.denominator == 1 and 2 <= base.value <= 36):
            raise UnreadableError("a number has a subscript that is no base")
        try:
            return Number(Fraction(int(number.text, int(base.value))))
        except ValueError:
            raise UnreadableError(f"{number.text} has no meaning in base {base.value}") from None

    def _bracketed(self) -> Node:
        opening = self._text()
        self._at += 1
        outer, self._in_bars = self._in_bars, opening == "|"
        inside = self._sum()
        self._need(_BRACKETS[opening])
        self._in_bars = outer
        return Apply("abs", (inside,)) if opening == "|" else inside

    def _argument(self) -> Node:
        """Read the argument of a LaTeX command: braces, or one digit or letter."""
        if self._text() == "{":
            return self._bracketed()
        if self._is_number():
            token = self._tokens[self._at]
            if len(token.text) > 1 and token.text.isdigit():
                digit, rest = token.text[0], token.text[1:]
                self._tokens[self._at : self._at + 1] = [
                    Token("number", digit, Fraction(int(digit))),
                    Token("number", rest, Fraction(int(rest))),
                ]
            self._at += 1
            return Number(self._tokens[self._at - 1].value)
        return self._atom()

    def _function(self, name: str) -> Node:
        self._at += 1
        power = self._exponent() if self._text() == "^" and self._take("^") else None
        base: tuple[Node, ...] = ()
        if name == "log" and self._take("_"):
            base = (self._argument(),)
        if name == "sqrt":
            return self._root(power)
        node = Apply(name, (*self._arguments(), *base))
        if power == MINUS_ONE and name in INVERSES:
            return Apply(INVERSES[name], node.arguments)
        return node if power is None else Apply("power", (node, power))

    def _root(self, power: Node | None) -> Node:
        degree: Node = Number(Fraction(2))
        if self._take("["):
            degree = self._sum()
            self._need("]")
        inside = self._argument() if self._text() != "(" else self._bracketed()
        node = Apply("root", (inside, degree))
        return node if power is None else Apply("power", (node, power))

    def _arguments(self) -> tuple[Node, ...]:
        """Read what a function is applied to: brackets, or the product that follows it."""
        if self._text() in ("(", "{", "["):
            opening = self._text()
            self._at += 1
            inside = [self._sum()]
            while self._take(","):
                inside.append(self._sum())
            self._need(_BRACKETS[opening])
            return tuple(inside)
        node = minus(self._power()) if self._take("-") else self._power()
        while self._starts_atom() and self._text().removeprefix("\\") not in FUNCTIONS and not self._is_number():
            node = Apply("multiply", (node, self._power()))
        return (node,)

    def _symbol(self) -> Node:
        name = self._symbol_name()
        while self._text() == "_" or self._text() == "'" or (self._text() == "^" and self._primes(1)):
            if self._take("_"):
                name += "_" + self._subscript()
            elif self._take("'"):
                name += "'"
            else:
                self._at += 1
                name += "'" * self._primes(0)
                self._skip_primes()
        if self._text() == "(" and (name[0] in NAMED_LIKE_FUNCTIONS or self._single_in_brackets()):
            return Apply(name, self._arguments())
        return Symbol(name)

    def _symbol_name(self) -> str:
        text = self._text()
        name = text.removeprefix("\\")
        if name in ACCENTS and text != name:
            self._at += 1
            braced = self._take("{")
            inner = self._symbol_name()
            if braced:
                self._need("}")
            return f"{name} {inner}"
        if (text.startswith("\\") and name in LETTERS) or (len(text) == 1 and text.isalpha()):
            self._at += 1
            return text
        raise UnreadableError(f"{text or 'nothing'!r} stands where a number or a letter should be")

    def _subscript(self) -> str:
        if not self._take("{"):
            self._at += 1
            return self._tokens[self._at - 1].text if self._at <= len(self._tokens) else ""
        parts: list[str] = []
        while self._at < len(self._tokens) and self._text() != "}":
            parts.append(self._tokens[self._at].text)
            self._at += 1
        self._need("}")
        return "".join(parts)

    def _primes(self, ahead: int) -> int:
        r"""Return how many primes the exponent ahead consists of: `^\prime` or `^{\prime\prime}`."""
        if self._text(ahead) == "\\prime":
            return 1
        count = 0
        while self._text(ahead) == "{" and self._text(ahead + 1 + count) == "\\prime":
            count += 1
        return count if count and self._text(ahead + 1 + count) == "}" else 0

    def _skip_primes(self) -> None:
        while self._text() in ("{", "\\prime"):
            self._at += 1
        self._take("}")

    def _single_in_brackets(self) -> bool:
        single = self._is_number(1) or (len(self._text(1)) == 1 and self._text(1).isalpha())
        return single and self._text(2) == ")"


def _split_letters(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with runs of letters as function names or as single letters."""
    split: list[Token] = []
    for token in tokens:
        if token.kind == "text" and (token.text in FUNCTIONS or len(token.text) == 1):
            split.append(Token("letters", token.text))
        elif token.kind == "letters" and token.text not in FUNCTIONS:
            split += [Token("command", "\\pi")] if token.text == "pi" else [Token("letters", c) for c in token.text]
        else:
            split.append(token)
    return split
