r"""From a text to tokens: LaTeX and plain notation are brought to one.

Sizing and spacing commands go, `\dfrac` is `\frac`, Unicode signs are their commands, `\text{...}` is a run of words.
Every step is linear in the text.
"""

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

from earned.rewards.marks import box_content
from earned.rewards.maths.tree import UnreadableError

MAX_CHARACTERS = 2000
MAX_DIGITS = 1000
MAX_BLOCK = 40
"""Digits that repeat."""
MAX_EXPONENT = 5000
"""Of a number in scientific notation."""

ANALYSIS = frozenset(["\\int", "\\iint", "\\oint", "\\sum", "\\prod", "\\lim"])
"""What our grammar leaves to math-verify. Of other texts that it cannot read math-verify would accept parts:
`12\\text{ or so}`."""
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2212\u2013\u2014\u2010\u2011", "-"),
        **dict.fromkeys("\u00d7\u00b7\u22c5\u2219\u2217", "*"),
        "\u00f7": "/",
        "\u2044": "/",
        "\u221a": r"\sqrt ",
        "\u03c0": r"\pi ",
        "\u03b8": r"\theta ",
        "\u2264": r"\le ",
        "\u2265": r"\ge ",
        "\u2260": r"\ne ",
        "\u221e": r"\infty ",
        "\u222a": r"\cup ",
        "\u2229": r"\cap ",
        "\u2208": r"\in ",
        "\u2205": r"\emptyset ",
        "\u00b1": r"\pm ",
        "\u00b0": r"^\circ ",
        "\u2026": r"\ldots ",
        "\u211d": r"\mathbb{R}",
        "\u00a0": " ",
        **dict.fromkeys("\u200b\u200c\ufeff", ""),
    }
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]++")
_MIXED = re.compile("([0-9])([\u00bc-\u00be\u2150-\u215e])")
_WRITTEN = {r"\$": "$", r"\%": "%", r"\{": r"\lbrace ", r"\}": r"\rbrace ", "{:}": ":"}
_NOTHING = re.compile(
    r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|limits|bf|it|rm|large|Large|normalsize|q?quad"
    r"|(?:text)?color\s*\{[a-zA-Z]*\}|hspace\{[^{}]*\}|[,;:!> ])(?![a-zA-Z])|~"
)
_EMPTY = re.compile(r"\$\s*+\$|(?<!\w)(?:np|math)\.(?=[a-z])")
"""The end and start of two stretches of mathematics, and the module that a function of Python comes from."""
_SAME = {
    **dict.fromkeys(["dfrac", "tfrac", "cfrac"], "frac"),
    **dict.fromkeys(["dbinom", "tbinom"], "binom"),
    **dict.fromkeys(["leq", "leqslant"], "le"),
    **dict.fromkeys(["geq", "geqslant"], "ge"),
    **dict.fromkeys(["neq"], "ne"),
    **dict.fromkeys(["lt"], "<"),
    **dict.fromkeys(["gt"], ">"),
    **dict.fromkeys(["times", "cdot", "ast"], "*"),
    **dict.fromkeys(["div"], "/"),
    **dict.fromkeys(["dots", "cdots", "ldots", "dotsc"], "ldots"),
    **dict.fromkeys(["varnothing"], "emptyset"),
    **dict.fromkeys(["backslash"], "setminus"),
    **dict.fromkeys(["lvert", "rvert", "vert", "mid"], "|"),
    **dict.fromkeys(["lbrace"], "{."),
    **dict.fromkeys(["rbrace"], "}."),
    **dict.fromkeys(["lbrack"], "["),
    **dict.fromkeys(["rbrack"], "]"),
    **dict.fromkeys(["degree"], "circ"),
    **dict.fromkeys(["varphi"], "phi"),
    **dict.fromkeys(["varepsilon"], "epsilon"),
    **dict.fromkeys(["arcsinh", "asinh"], "arsinh"),
    **dict.fromkeys(["asin"], "arcsin"),
    **dict.fromkeys(["acos"], "arccos"),
    **dict.fromkeys(["atan"], "arctan"),
}
"""Other names of a command, and signs that a command stands for."""
_TEXT = frozenset(
    [
        *("text", "textbf", "textit", "textrm", "texttt", "mbox", "hbox", "emph", "underline", "operatorname"),
        *("rm", "mathrm", "mathbf", "mathsf", "mathit", "mathtt", "boldsymbol", "bm"),
    ]
)
_OPENERS, _CLOSERS = frozenset(["(", "[", "{."]), frozenset([")", "]", "}."])
_ASCII = {"**": "^", "<=": "\\le", ">=": "\\ge", "!=": "\\ne", "->": "\\to", "...": "\\ldots"}

_GROUPED = r"[0-9]{1,3}(?:(?:,|,\\!\s?|\{,\}|\\,|\\ | )[0-9]{3}(?![0-9]))++"
_PLAIN = r"[0-9]++"
_NUMBER = re.compile(rf"(?:({_GROUPED})|({_PLAIN}))?(\.[0-9]*+)?(?:[eE]([+-]?[0-9]++)(?![0-9a-zA-Z.]))?")
_UNGROUPED = re.compile(rf"()({_PLAIN})?(\.[0-9]*+)?(?:[eE]([+-]?[0-9]++)(?![0-9a-zA-Z.]))?")
_REPEATING = re.compile(
    r"([0-9]*+\.[0-9]*+)"
    r"(?:\\(?:overline|bar|dot)\s*\{([0-9]++)\}|\\(?:overline|bar|dot)\s*([0-9])|\(([0-9]++)\))"
)
_TAIL = re.compile(r"[0-9]*+\.([0-9]++)\s*(?:\\[lc]?dots|\.\.\.)")
_COMMAND = re.compile(r"\\([a-zA-Z]++|.)", re.DOTALL)
_WORDS = re.compile(r"[^\W\d_](?:[^\W\d_]|[\s.'/^0-9-])*+")
_LETTERS = re.compile(r"[a-zA-Z]++")


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is number, letters, text, command or sign."""

    kind: str
    text: str
    value: Fraction = Fraction(0)
    """Of a number."""


def tokenize(text: str, *, grouped: bool = True) -> tuple[Token, ...]:
    r"""Return the tokens of a text; with `grouped`, commas before every third digit belong to the number.

    Raises:
        UnreadableError: for a sign that is none of mathematics, a number out of bounds, or too long a text.

    >>> [token.text for token in tokenize(r"\dfrac12 \text{ cm}")]
    ['\\frac', '12', 'cm']
    >>> tokenize("1{,}024.5")[0].value, tokenize(r"0.1\overline{6}")[0].value
    (Fraction(2049, 2), Fraction(1, 6))
    """
    if len(text) > MAX_CHARACTERS:
        raise UnreadableError(f"it is longer than {MAX_CHARACTERS} characters")
    text = _evened(text)
    tokens: list[Token] = []
    at, depth = 0, 0
    while at < len(text):
        found, at = _next(text, at, grouped and depth == 0)
        depth += sum((token.text in _OPENERS) - (token.text in _CLOSERS) for token in found if token.kind == "sign")
        tokens += found
    return tuple(tokens)


def _evened(text: str) -> str:
    text = _SUPERSCRIPT.sub(lambda found: "^{" + found.group().translate(_SUPERSCRIPTS) + "}", text)
    text = _EMPTY.sub(" ", text)
    text = _MIXED.sub(r"\1 \2", text)
    text = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS)
    for written, meant in _WRITTEN.items():
        text = text.replace(written, meant)
    return text


def _next(text: str, at: int, grouped: bool) -> tuple[tuple[Token, ...], int]:
    r"""Return the token at a place, none for what says nothing and all of a `\text{...}`, and the place after it."""
    number = _number(text, at, grouped)
    if number is not None:
        return (number[0],), number[1]
    if text[at].isspace():
        return (), at + 1
    nothing = _NOTHING.match(text, at)
    if nothing:
        return (), nothing.end()
    if text[at] == "\\":
        return _command(text, at)
    letters = _LETTERS.match(text, at)
    if letters:
        return (Token("letters", letters.group()),), letters.end()
    for long, short in _ASCII.items():
        if text.startswith(long, at):
            return (Token("command" if short[0] == "\\" else "sign", short),), at + len(long)
    if text[at] in "+-*/^_=<>()[]{}|!,;:%$'&&\"?.€£@":
        return (Token("sign", text[at]),), at + 1
    raise UnreadableError(f"it holds {text[at]!r}")


def _command(text: str, at: int) -> tuple[tuple[Token, ...], int]:
    found = _COMMAND.match(text, at)
    if found is None:
        raise UnreadableError("it ends in a backslash")
    name, end = found.group(1), found.end()
    if name in _TEXT:
        inside = box_content(text, end)
        if inside is None:
            raise UnreadableError(f"a brace after \\{name} is not closed")
        return _text(inside[0]), inside[1]
    same = _SAME.get(name, name)
    if same in ("*", "/", "<", ">", "|", "{.", "}.", "[", "]"):
        return (Token("sign", same),), end
    return (Token("command", "\\" + same),), end


def _text(content: str) -> tuple[Token, ...]:
    r"""Return the tokens of what `\text{...}` holds: one run of words, or whatever else it is."""
    content = content.replace("\\ ", " ").strip()
    if not content or "\\" in content or not _WORDS.fullmatch(content):
        return tokenize(content)
    return (Token("text", " ".join(content.split())),)


def _number(text: str, at: int, grouped: bool) -> tuple[Token, int] | None:
    repeating = _REPEATING.match(text, at)
    if repeating:
        block = next(group for group in repeating.groups()[1:] if group is not None)
        return _repeated(repeating.group(1), block), repeating.end()
    dots = _TAIL.match(text, at)
    block = _block(dots.group(1)) if dots else None
    if dots and block:
        start = dots.group().rstrip(".\\lcdots ")
        return _repeated(start[: len(start) - len(block)], block), dots.end()
    found = (_NUMBER if grouped else _UNGROUPED).match(text, at)
    if found is None or not (found.group(1) or found.group(2) or len(found.group(3) or "") > 1):
        return None
    whole = re.sub(r"[^0-9]", "", found.group(1) or found.group(2) or "0")
    decimals, exponent = (found.group(3) or ".")[1:], _exponent(found.group(4) or "0")
    if len(whole) + len(decimals) > MAX_DIGITS or abs(exponent) > MAX_EXPONENT:
        raise UnreadableError("a number in it has too many digits")
    value = Fraction(int(whole + decimals), 10 ** len(decimals)) * Fraction(10) ** exponent
    # A full stop after a whole number ends a sentence, or is written before a fraction bar: 1./3
    return Token("number", found.group(), value), found.end()


def _exponent(digits: str) -> int:
    return int(digits) if len(digits.lstrip("+-0")) < 6 else MAX_EXPONENT + 1


def _block(digits: str) -> str | None:
    """Return the block that digits before an ellipsis repeat: one digit three times, more digits twice.

    Of several the one that explains most of the digits: 0111 in 0.011101110111...
    """
    found: tuple[int, str] | None = None
    for length in range(1, min(len(digits) // 2, MAX_BLOCK) + 1):
        covered = length
        while covered < len(digits) and digits[-covered - 1] == digits[length - covered - 1]:
            covered += 1
        enough = covered >= (3 if length == 1 else 2 * length)
        if enough and (found is None or covered > found[0]):
            found = covered, digits[-length:]
    return None if found is None else found[1]


def _repeated(start: str, block: str) -> Token:
    if len(start) + len(block) > MAX_DIGITS:
        raise UnreadableError("a number in it has too many digits")
    whole, _, decimals = start.partition(".")
    first = Fraction(int((whole or "0") + decimals), 10 ** len(decimals))
    repeat = Fraction(int(block), (10 ** len(block) - 1) * 10 ** len(decimals))
    return Token("number", f"{start}({block})", first + repeat)
