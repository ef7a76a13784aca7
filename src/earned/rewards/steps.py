"""`steps`: whether the arithmetic of a derivation is right, and whether the answer follows from it.

A step is an equation as `equations.py` reads it, such as `47+58=105`. It is **wrong** when its sides are not equal, and
also when it uses a number from nowhere: neither in the problem, nor the result of an earlier right step, nor one of the
`constants`. It **adds** something when it does one operation on known numbers and gives what no step before it gave.
Repeats, lines copied from the problem and steps of several operations neither add nor harm.

The answer **follows** when a step that adds gives it and the steps do not go on to a new number after it. Then only the
steps that the answer needs count as right: whatever else is written, however true, pays nothing. A bare answer has no
step and is worth 0.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Literal

from pydantic import FiniteFloat

from earned.recipe_file import Positive
from earned.rewards.answer import extract_answer
from earned.rewards.equations import Equation, read_equations, read_numbers
from earned.rewards.number import parse_number
from earned.rewards.verdict import BuiltInCheck, Verdict, no_answer
from earned.vocabulary import Attempt

MAX_CHARACTERS = 20_000
MAX_STEPS = 500

_WORD = re.compile(r"[a-z]+")
_TO_NINETEEN = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBER_WORDS = {
    **{word: (Fraction(number),) for number, word in enumerate(_TO_NINETEEN)},
    **{word: (Fraction(10 * number),) for number, word in enumerate(_TENS, start=2)},
    **dict.fromkeys(["twice", "double", "doubled", "doubles", "both"], (Fraction(2),)),
    **dict.fromkeys(["triple", "tripled", "triples", "thrice"], (Fraction(3),)),
    **dict.fromkeys(["half", "halves"], (Fraction(1), Fraction(2), Fraction(1, 2))),
    **dict.fromkeys(["third", "thirds"], (Fraction(1), Fraction(3))),
    **dict.fromkeys(["fourth", "fourths", "quarter", "quarters"], (Fraction(1), Fraction(4), Fraction(1, 4))),
    **dict.fromkeys(["dozen", "dozens"], (Fraction(12),)),
    "hundred": (Fraction(100),),
    "thousand": (Fraction(1000),),
}
"""Numbers that a problem gives in words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One equation of a derivation, judged after those before it."""

    equation: Equation
    fault: str | None = None
    """Why it is wrong, None when it is right."""
    adds: bool = False
    sources: tuple[int, ...] = ()
    """Of a step that adds: the earlier steps whose results it uses."""

    @property
    def result(self) -> Fraction | None:
        """What its sides come to."""
        return self.equation.sides[0].value


class StepsCheck(BuiltInCheck):
    """The share of right steps, 0 without any, or where the answer does not follow from them; see `rewards/steps.py`.

    A truncated completion gets 0. The right answer is not looked at: a derivation of something else is worth as much,
    so give the part a `gate`, or less weight than the check of the answer.
    """

    mode: Literal["share", "all"] = "share"
    """`share`: right / (right + wrong) steps; `all`: 1 when none is wrong, else 0."""
    supports_answer: bool = True
    """Nothing is paid unless the answer follows. When false, every step that adds something counts as right."""
    constants: tuple[FiniteFloat, ...] = ()
    """Numbers that may be used though the problem does not give them, such as 7 days or 100 percent."""
    max_operations: Positive = 1
    """A step of more operations adds nothing: the whole sum in one line is no derivation."""

    def __call__(self, attempt: Attempt) -> Verdict:
        """Judge one attempt; all numbers are exact, nothing is rounded."""
        prompt, text = attempt.problem.prompt, attempt.text
        if attempt.truncated:
            return _verdict(0.0, None, "cut off by the length limit")
        extraction = extract_answer(text, prompt=prompt)
        answer = extraction.answer
        if self.supports_answer and answer is None:
            return no_answer(extraction.reason)
        equations = list(islice(read_equations(text[:MAX_CHARACTERS]), MAX_STEPS + 1))
        if len(equations) > MAX_STEPS or len(text) > MAX_CHARACTERS:
            return _verdict(0.0, answer, f"more than {MAX_STEPS} steps or {MAX_CHARACTERS:,} characters")
        if not equations:
            return _verdict(0.0, answer, "no step is written")
        given = given_numbers(prompt) | {abs(Fraction(str(constant))) for constant in self.constants}
        steps = follow(equations, given, set(read_equations(prompt)), self.max_operations)
        refusal, right = None, [step for step in steps if step.adds]
        if self.supports_answer:
            refusal, right = support(steps, answer or "", given)
        wrong = sum(step.fault is not None for step in steps)
        return _verdict(self._value(len(right), wrong), answer, _in_words(steps, len(right), refusal))

    def _value(self, right: int, wrong: int) -> float:
        if self.mode == "all":
            return float(right > 0 and wrong == 0)
        return right / (right + wrong) if right else 0.0


def given_numbers(prompt: str) -> set[Fraction]:
    """Return the sizes of the numbers that a problem gives, in digits or in words.

    >>> sorted(map(str, given_numbers("Twice as many as the 48 friends")))
    ['2', '48']
    """
    words = {number for word in _WORD.findall(prompt.casefold()) for number in NUMBER_WORDS.get(word, ())}
    return read_numbers(prompt) | words


def follow(
    equations: Iterable[Equation], given: Set[Fraction], copied: Set[Equation], max_operations: int = 1
) -> list[Step]:
    """Return the equations as steps; `given` are sizes of numbers, `copied` equations of the problem.

    >>> equations = read_equations("3+4=7; 7*2=14; 14+1=15; 14+3=18")
    >>> [step.fault for step in follow(equations, {Fraction(2), Fraction(3), Fraction(4)}, set())]
    [None, None, '1 is neither in the problem nor the result of a right step', '14+3 is 17, not 18']
    """
    steps: list[Step] = []
    giver: dict[Fraction, int] = {}
    for equation in equations:
        step = _step(equation, given, giver, max_operations)
        if step.result in giver or equation in copied:
            step = replace(step, adds=False)
        if step.adds and step.result is not None:
            giver[step.result] = len(steps)
        steps.append(step)
    return steps


def support(steps: Sequence[Step], answer: str, given: Set[Fraction]) -> tuple[str | None, list[Step]]:
    """Return why the answer does not follow from the steps, None when it does, and the steps that it needs."""
    number = parse_number(answer)
    if number is None:
        return f"the answer {answer!r} is not a plain decimal number", []
    results = [None if step.fault else step.result for step in steps]
    gives = [place for place, result in enumerate(results) if result == Fraction(number)]
    first = next((place for place in gives if steps[place].adds), None)
    if first is None:
        return f"no step gives the answer {answer}", []
    known, after = set(results[: gives[-1] + 1]), results[gives[-1] + 1 :]
    new = [result for result in after if result not in known and result is not None and abs(result) not in given]
    if new:
        return f"the answer is {answer}, but the steps go on to {new[-1]}", []
    needed, waiting = set[int](), [first]
    while waiting:
        place = waiting.pop()
        if place not in needed:
            needed.add(place)
            waiting += steps[place].sources
    return None, [steps[place] for place in sorted(needed)]


def _step(equation: Equation, given: Set[Fraction], giver: Mapping[Fraction, int], max_operations: int) -> Step:
    if equation.fault is not None:
        return Step(equation=equation, fault=equation.fault)
    worked = [side for side in equation.sides if side.operations]
    missing = [[n for n in side.numbers if abs(n) not in given and not {n, -n} & giver.keys()] for side in worked]
    if all(missing):
        nowhere = f"{missing[0][0]} is neither in the problem nor the result of a right step"
        return Step(equation=equation, fault=nowhere)
    for side, unknown in zip(worked, missing, strict=True):
        if not unknown and len(side.operations) <= max_operations:
            derived = [number for number in side.numbers if abs(number) not in given]
            sources = tuple(giver[number if number in giver else -number] for number in derived)
            return Step(equation=equation, adds=True, sources=sources)
    return Step(equation=equation)


def _in_words(steps: Sequence[Step], right: int, refusal: str | None) -> str:
    wrong = [place for place, step in enumerate(steps, start=1) if step.fault is not None]
    said = f"{len(steps)} step{'s' * (len(steps) != 1)}, {len(wrong)} wrong"
    if wrong:
        first = steps[wrong[0] - 1]
        said += f", first step {wrong[0]}, {str(first.equation)[:80]}: {(first.fault or '')[:200]}"
    return f"{refusal}; {said}" if refusal else f"{right} right that count; {said}"


def _verdict(value: float, answer: str | None, explanation: str) -> Verdict:
    return Verdict(value=value, extracted=answer, explanation=explanation)
