r"""Where the answer of a completion is read: one rule for every check that compares answers.

Only what follows the last thinking block (`</think>`) counts; a completion that ends inside one has no answer. The
answer is then what the **last mark** marks:

- `\boxed{...}` or `\fbox{...}`, braces inside it balanced, and `<answer>...</answer>`;
- `####`, exactly four, and `Answer:` in any letter case: the rest of the line;
- the words `answer is`: the rest of the sentence;
- a capital `A` directly before a number written in the digits 0-9, neither of them part of a longer word:
  `A124` and `A-3`, but not `BANANA 5`, `A5x` or `1A2`: the rest of the line.

So `A124 or A125` answers 125: whoever writes several answers is held to the last, save that boxes side by side are one
answer that lists them. What follows the answer must not take it back (`wait`, `wrong`, ...), and after an answer that
is not enclosed it must not hold a further number or a doubt either. Markdown emphasis, `$`, `\(...\)` around an answer
and one full stop are no part of it. A mark that stands in a line of the prompt, repeated as it was, marks nothing.

A completion **without any mark** answers by its last sentence, when that states exactly one number and holds no word of
doubt; of an equation only what follows its last `=` is stated. So `So 3 + 4 = 7 apples.` answers 7, `3 and 4 make 7`
nothing. A number is written in plain digits and is not part of a longer word, a fraction, a power or a percentage.

A completion that the length limit cut off inside its answer has none: `A12` may have been on the way to `A124`. An
answer is over when its box or tag is closed, or when whitespace, a full stop or an exclamation mark follows it.
"""

import re
from collections import deque
from dataclasses import dataclass

from earned.rewards.marks import SENTENCE_END, Marked, last_mark
from earned.vocabulary import Attempt

MAX_ANSWER_CHARACTERS = 400
MAX_BOX_CHARACTERS = 1000
MAX_SENTENCE_CHARACTERS = 400
MAX_CHARACTERS = 100_000
"""Of a longer completion only the end is searched."""
ECHO_CHARACTERS = 12
"""A shorter line that the prompt also holds may still be meant as an answer."""
RETRACTION = frozenset(
    [
        *("wait", "wrong", "incorrect", "false", "mistake", "mistaken", "oops", "sorry", "scratch"),
        *("correction", "reconsider", "actually", "hmm"),
    ]
)
BEFORE = frozenset(["or", "not", "never", "guess", "maybe", "perhaps", "probably", "possibly"])
"""One of the last two words before a mark that says the answer is none, or one of several."""
DOUBT = frozenset(
    [
        *("or", "either", "maybe", "perhaps", "probably", "possibly", "not", "cannot", "unsure", "unknown"),
        *("approximately", "about", "around", "roughly", "approx", "nearly", "almost", "guess", "might", "could"),
    ]
)
NOT_PLAIN = frozenset(["minus", "negative", "hundred", "thousand", "million", "billion", "percent"])
"""Words that make another number of the digits beside them."""

_REVOKED = re.compile(
    r"(?ai:^\W*or\b|^\W*\?|(?<!\w)no, |on second thought"
    r"|(?<!\w)not (?:be )?(?:right|correct|true|quite|sure|the answer))"
)
"""What takes an answer back without one of the words of RETRACTION."""
_THINKING = re.compile(r"<(/?)think(?:ing)?>", re.ASCII | re.IGNORECASE)
_OVER = (*" \n\r\t", ".", "!")
_DIGITS = re.compile(r"[0-9]++(?:[.,][0-9]++)*+")
_NUMBER = re.compile(
    r"(?<![\w.,/^\u2212+-])(?<![\u2212+-] )[+-]?[0-9]++(?:,[0-9]++)*+(?:\.[0-9]++)?+(?!\w|\s?[/^%]|[.,][0-9])"
)
_WORD = re.compile(r"[a-z]+")
_AROUND = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("`", "`"))


@dataclass(frozen=True, slots=True)
class Extraction:
    """The answer that was read, or None, and why."""

    answer: str | None
    reason: str


def extract_answer(text: str, *, prompt: str = "", truncated: bool = False) -> Extraction:
    r"""Return the answer a completion ends with; linear in the length of the text.

    Args:
        text: The completion.
        prompt: What the model was asked: what is only repeated from it is no answer.
        truncated: True when the length limit ended the completion.

    >>> extract_answer("47+58=105;105+19=124;A124").answer
    '124'
    >>> extract_answer(r"So it is $\boxed{\frac{1}{2}}$.").answer
    '\\frac{1}{2}'
    >>> extract_answer("Answer: 124\nThen 125.")
    Extraction(answer=None, reason='what follows the answer holds another number')
    >>> extract_answer("First 47 + 58.\nIt is 47 + 58 = 105.").answer
    '105'
    >>> extract_answer("It is 124 or 125")
    Extraction(answer=None, reason="no answer mark, and the last sentence doubts: 'or'")
    """
    after = _after_thinking(text)
    if after is None:
        return Extraction(None, "the completion ends inside its thinking block")
    mark = last_mark(after)
    closed = mark is not None and mark.enclosed and mark.answer is not None
    if truncated and not closed and not after.endswith(_OVER):
        return Extraction(None, "the length limit cut the completion off before an answer was over")
    if mark is None:
        return _stated(_last_sentence(after), prompt)
    if _echoed(after, mark.start, prompt):
        return Extraction(None, f"the line of the answer mark {mark.name} only repeats the prompt")
    before = _words(SENTENCE_END.split(after[max(0, mark.start - MAX_SENTENCE_CHARACTERS) : mark.start])[-1])[-2:]
    if (mark.enclosed or " " in mark.name) and not BEFORE.isdisjoint(before):
        return Extraction(None, f"the answer is in doubt: {' '.join(before)!r} stands before it")
    return _marked(mark)


def answer_of(attempt: Attempt) -> Extraction:
    """Return the answer of an attempt, by `extract_answer`."""
    return extract_answer(attempt.text, prompt=attempt.problem.prompt, truncated=attempt.truncated)


def trim(text: str) -> str:
    r"""Return the text without the whitespace, Markdown emphasis, maths marks and one full stop around it.

    >>> trim(" 124. "), trim("**$x=2$**."), trim("$47"), trim("2*")
    ('124', 'x=2', '$47', '2*')
    """
    text = _without_stop(text)
    if text.startswith("*") or text.endswith("**"):
        text = _without_stop(text.strip("*"))
    for opening, closing in _AROUND:
        inner = text[len(opening) : len(text) - len(closing)]
        if text.startswith(opening) and text.endswith(closing) and inner and opening not in inner:
            return trim(inner)
    return text


def _without_stop(text: str) -> str:
    text = text.strip()
    return text if text.endswith("..") else text.removesuffix(".").rstrip()


def _after_thinking(text: str) -> str | None:
    """Return what follows the last thinking block; None when the text ends inside one."""
    tags = deque(_THINKING.finditer(text), maxlen=1)
    if tags and not tags[0].group(1):
        return None
    return text[max(tags[0].end() if tags else 0, len(text) - MAX_CHARACTERS) :]


def _marked(mark: Marked) -> Extraction:
    if mark.answer is None:
        return Extraction(None, f"{mark.name} is opened and not closed")
    answer = trim(mark.answer)
    if not answer:
        return Extraction(None, f"nothing follows the answer mark {mark.name}")
    limit = MAX_BOX_CHARACTERS if mark.enclosed else MAX_ANSWER_CHARACTERS
    if len(answer) > limit:
        return Extraction(None, f"the answer is longer than {limit} characters")
    refusal = _taken_back(mark) or (None if mark.enclosed else _unsettled(mark))
    return Extraction(None, refusal) if refusal else Extraction(answer, f"read after the answer mark {mark.name}")


def _taken_back(mark: Marked) -> str | None:
    after = mark.rest[:MAX_SENTENCE_CHARACTERS]
    revoked = _REVOKED.search(after.replace("n't", " not").replace("cannot", "can not"))
    words = [word for word in _words(after) if word in RETRACTION] + ([revoked.group().strip()] if revoked else [])
    return f"what follows takes the answer back: {words[0]!r}" if words else None


def _unsettled(mark: Marked) -> str | None:
    """Return why an answer that nothing encloses is not settled: a doubt in its words or after it, another number."""
    prose = mark.answer if " " in mark.name else ""
    doubts = [word for word in _words(f"{prose} {mark.rest}") if word in DOUBT and word != "or"]
    if doubts or "?" in mark.rest:
        return f"the answer is in doubt: {doubts[0] if doubts else '?'!r}"
    if _DIGITS.search(mark.rest):
        return "what follows the answer holds another number"
    return "text follows the answer" if mark.name == "A" and mark.rest.strip() else None


def _echoed(text: str, start: int, prompt: str) -> bool:
    """Return whether the line around `start` is one of the prompt's."""
    line = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0].strip()
    return len(line) >= ECHO_CHARACTERS and line in prompt


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold().replace("n't", " not"))


def _last_sentence(text: str) -> str:
    """Return the last sentence; of a very long last line no more than is needed to see that it is too long."""
    lines = text.rstrip().splitlines()
    tail = lines[-1][-2 * MAX_SENTENCE_CHARACTERS :] if lines else ""
    return SENTENCE_END.split(tail)[-1].strip()


def _stated(sentence: str, prompt: str) -> Extraction:
    """Return the one number that a sentence states."""
    none = "no answer mark, and the last sentence"
    if len(sentence) > MAX_SENTENCE_CHARACTERS:
        return Extraction(None, f"{none} is longer than {MAX_SENTENCE_CHARACTERS} characters")
    if len(sentence) >= ECHO_CHARACTERS and sentence in prompt:
        return Extraction(None, f"{none} only repeats the prompt")
    words = _words(sentence)
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
