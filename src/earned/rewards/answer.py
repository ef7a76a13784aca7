r"""Where the answer of a completion is read: one rule for every check that compares answers.

The answer is what stands after the **last answer mark**, and it ends the completion. Marks are

- `####`, exactly four;
- `Answer:` in any letter case, not inside a longer word;
- a capital `A` directly before a number written in the digits 0-9, neither of them part of a longer word:
  `A124` and `A-3`, but not `BANANA 5`, `A5x` or `1A2`.

So `A124 or A125` answers 125: whoever writes several answers is held to the last. The answer is one line, and only
whitespace and one full stop may follow it. Nothing after the mark, or more text than the answer: there is no answer.

A completion **without any mark** answers by its last sentence, when that states exactly one number and holds no word of
doubt; of an equation only what follows its last `=` is stated. So `So 3 + 4 = 7 apples.` answers 7, `3 and 4 make 7`
nothing. A number is written in plain digits and is not part of a longer word, a fraction, a power or a percentage.

A completion that the length limit cut off inside its answer has none: `A12` may have been on the way to `A124`. An
answer is over when whitespace, a full stop or an exclamation mark follows it.

What this rule does not read: `\boxed{}`, `<answer>` tags, Markdown emphasis around the mark, units and currency signs
after a mark, LaTeX, words without a mark, an answer in the middle of the text. Each of them counts as wrong.
"""

import re
from collections import deque
from dataclasses import dataclass

MAX_ANSWER_CHARACTERS = 200
MAX_SENTENCE_CHARACTERS = 400
DOUBT = frozenset(["or", "either", "maybe", "perhaps", "probably", "possibly", "approximately", "not", "cannot"])
NOT_PLAIN = frozenset(["minus", "negative", "hundred", "thousand", "million", "billion", "percent"])
"""Words that make another number of the digits beside them."""

# The one unbounded quantifier is possessive and starts at a letter A, so the search is linear in the text.
_MARK = re.compile(r"(?<!#)####(?!#)|(?<!\w)(?:(?ai:answer:)|A(?=[+-]?[0-9][0-9.,]*+(?!\w)))")
_OVER = (*" \n\r\t", ".", "!")
_SENTENCE_END = re.compile(r"[.!?]\s")
_DIGITS = re.compile(r"[0-9]++(?:[.,][0-9]++)*+")
_NUMBER = re.compile(
    r"(?<![\w.,/^\u2212+-])(?<![\u2212+-] )[+-]?[0-9]++(?:,[0-9]++)*+(?:\.[0-9]++)?+(?!\w|\s?[/^%]|[.,][0-9])"
)
_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Extraction:
    """The answer that was read, or None, and why."""

    answer: str | None
    reason: str


def extract_answer(text: str, *, truncated: bool = False) -> Extraction:
    r"""Return the answer a completion ends with; linear in the length of the text.

    Args:
        text: The completion.
        truncated: True when the length limit ended it.

    >>> extract_answer("47+58=105;105+19=124;A124").answer
    '124'
    >>> extract_answer("They are 124 in all.\n#### 124.").answer
    '124'
    >>> extract_answer("Answer: 124\nor was it 125?")
    Extraction(answer=None, reason='text follows the answer')
    >>> extract_answer("First 47 + 58.\nIt is 47 + 58 = 105.").answer
    '105'
    >>> extract_answer("It is 124 or 125")
    Extraction(answer=None, reason="no answer mark, and the last sentence doubts: 'or'")
    """
    if truncated and not text.endswith(_OVER):
        return Extraction(None, "the length limit cut the completion off before an answer was over")
    marks = deque(_MARK.finditer(text), maxlen=1)
    if not marks:
        return _stated(_last_sentence(text))
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


def _last_sentence(text: str) -> str:
    """Return the last sentence; of a very long last line no more than is needed to see that it is too long."""
    lines = text.rstrip().splitlines()
    tail = lines[-1][-2 * MAX_SENTENCE_CHARACTERS :] if lines else ""
    return _SENTENCE_END.split(tail)[-1].strip()


def _stated(sentence: str) -> Extraction:
    """Return the one number that a sentence states."""
    none = "no answer mark, and the last sentence"
    if len(sentence) > MAX_SENTENCE_CHARACTERS:
        return Extraction(None, f"{none} is longer than {MAX_SENTENCE_CHARACTERS} characters")
    words = _WORD.findall(sentence.casefold().replace("n't", " not"))
    doubts = [word for word in words if word in DOUBT]
    if doubts or sentence.endswith("?"):
        return Extraction(None, f"{none} doubts: {doubts[0] if doubts else '?'!r}")
    claim = sentence.rpartition("=")[2]
    digits, numbers = _DIGITS.findall(claim), _NUMBER.findall(claim)
    if len(digits) != 1:
        return Extraction(None, f"{none} states {len(digits) or 'no'} number{'s' * (len(digits) != 1)}")
    if not numbers or not NOT_PLAIN.isdisjoint(words):
        return Extraction(None, f"{none} states no plain number")
    return Extraction(numbers[0], "the one number that the last sentence states")
