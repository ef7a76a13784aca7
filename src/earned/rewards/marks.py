r"""Answer marks: the places where a completion says that its answer stands.

`\boxed{...}` and `<answer>...</answer>` enclose the answer. After the others it runs to the end of its line, or of its
sentence where the mark is the words "the answer is".
"""

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from earned.problems.golds import braced

_KINDS = {
    "boxed": r"\\f?boxed(?![a-zA-Z])",
    "tag": r"<answer>",
    "hashes": r"(?<!#)####(?!#)",
    "colon": r"(?<!\w)(?ai:answer:)",
    "phrase": r"(?<!\w)(?ai:(?:answers?|option|choice) (?:is|are)(?!\w):?)",
    # A letter A directly before a plain number; the one unbounded quantifier is possessive, so the search is linear.
    "letter": r"(?<!\w)A(?=[+-]?[0-9][0-9.,]*+(?!\w))",
}
_MARK = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))
_UNBRACED = re.compile(r"[+-]?[0-9][0-9.,]*+|\\[a-zA-Z]++|\S")
_BETWEEN = re.compile(
    r"(?:[\s,;$.&*()/|-]|\\[,;!()\[\] ]|\\text\{[a-z ]*+\}|(?:and|or|else|maybe|possibly|perhaps|vs)(?!\w))*+"
)
_OPENING = re.compile(r"^(?:\$\$|\\\[)\s*\n\s*")
"""Of mathematics that stands on lines of its own."""
SENTENCE_END = re.compile(r"[.!?](?=\s)")
MOST_BOXES = 20
"""So many boxes side by side are read as one list."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Marked:
    """The last mark of a text and what it marks."""

    name: str
    """As a reader knows it, such as `####`."""
    answer: str | None
    """None when the place of the answer was not closed before the text ended."""
    rest: str
    """What follows the answer."""
    start: int
    """Where the mark begins."""
    enclosed: bool
    """True when the mark itself says where the answer ends."""


def last_mark(text: str) -> Marked | None:
    r"""Return the last mark, in time linear in the text; None without any.

    Boxes with nothing between them but commas, semicolons, `and`, `or` are one answer that lists them.

    >>> last_mark(r"It is \boxed{\frac{1}{2}}, I think.")
    Marked(name='\\boxed', answer='\\frac{1}{2}', rest=', I think.', start=6, enclosed=True)
    >>> last_mark(r"\boxed{3} or \boxed{4}").answer
    '3, 4'
    """
    marks = deque(_MARK.finditer(text), maxlen=MOST_BOXES)
    return _READERS[str(marks[-1].lastgroup)](text, marks) if marks else None


def _boxed(text: str, marks: deque[re.Match[str]]) -> Marked:
    mark = marks[-1]
    inside = box_content(text, mark.end())
    if inside is None:
        return Marked(name="\\boxed", answer=None, rest="", start=mark.start(), enclosed=True)
    answers, start, rest = [inside[0]], mark.start(), text[inside[1] :]
    for before in list(marks)[-2::-1]:
        earlier = box_content(text, before.end()) if before.lastgroup == "boxed" else None
        if earlier is None or earlier[1] > start or not _BETWEEN.fullmatch(text, earlier[1], start):
            break
        answers += [earlier[0]] if earlier[0].strip() else []
        start = before.start()
    same = dict.fromkeys(reversed(answers))
    return Marked(name="\\boxed", answer=", ".join(same), rest=rest, start=start, enclosed=True)


def box_content(text: str, start: int) -> tuple[str, int] | None:
    r"""Return the argument of a command and where it ends; `start` is where the command's name ends.

    None when its brace is never closed, or nothing follows. Without a brace one token is the argument, as in LaTeX,
    save that a number is taken whole.

    >>> box_content(r"{a{b}}c", 0), box_content(" 42.", 0), box_content("{a", 0)
    (('a{b}', 6), ('42', 3), None)
    """
    while start < len(text) and text[start].isspace():
        start += 1
    if not text.startswith("{", start):
        token = _UNBRACED.match(text, start)
        return (token.group().rstrip(".,"), start + len(token.group().rstrip(".,"))) if token else None
    return braced(text, start)


def _tag(text: str, marks: deque[re.Match[str]]) -> Marked:
    mark = marks[-1]
    answer, closed, rest = text[mark.end() :].partition("</answer>")
    return Marked(name="<answer>", answer=answer if closed else None, rest=rest, start=mark.start(), enclosed=True)


def _line(text: str, marks: deque[re.Match[str]]) -> Marked:
    mark = marks[-1]
    after = _OPENING.sub("", text[mark.end() :].lstrip()).removesuffix("</answer>")
    lines = after.splitlines(keepends=True)
    first = lines[0] if lines else ""
    return Marked(name=mark.group(), answer=first, rest=after[len(first) :], start=mark.start(), enclosed=False)


def _letter(text: str, marks: deque[re.Match[str]]) -> Marked:
    """Read after a letter A, save inside a tag, where it is part of the answer: `<answer>w, A2</answer>`."""
    opened = text.rfind("<answer>", 0, marks[-1].start())
    if opened < 0 or text.find("</answer>", opened) < marks[-1].start():
        return _line(text, marks)
    tag = _MARK.match(text, opened)
    assert tag is not None
    return _tag(text, deque([tag]))


def _phrase(text: str, marks: deque[re.Match[str]]) -> Marked:
    line = _line(text, marks)
    assert line.answer is not None
    end = SENTENCE_END.search(line.answer)
    sentence = line.answer[: end.end()] if end else line.answer
    rest = line.answer[len(sentence) :] + line.rest
    sentence = sentence.rstrip().removesuffix("!")
    return Marked(name=line.name, answer=sentence, rest=rest, start=line.start, enclosed=False)


_READERS: Mapping[str, Callable[[str, deque[re.Match[str]]], Marked]] = {
    "boxed": _boxed,
    "tag": _tag,
    "hashes": _line,
    "colon": _line,
    "phrase": _phrase,
    "letter": _letter,
}
