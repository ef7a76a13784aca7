r"""What our own reading of mathematics does not know, such as integrals and limits, math-verify may still compare.

It runs in a process that is killed when it takes too long: its import takes seconds, so it is loaded only when needed.
"""

from itertools import pairwise

from math_verify import LatexExtractionConfig, parse, verify

from earned.rewards.maths.tokens import ANALYSIS, Token, tokenize
from earned.rewards.maths.tree import UnreadableError
from earned.vocabulary import Rule

MAX_CHARACTERS, MAX_DEPTH, MAX_DIGITS = 300, 8, 6
DIGITS = 30
"""To which math-verify compares numbers; its own 6 would take near for equal."""


def compare(gold: str, answer: str) -> tuple[str, str]:
    """Return the rule that decided and the reason in words."""
    refusal = too_risky(answer)
    if refusal:
        return Rule.UNREADABLE, refusal
    try:
        parsed = [
            parse(f"${text}$", [LatexExtractionConfig()], fallback_mode="no_fallback", parsing_timeout=0)
            for text in (gold, answer)
        ]
        equal = all(parsed) and verify(
            *parsed, float_rounding=DIGITS, numeric_precision=DIGITS + 20, timeout_seconds=None
        )
    except (ArithmeticError, ValueError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        return Rule.UNREADABLE, f"math-verify cannot compare it ({type(error).__name__})"
    if not all(parsed):
        return Rule.UNREADABLE, "math-verify cannot read it either"
    return (Rule.EQUAL, "the same for math-verify") if equal else (Rule.DIFFERENT, "another for math-verify")


def too_risky(answer: str) -> str | None:
    r"""Return why a text is kept from sympy: its size, its nesting, numbers and powers in it; None when it is not.

    >>> too_risky(r"\int_0^1 x \, dx"), too_risky(r"\int_0^1 x^{x^x} dx")
    (None, 'it holds a power of a power')
    """
    if len(answer) > MAX_CHARACTERS:
        return f"it is longer than {MAX_CHARACTERS} characters"
    try:
        tokens = tokenize(answer)
    except UnreadableError as error:
        return str(error)
    if not any(token.text in ANALYSIS for token in tokens) or any(token.kind == "text" for token in tokens):
        return "it is not in the grammar"
    if any(token.kind == "number" and len(token.text) > MAX_DIGITS for token in tokens):
        return f"it holds a number of more than {MAX_DIGITS} digits"
    if any(token.text in ("!", "\\binom") for token in tokens):
        return "it holds a factorial"
    return _nesting(tokens)


def _nesting(tokens: tuple[Token, ...]) -> str | None:
    """Return why brackets are nested too deeply, or exponents at all."""
    exponents: list[bool] = []
    for before, token in pairwise((Token("sign", ""), *tokens)):
        opens = token.kind != "number" and token.text in ("{", "(", "[")
        if opens:
            exponents.append(before.text == "^")
        elif token.text in ("}", ")", "]") and exponents:
            exponents.pop()
        if token.text == "^" and any(exponents):
            return "it holds a power of a power"
        if (before.text == "^" or any(exponents)) and token.kind == "number" and token.value > 100:
            return "it holds a large power"
        if len(exponents) > MAX_DEPTH:
            return f"it is nested more than {MAX_DEPTH} deep"
    return None


# The first text that its parser reads takes seconds; here they are no comparison's.
compare("1", r"\int_0^1 2x\,dx")
