r"""Texts that show what a reward pays for: right answers in usual writings, and what must earn nothing."""

import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from itertools import product

from earned.rewards.number import read_gold_number
from earned.vocabulary import Problem

ANSWER = "{answer}"
PROSE = (
    "First I read the question once more and note what is given and what is asked. Then I go through it in order, "
    "writing down what follows from what, and look at the result again from the other side. It holds."
)
"""For rewards that want some reasoning before the answer; it holds no number and no answer."""
WRITINGS = (
    "#### {answer}",
    "{answer}",
    "A{answer}",
    "Answer: {answer}",
    "The answer is {answer}.",
    r"\boxed{{answer}}",
    "<answer>{answer}</answer>",
    "<think></think><answer>{answer}</answer>",
    f"<think>\n{PROSE}\n</think>\n<answer>\n{ANSWER}\n</answer>",
    f"<think>\n{PROSE}\n</think>\nThe answer is \\boxed{{{ANSWER}}}.",
    f"{PROSE}\n#### {ANSWER}",
)
"""How an answer may be written; a reward has to understand one of them."""
NOTHING = (
    "",
    " \n\t ",
    "<think></think><answer></answer>",
    "<think>\n</think>\n<answer>\n</answer>",
    "<think>hm</think><answer>hm</answer>",
    "####",
    "Answer:",
    "The answer is",
    r"\boxed{}",
    "A",
    PROSE,
    " ".join([PROSE] * 100),
)
"""Texts without an answer; the last has 20,000 characters."""
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
MAX_DERIVED = 6
"""Most numbers of a prompt for which a derivation is looked for: at most 2048 are tried."""
OTHER_ANSWERS = ("0", "1", "2", "none of these")
"""Wrong answers where the other problems give none."""


_WHOLE = re.compile(r"(?<![\w.,])[0-9]{1,9}(?![\w]|[.,][0-9])")


class ProbeKind(StrEnum):
    """What a text is, in words."""

    RIGHT = "the right answer"
    NOTHING = "no answer"
    WRONG = "a wrong answer"
    CONSTANT = "one answer to all problems"
    PASSING = "the right answer in passing"
    LISTED = "every candidate listed"
    ECHO = "the prompt, echoed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """One text to be judged as an attempt at a problem."""

    kind: ProbeKind
    problem: Problem
    text: str
    writing: str | None = None
    """Of right and wrong answers: what stands around them."""


def probes_of(problem: Problem, golds: Sequence[str]) -> Iterator[Probe]:
    """Yield the texts to try at a problem; without a gold answer only those that need none.

    Args:
        problem: What the texts are attempts at.
        golds: Right answers of a few problems of the source.
    """
    for text in NOTHING:
        yield Probe(kind=ProbeKind.NOTHING, problem=problem, text=text)
    yield Probe(kind=ProbeKind.ECHO, problem=problem, text=problem.prompt)
    gold = problem.gold
    if gold is None:
        return
    others = [other for other in (*golds, *OTHER_ANSWERS) if _differ(other, gold)]
    for writing in (*WRITINGS, *_derivations(problem.prompt, read_gold_number(gold))):
        right, wrong, constant = (written(writing, answer) for answer in (gold, others[0], _constant(golds)))
        yield Probe(kind=ProbeKind.RIGHT, problem=problem, text=right, writing=writing)
        yield Probe(kind=ProbeKind.WRONG, problem=problem, text=wrong, writing=writing)
        yield Probe(kind=ProbeKind.CONSTANT, problem=problem, text=constant)
        yield Probe(kind=ProbeKind.PASSING, problem=problem, text=f"It is not {gold}.\n{wrong}")
    for text in _lists(gold, others):
        yield Probe(kind=ProbeKind.LISTED, problem=problem, text=text)


def written(writing: str, answer: str) -> str:
    """Return an answer in a writing.

    >>> written("#### {answer}", "72")
    '#### 72'
    """
    return writing.replace(ANSWER, answer)


def _derivations(prompt: str, gold: Decimal | None) -> Iterator[str]:
    r"""Yield a writing that derives the gold step by step from the numbers of the prompt, if a simple one does.

    >>> list(_derivations("47+58+19=", Decimal(124)))
    ['47+58=105\n105+19={answer}\n#### {answer}']
    """
    numbers = [int(number) for number in _WHOLE.findall(prompt)]
    if gold is None or not 2 <= len(numbers) <= MAX_DERIVED:
        return
    for order in (numbers, numbers[::-1]):
        for symbols in product(OPERATIONS, repeat=len(numbers) - 1):
            steps = _steps(order, symbols)
            if steps is not None and Fraction(steps[-1].rpartition("=")[2]) == Fraction(gold):
                last = steps[-1].partition("=")[0]
                yield "\n".join([*steps[:-1], f"{last}={ANSWER}", f"#### {ANSWER}"])
                return


def _steps(numbers: Sequence[int], symbols: Sequence[str]) -> list[str] | None:
    """Return the steps from left to right, None where one does not give a whole number."""
    steps, value = [], Fraction(numbers[0])
    for symbol, number in zip(symbols, numbers[1:], strict=True):
        if symbol == "/" and (number == 0 or value % number):
            return None
        after = OPERATIONS[symbol](value, number)
        steps.append(f"{value}{symbol}{number}={after}")
        value = after
    return steps


def _constant(golds: Sequence[str]) -> str:
    """Return a number that is the right answer to none of the problems."""
    return next(text for text in map(str, range(7, 8 + len(golds))) if all(_differ(text, gold) for gold in golds))


def _lists(gold: str, others: Sequence[str]) -> Iterator[str]:
    """Yield texts that name every candidate, the right one in the middle: first and last may be held an answer."""
    half = (len(others) + 1) // 2
    candidates = [*others[:half], gold, *others[half:]]
    yield "\n".join(candidates)
    yield "#### " + ", ".join(candidates)
    yield "Answer: " + " or ".join(candidates)
    yield "\n".join(f"#### {candidate}" for candidate in candidates)
    yield ", ".join(rf"\boxed{{{candidate}}}" for candidate in candidates)
    if gold in map(str, range(1, 100)):
        yield " ".join(map(str, range(101)))


def _differ(answer: str, gold: str) -> bool:
    """Return whether two answers are different, and not two writings of one number or one text."""
    same_number = read_gold_number(answer) is not None and read_gold_number(answer) == read_gold_number(gold)
    return not same_number and "".join(answer.split()).casefold() != "".join(gold.split()).casefold()
