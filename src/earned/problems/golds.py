r"""The gold answer in a column: after `####`, in `\boxed{}`, or the value as it stands."""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

MARK = "####"

_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


class GoldForm(StrEnum):
    """How a gold answer was found in its column; the value is the words for it."""

    AFTER_MARK = "the text after ####"
    BOXED = r"the content of the last \boxed{}"
    PLAIN = "as it stands"
    EMPTY = "empty"
    STRUCTURED = "a list or an object"


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold answer: None where the column holds no text to compare with, an empty string where it holds nothing."""

    text: str | None
    form: GoldForm


def read_gold(value: Any) -> Gold:
    r"""Return the gold answer that the value of an answer column holds.

    `####` counts when one line follows it and ends the text (GSM8K); else the last `\boxed{}` of a LaTeX solution.
    Numbers are written out without exponent, whole ones without fraction. A list of one value is that value.

    >>> read_gold("48 / 2 = 24\n48 + 24 = 72\n#### 72").text
    '72'
    >>> read_gold(r"so $x = \boxed{\frac{1}{2}}$.").text
    '\\frac{1}{2}'
    >>> [read_gold(value).text for value in (145.0, 7, ["x"], " B ", float("nan"), {"numbers": [3, 4]})]
    ['145', '7', 'x', 'B', '', None]
    """
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list | dict):
        return Gold(None, GoldForm.STRUCTURED)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return Gold("", GoldForm.EMPTY)
    text = plain_text(value).strip()
    forms = ((_after_mark(text), GoldForm.AFTER_MARK), (boxed(text), GoldForm.BOXED), (text, GoldForm.PLAIN))
    answer, form = next((answer, form) for answer, form in forms if answer is not None)
    return Gold(answer, form if answer else GoldForm.EMPTY)


def plain_text(value: Any) -> str:
    """Return a cell as text.

    >>> [plain_text(value) for value in (145.0, 0.1, 1e22, -0.0, 7, "7.0")]
    ['145', '0.1', '10000000000000000000000', '0', '7', '7.0']
    """
    if not isinstance(value, float):
        return str(value)
    return str(int(value)) if value.is_integer() else format(Decimal(repr(value)), "f")


def boxed(text: str) -> str | None:
    r"""Return what the last `\boxed` or `\fbox` of a LaTeX text holds, or None; linear in the length of the text.

    Without braces (`\boxed 5`) it holds the rest of the formula or line.

    >>> boxed(r"\boxed{1} then \boxed{ \{a_{1}, \frac{2}{3}\} }")
    '\\{a_{1}, \\frac{2}{3}\\}'
    >>> boxed(r"$\boxed 5$"), boxed(r"\boxed{never closed"), boxed("none")
    ('5', None, None)
    """
    start = max((match.end() for match in _BOX.finditer(text)), default=None)
    if start is None:
        return None
    if not text.startswith("{", start):
        return re.split(r"[$\n]", text[start:], maxsplit=1)[0].strip()
    inside = braced(text, start)
    return None if inside is None else inside[0].strip()


def braced(text: str, start: int) -> tuple[str, int] | None:
    """Return what the brace at a place holds and where it ends, None when it is never closed.

    >>> braced("{a{b}}c", 0), braced("{a", 0)
    (('a{b}', 6), None)
    """
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0 and brace.group() == "}":
            return text[start + 1 : brace.start()], brace.end()
    return None


def _after_mark(text: str) -> str | None:
    _, mark, answer = text.rpartition(MARK)
    return answer.strip() if mark and "\n" not in answer.strip() else None
