r"""Where the answer of a completion is read: one rule for every check that compares answers.

The answer is what stands after the **last answer mark**, and it ends the completion. Marks are

- `####`, exactly four;
- `Answer:` in any letter case, not inside a longer word;
- a capital `A` directly before a number written in the digits 0-9, neither of them part of a longer word:
  `A124` and `A-3`, but not `BANANA 5`, `A5x` or `1A2`.

So `A124 or A125` answers 125: whoever writes several answers is held to the last. The answer is one line, and only
whitespace and one full stop may follow it. No mark, nothing after it, or more text than the answer: there is no answer,
and the reason says which.

What this rule does not read: `\boxed{}`, `<answer>` tags, Markdown emphasis around the answer or the mark, units and
currency signs, LaTeX, an answer in the middle of the text, an answer without a mark. Each of them counts as wrong.
"""

import re
from collections import deque
from dataclasses import dataclass

MAX_ANSWER_CHARACTERS = 200

# The one unbounded quantifier is possessive and starts at a letter A, so the search is linear in the text.
_MARK = re.compile(r"(?<!#)####(?!#)|(?<!\w)(?:(?ai:answer:)|A(?=[+-]?[0-9][0-9.,]*+(?!\w)))")


@dataclass(frozen=True, slots=True)
class Extraction:
    """The answer that was read, or None, and why."""

    answer: str | None
    reason: str


def extract_answer(text: str) -> Extraction:
    r"""Return the answer a completion ends with; linear in the length of the text.

    >>> extract_answer("47+58=105;105+19=124;A124").answer
    '124'
    >>> extract_answer("They are 124 in all.\n#### 124.").answer
    '124'
    >>> extract_answer("Answer: 124\nor was it 125?")
    Extraction(answer=None, reason='text follows the answer')
    >>> extract_answer("It must be 124")
    Extraction(answer=None, reason='no answer mark (####, Answer: or A before a number)')
    """
    marks = deque(_MARK.finditer(text), maxlen=1)
    if not marks:
        return Extraction(None, "no answer mark (####, Answer: or A before a number)")
    answer = trim(text[marks[0].end() :])
    if not answer:
        return Extraction(None, f"nothing follows the answer mark {marks[0].group()}")
    if len(answer.splitlines()) > 1:
        return Extraction(None, "text follows the answer")
    if len(answer) > MAX_ANSWER_CHARACTERS:
        return Extraction(None, f"the answer is longer than {MAX_ANSWER_CHARACTERS} characters")
    return Extraction(answer, f"read after the answer mark {marks[0].group()}")


def trim(text: str) -> str:
    """Return the text without the whitespace around it and without one full stop at its end.

    >>> trim(" 124. ")
    '124'
    """
    return text.strip().removesuffix(".").rstrip()
