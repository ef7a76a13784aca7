"""The countdown game: make a target from given numbers, each used once, with + - * / and parentheses.

The gold answer is one solution of many: it shows that there is one, and no answer is compared with it. So a problem is
named, and put into its split, by its question alone; and the numbers ascend, so that one puzzle is one question.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from operator import add, mul, sub, truediv
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from earned.errors import RecipeError
from earned.problems.splits import make_problem
from earned.randomness import generator
from earned.recipe_file import Count, Section
from earned.vocabulary import Problem

PROMPT = (
    "Make {target} from the numbers {numbers}. Use every number exactly once, with + - * / and parentheses. "
    "End with a line that holds #### and the expression."
)

OPERATIONS: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {"+": add, "-": sub, "*": mul, "/": truediv}
SUMS = ("+", "-")
NEEDS_PARENTHESES_AFTER = {"+": (), "-": SUMS, "*": SUMS, "/": ("+", "-", "*", "/")}
"""What is carried out before an operation though it stands behind it."""

TRIES = 1000
"""Random expressions drawn for one problem until the options are given up."""

Length = Annotated[int, Field(ge=2, le=12)]


class CountdownOptions(Section):
    """How many numbers are given, how large they are, and what is to be made of them."""

    numbers: tuple[Length, Length] = (3, 4)
    """Fewest and most given numbers, both included."""
    largest: int = Field(default=20, ge=1, le=10_000)
    """Given numbers are from 1 to this."""
    target: tuple[Count, Count] = (1, 100)
    """Least and greatest target, both included."""

    @field_validator("numbers", "target")
    @classmethod
    def _ordered(cls, bounds: tuple[int, int]) -> tuple[int, int]:
        if bounds[0] > bounds[1]:
            raise ValueError("the lower bound comes first, then the upper")
        return bounds


@dataclass(frozen=True, slots=True)
class Term:
    """An expression with its value."""

    text: str
    value: Fraction
    operation: str = ""
    """The last one that is carried out; empty for a number."""


def countdown_problem(options: CountdownOptions, seed: int, index: int) -> Problem:
    """Return problem `index` of the endless stream that (options, seed) name; it has a solution.

    Numbers and a random expression of them are drawn, again until it makes a whole number within `options.target`.

    Raises:
        RecipeError: none of `TRIES` expressions does.

    >>> problem = countdown_problem(CountdownOptions(), seed=0, index=0)
    >>> problem.columns, problem.gold
    ({'numbers': [4, 10, 13], 'target': 19}, '13 + 10 - 4')
    """
    random = generator(seed, index, "problems/countdown")
    low, high = options.target
    for _ in range(TRIES):
        size = random.integers(options.numbers[0], options.numbers[1] + 1)
        numbers = random.integers(1, options.largest + 1, size=size).tolist()
        solution = _random_term([Term(str(number), Fraction(number)) for number in numbers], random)
        if solution is not None and solution.value.denominator == 1 and low <= solution.value <= high:
            return _problem(sorted(numbers), int(solution.value), solution.text)
    raise RecipeError(
        f"problems.options: none of {TRIES} random expressions of numbers up to {options.largest} makes a target from "
        f"{low} to {high}. Change problems.options.largest or problems.options.target"
    )


def stream(options: CountdownOptions, seed: int) -> Iterator[Problem]:
    """Yield problems without end; a problem may come up again."""
    return (countdown_problem(options, seed, index) for index in count())


def joined(left: Term, operation: str, right: Term) -> Term | None:
    """Return the expression of two with no more parentheses than it needs; None for a division by zero.

    >>> three, four, five = (Term(str(number), Fraction(number)) for number in (3, 4, 5))
    >>> joined(three, "-", joined(four, "-", five))
    Term(text='3 - (4 - 5)', value=Fraction(4, 1), operation='-')
    """
    if operation == "/" and right.value == 0:
        return None
    first = f"({left.text})" if operation in "*/" and left.operation in SUMS else left.text
    second = f"({right.text})" if right.operation in NEEDS_PARENTHESES_AFTER[operation] else right.text
    return Term(f"{first} {operation} {second}", OPERATIONS[operation](left.value, right.value), operation)


def _random_term(terms: list[Term], random: np.random.Generator) -> Term | None:
    """Join two terms at random until one is left."""
    while len(terms) > 1:
        first, second = random.choice(len(terms), size=2, replace=False)
        term = joined(terms[first], [*OPERATIONS][random.integers(4)], terms[second])
        if term is None:
            return None
        terms = [term, *(other for place, other in enumerate(terms) if place not in (first, second))]
    return terms[0]


def _problem(numbers: list[int], target: int, solution: str) -> Problem:
    *most, last = map(str, numbers)
    prompt = PROMPT.format(target=target, numbers=f"{', '.join(most)} and {last}")
    named = make_problem(prompt, None, "countdown", {"numbers": numbers, "target": target})
    return replace(named, gold=solution)
