r"""Structures: lists, relations, tuples, intervals, sets, matrices, quantities with units, words; then expressions.

Tokens are split at the outermost level, so nothing is searched twice at one depth.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from earned.problems.golds import braced
from earned.rewards.maths.expression_parser import FUNCTIONS, MAX_DEPTH, ExpressionParser
from earned.rewards.maths.tokens import MAX_CHARACTERS, Token, tokenize
from earned.rewards.maths.tree import (
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
    UnreadableError,
    Words,
)
from earned.rewards.maths.units import NOT_UNITS, unit_of

MAX_ITEMS = 200
RELATIONS = {"=": "=", "<": "<", ">": ">", "\\le": "<=", "\\ge": ">=", "\\ne": "!=", "\\in": "in"}
SET_OPERATIONS = {"\\cup": "union", "\\cap": "intersection", "\\setminus": "difference"}
_OPENERS = frozenset(["(", "[", "{", "{.", "\\lfloor", "\\lceil", "\\begin"])
_CLOSERS = frozenset([")", "]", "}", "}.", "\\rfloor", "\\rceil", "\\end"])
_CURRENCIES = frozenset("$€£")
_MATRIX = re.compile(
    r"(?:\\left[(\[])?\s*\\begin\s*\{([pbB]?matrix|array)\}(?:\s*\{[clr|\s]*\})?(.*)"
    r"\\end\s*\{\1\}\s*(?:\\right[)\]])?",
    re.DOTALL,
)
_WRAPPED = re.compile(r"\\(?:text|textbf|textit|mathrm|mbox)\s*\{([^{}]*)\}")
_WORDLIKE = re.compile(r"[^\W\d_](?:[^\W\d_]|[\s,.'()-])*", re.UNICODE)
_LONG_WORD = re.compile(r"[^\W\d_]{3,}", re.UNICODE)
_CHOICE = re.compile(r"(?:\(([A-J])\)|(?:[oO]ption |[cC]hoice )\(?([A-J])\)?|([A-J])[.):])(?:\s.*)?", re.DOTALL)
_NAMED = re.compile(r"^\s*[A-Za-z](?:\^\{?-1\}?)?\s*=")
_AROUND = ("\\displaystyle", "{", "\\mathbf{", "\\boldsymbol{", "\\bm{", "\\mathrm{")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})\s*(a\.?m\.?|p\.?m\.?)?", re.IGNORECASE)
_BASED = re.compile(r"([0-9A-Z]{1,40})_\{?([0-9]{1,2})\}?")
_PADDED = re.compile(r"0[0-9]")
"""A number that is padded with zeros is the end of a thousand, not an item of a list."""
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}

Tokens = Sequence[Token]


def readings(text: str, *, decimal_comma: bool = False) -> tuple[Node, ...]:
    """Return what a text can mean: one tree, or several where a comma may have several meanings; never none.

    Between groups of three digits it separates thousands or items, and with `decimal_comma` decimals anywhere.

    Raises:
        UnreadableError: it means nothing that is in the grammar.

    >>> [len(readings(text)) for text in ("1234", "1,234", "1, 234")]
    [1, 2, 1]
    """
    if len(text) > MAX_CHARACTERS:
        raise UnreadableError(f"it is longer than {MAX_CHARACTERS} characters")
    if decimal_comma and _DECIMAL_COMMA.fullmatch(text):
        return (*readings(text), *readings(text.replace(",", ".")))
    text = _bare(text)
    whole = _as_choice(text) or as_words(text) or _as_clock(text) or _as_based(text)
    if whole is not None:
        return (whole,)
    matrix = _MATRIX.fullmatch(_NAMED.sub("", text).strip("$ "))
    if matrix:
        return (_matrix(matrix.group(2)),)
    if "\\begin" in text:
        raise UnreadableError("it holds an environment that is no matrix")
    first = parse(tokenize(text))
    separate = tokenize(text, grouped=False)
    if any(token.kind == "number" and _PADDED.match(token.text) for token in separate):
        return (first,)
    try:
        second = parse(separate)
    except UnreadableError:
        return (first,)
    return (first,) if second == first else (first, second)


def as_words(text: str) -> Words | None:
    r"""Return a text that is plain words, evened out; None for anything mathematical.

    >>> as_words(r"\text{Tuesday}."), as_words("no  Solution"), as_words("xy"), as_words(r"\text{A}")
    (Words(text='tuesday'), Words(text='no solution'), None, None)
    """
    bare = _unwrapped(text).removesuffix(".").strip()
    if bare.casefold() == "no":
        return Words("no")
    if not _WORDLIKE.fullmatch(bare) or not _LONG_WORD.search(bare):
        return None
    words = bare.casefold().split()
    if all(word.strip("()") in FUNCTIONS or len(word.strip("()")) < 3 for word in words) or "(" in bare.strip("()"):
        return None
    return Words(" ".join(words).strip("()"))


def _unwrapped(text: str) -> str:
    """Return a text without the commands around its words."""
    return _WRAPPED.sub(lambda found: found.group(1), text).replace("\\ ", " ").strip()


def _bare(text: str) -> str:
    r"""Return a text without braces, `\displaystyle` and bold type around all of it, and without what it is near.

    >>> _bare(r"{\displaystyle \mathbf{x+1}} \approx 2.5")
    'x+1'
    """
    text = text.partition("\\approx")[0].strip() or text.strip()
    for prefix in _AROUND:
        if text.startswith(prefix):
            rest = text[len(prefix) :].lstrip()
            if not prefix.endswith("{") and not rest[:1].isalpha():
                return _bare(rest)
            inside = braced(text, len(prefix) - 1) if prefix.endswith("{") else None
            if inside is not None and inside[1] == len(text):
                return _bare(inside[0])
    return text


def _as_choice(text: str) -> Symbol | None:
    """Return the letter of a choice that is written out: `(B) 12`, `B. 12`, `Option B`."""
    choice = _CHOICE.fullmatch(_unwrapped(text))
    return None if choice is None else Symbol(next(letter for letter in choice.groups() if letter))


def _as_clock(text: str) -> Words | None:
    """Return a time of day, which is no ratio: `9:05 am`."""
    clock = _CLOCK.fullmatch(_unwrapped(text))
    if clock is None or int(clock.group(1)) > 24 or int(clock.group(2)) > 59:
        return None
    half = (clock.group(3) or "").replace(".", "").casefold()
    return Words(f"{int(clock.group(1))}:{clock.group(2)} {half}".strip())


def _as_based(text: str) -> Number | None:
    """Return a number whose digits in another base are letters too: `2A_{16}`."""
    based = _BASED.fullmatch(text.strip())
    if based is None or based.group(1).isdigit():
        return None
    base = int(based.group(2))
    return Number(Fraction(int(based.group(1), base))) if _fits(based.group(1), base) else None


def _fits(digits: str, base: int) -> bool:
    return 2 <= base <= 36 and all(int(digit, 36) < base for digit in digits)


def parse(tokens: Tokens, depth: int = 0) -> Node:
    """Return the tree of tokens.

    Raises:
        UnreadableError: they are not in the grammar.
    """
    if depth > MAX_DEPTH:
        raise UnreadableError(f"it is nested more than {MAX_DEPTH} deep")
    tokens = _without_ends(tokens)
    if not tokens:
        raise UnreadableError("nothing is there")
    for rule in (_listing, _relation, _set_operation, _brackets, _ratio, _plus_minus):
        node = rule(tokens, depth)
        if node is not None:
            return node
    return _quantity(tokens)


def _without_ends(tokens: Tokens) -> Tokens:
    """Return the tokens without a full stop, comma or semicolon at the end."""
    while tokens and tokens[-1].text in (".", ",", ";", "$") and len(tokens) > 1:
        tokens = tokens[:-1]
    return tokens


def _levels(tokens: Tokens) -> Iterator[tuple[Token, int]]:
    """Yield the tokens, each with the number of brackets that are open after it."""
    level = 0
    for token in tokens:
        structural = token.kind in ("sign", "command")
        level += (structural and token.text in _OPENERS) - (structural and token.text in _CLOSERS)
        yield token, level


def _split(tokens: Tokens, separates: Callable[[Token], bool]) -> tuple[list[Tokens], list[str]]:
    """Return the stretches between the outermost separators, and the separators."""
    parts: list[Tokens] = []
    between: list[str] = []
    start = level = 0
    for index, (token, level) in enumerate(_levels(tokens)):
        if level < 0:
            raise UnreadableError("a bracket is closed that was not opened")
        if level == 0 and separates(token):
            parts.append(tokens[start:index])
            between.append(token.text)
            start = index + 1
    if level:
        raise UnreadableError("a bracket is not closed")
    return [*parts, tokens[start:]], between


def _separates_items(token: Token) -> bool:
    return token.text in (",", ";", "and", "or", "\\land", "\\lor") and token.kind != "number"


def _listing(tokens: Tokens, depth: int) -> Node | None:
    parts, between = _split(tokens, _separates_items)
    if not between:
        return None
    items = [part for part in parts if part]
    if not (parts[0] and parts[-1]):
        raise UnreadableError("a list begins or ends with nothing")
    if len(items) > MAX_ITEMS:
        raise UnreadableError(f"it lists more than {MAX_ITEMS} things")
    joint = "or" if any(word in ("or", "\\lor") for word in between) else ","
    return Listing(tuple(_item(part, depth + 1) for part in items), joint)


def _item(tokens: Tokens, depth: int) -> Node:
    return Dots() if [token.text for token in tokens] == ["\\ldots"] else parse(tokens, depth)


def _relation(tokens: Tokens, depth: int) -> Node | None:
    sides, operators = _split(tokens, lambda token: token.text in RELATIONS and token.kind != "number")
    if not operators:
        return None
    if len(operators) > MAX_DEPTH:
        raise UnreadableError(f"it chains more than {MAX_DEPTH} relations")
    first = _label(sides[0]) if operators[0] == "=" else None
    rest = tuple(parse(side, depth + 1) for side in (sides if first is None else sides[1:]))
    return Relation(tuple(RELATIONS[o] for o in operators), rest if first is None else (first, *rest))


def _label(tokens: Tokens) -> Words | None:
    r"""Return words or signs that only say what is equal to something: `\text{Area} = 6`, `\angle ABC = 30`."""
    wordy = any(token.kind == "text" and len(token.text) > 1 for token in tokens)
    if wordy and any(not NOT_UNITS.isdisjoint(token.text.casefold().split()) for token in tokens):
        return None
    return (
        Words(" ".join(token.text for token in tokens))
        if wordy or tokens[:1] == (Token("command", "\\angle"),)
        else None
    )


def _set_operation(tokens: Tokens, depth: int) -> Node | None:
    parts, names = _split(tokens, lambda token: token.text in SET_OPERATIONS)
    if not names:
        return None
    if len(set(names)) > 1:
        raise UnreadableError("it mixes operations on sets without brackets")
    return SetOperation(SET_OPERATIONS[names[0]], tuple(parse(part, depth + 1) for part in parts))


def _brackets(tokens: Tokens, depth: int) -> Node | None:
    """Read a pair of brackets around everything: a set, a tuple, an interval."""
    first, last = tokens[0], tokens[-1]
    if len(tokens) == 1 and first.text == "\\emptyset":
        return FiniteSet(())
    if first.kind != "sign" or last.kind != "sign" or _closing_index(tokens) != len(tokens) - 1:
        return None
    inside = tokens[1:-1]
    if first.text == "{." and last.text == "}.":
        builder = _set_builder(inside, depth)
        return builder or FiniteSet(tuple(_item(part, depth + 1) for part in _comma_parts(inside)))
    if first.text == "{" and last.text == "}":
        return parse(inside, depth + 1)
    if first.text in "([" and last.text in ")]":
        parts = _comma_parts(inside)
        if len(parts) > 1:
            return Group(first.text, tuple(_item(part, depth + 1) for part in parts), last.text)
        if first.text == "(" and last.text == ")" and inside:
            return parse(inside, depth + 1)
    return None


def _set_builder(tokens: Tokens, depth: int) -> Node | None:
    """Read `x | 0 < x`, the inside of a set that is given by a condition, as the condition."""
    bars = [i for i, token in enumerate(tokens) if token.kind == "sign" and token.text in ("|", ":")]
    condition = _relation(tokens[bars[0] + 1 :], depth + 1) if len(bars) == 1 and bars[0] in (1, 3) else None
    return condition if isinstance(condition, Relation) else None


def _comma_parts(tokens: Tokens) -> list[Tokens]:
    parts = _split(tokens, lambda token: token.text in (",", ";") and token.kind == "sign")[0] if tokens else []
    if len(parts) > MAX_ITEMS:
        raise UnreadableError(f"it lists more than {MAX_ITEMS} things")
    return parts


def _closing_index(tokens: Tokens) -> int:
    """Return where the bracket that opens the tokens closes, -1 where the first is none or it never does."""
    closed = next((index for index, (_, level) in enumerate(_levels(tokens)) if level <= 0), -1)
    return closed or -1


def _ratio(tokens: Tokens, depth: int) -> Node | None:
    parts, colons = _split(tokens, lambda token: token.text == ":" and token.kind == "sign")
    return Ratio(tuple(parse(part, depth + 1) for part in parts)) if colons else None


def _plus_minus(tokens: Tokens, _: int) -> Node | None:
    r"""Read `a \pm b` as the list of both."""
    if not any(token.text in ("\\pm", "\\mp") for token in tokens):
        return None
    return Listing(tuple(ExpressionParser(tokens, sign).read() for sign in (1, -1)))


def _quantity(tokens: Tokens) -> Node:
    """Read an expression with a currency before it or a unit behind it."""
    tokens = _scaled(tokens)
    currency = next((token.text for token in tokens[:2] if token.kind == "sign" and token.text in _CURRENCIES), None)
    if currency is not None:
        rest = [token for token in tokens if token.text not in _CURRENCIES]
        return Quantity(ExpressionParser(rest).read(), currency)
    end, unit = unit_of(tokens)
    if unit and end:
        return Quantity(ExpressionParser(tokens[:end]).read(), unit)
    return ExpressionParser(tokens).read()


def _scaled(tokens: Tokens) -> Tokens:
    """Return the tokens with `5 million` as a number."""
    scaled: list[Token] = []
    for token in tokens:
        power = _SCALES.get(token.text.casefold()) if token.kind in ("letters", "text") else None
        if power is not None and scaled and scaled[-1].kind == "number":
            scaled[-1] = Token("number", f"{scaled[-1].text} {token.text}", scaled[-1].value * 10**power)
        else:
            scaled.append(token)
    return scaled


def _matrix(body: str) -> Node:
    rows = [row for row in body.split("\\\\") if row.strip()]
    if len(rows) > MAX_ITEMS:
        raise UnreadableError(f"it has more than {MAX_ITEMS} rows")
    return Matrix(tuple(tuple(parse(tokenize(cell)) for cell in row.split("&")) for row in rows))
