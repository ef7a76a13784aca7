"""Units of quantities: which tokens at the end of a text are a unit, and what it is called."""

from collections.abc import Sequence

from earned.rewards.answer import DOUBT, RETRACTION
from earned.rewards.maths.expression_parser import FUNCTIONS
from earned.rewards.maths.tokens import Token

_NAMES = {
    "cm": ("cm", "centimeter", "centimetre"),
    "mm": ("mm", "millimeter", "millimetre"),
    "km": ("km", "kilometer", "kilometre"),
    "m": ("m", "meter", "metre"),
    "in": ("in", "inch", "inche"),
    "ft": ("ft", "foot", "feet"),
    "yd": ("yd", "yard"),
    "mi": ("mi", "mile"),
    "kg": ("kg", "kilogram"),
    "g": ("g", "gram"),
    "mg": ("mg", "milligram"),
    "lb": ("lb", "pound"),
    "s": ("s", "sec", "second"),
    "min": ("min", "minute"),
    "h": ("h", "hr", "hour"),
    "day": ("day",),
    "L": ("L", "l", "liter", "litre"),
    "mL": ("mL", "ml", "milliliter", "millilitre"),
    "$": ("$", "dollar", "usd", "buck"),
    "cent": ("cent",),
    "€": ("€", "euro", "eur"),
    "°": ("°", "degree", "deg"),
    "%": ("%", "percent"),
    "mph": ("mph",),
    "Hz": ("Hz", "hz"),
    "J": ("J", "joule"),
    "N": ("N", "newton"),
    "W": ("W", "watt"),
    "V": ("V", "volt"),
    "unit": ("unit",),
}
UNITS = {name: unit for unit, names in _NAMES.items() for name in names}
BARE = frozenset(["cm", "mm", "km", "kg", "mg", "lb", "ft", "yd", "min", "hr", "mL", "ml", "mph", "Hz", "usd", "eur"])
"""Short names that are units also without `\\text{...}`; a single letter is then a variable."""
NOT_UNITS = (
    DOUBT
    | RETRACTION
    | frozenset(
        [
            *("no", "never", "is", "isn", "are", "be", "to", "and", "below", "above", "otherwise", "etc", "something"),
            *("plus", "minus", "times", "negative", "positive", "squared", "cubed", "factorial", "modulo", "mod"),
            *("half", "halves", "third", "thirds", "quarter", "quarters", "fifths", "tenths", "tens", "hundreds"),
            *("dozen", "score", "gross", "lakh", "crore", "k", "mil", "base", "least", "most", "less", "more", "than"),
            "impossible",
        ]
    )
)
"""Words behind a number that make another number of it, or none."""
_POWERS = {"square": "^2", "sq": "^2", "cubic": "^3", "cu": "^3"}


def unit_of(tokens: Sequence[Token]) -> tuple[int, str]:
    r"""Return where the unit at the end of the tokens begins, and its name; the length and nothing where there is none.

    >>> from earned.rewards.maths.tokens import tokenize
    >>> [unit_of(tokenize(text)) for text in (r"48\text{ cm}^2", "5 square meters", "36%", "2 x", r"90^\circ")]
    [(1, 'cm^2'), (1, 'm^2'), (1, '%'), (2, ''), (1, '°')]
    """
    end = len(tokens)
    texts = [token.text for token in tokens]
    if texts[-1:] == ["%"]:
        return end - 1, "%"
    if any(text.removeprefix("\\") in FUNCTIONS for text in texts):
        return end, ""
    for circle in (["^", "\\circ"], ["^", "{", "\\circ", "}"]):
        if texts[-len(circle) :] == circle:
            return end - len(circle), "°"
    if texts[-1:] == ["\\circ"]:
        return end - 1, "°"
    power, start = _power(texts)
    first = start
    while first > 1 and _is_unit(tokens[first - 1]):
        first -= 1
    return (first, unit_name(" ".join(texts[first:start])) + power) if first < start else (end, "")


def unit_name(words: str) -> str:
    """Return the name that all writings of a unit share; of words that are no known unit, the words without plural."""
    power, names = "", []
    for word in words.replace(".", " ").split():
        if word.casefold() in _POWERS:
            power = _POWERS[word.casefold()]
        else:
            names.append(_known(word))
    return " ".join(names) + power


def _known(word: str) -> str:
    for form in (word, word.casefold(), word.casefold().removesuffix("s")):
        if form in UNITS:
            return UNITS[form]
    return word.casefold().removesuffix("s")


def _power(texts: list[str]) -> tuple[str, int]:
    """Return the exponent at the end, where it is 2 or 3, and where it begins."""
    for digit in "23":
        for written in (["^", digit], ["^", "{", digit, "}"]):
            if texts[-len(written) :] == written:
                return f"^{digit}", len(texts) - len(written)
    return "", len(texts)


def _is_unit(token: Token) -> bool:
    if not NOT_UNITS.isdisjoint(token.text.casefold().replace(".", " ").replace("'", " ").split()):
        return False
    if token.kind == "text":
        return True
    return token.kind == "letters" and (token.text in BARE or (len(token.text) >= 3 and token.text not in FUNCTIONS))
