"""Chained sums: the built-in problems, `47+58+19=` with the gold answer `124`, and worked answers to them."""

from collections.abc import Iterator
from itertools import accumulate, count, islice
from typing import Annotated

from pydantic import Field, field_validator

from earned.problems.splits import make_problem
from earned.randomness import generator
from earned.recipe_file import Section
from earned.vocabulary import Problem

Terms = Annotated[int, Field(ge=2, le=64)]


class SumsOptions(Section):
    """How long a chain is and how large its numbers are."""

    terms: tuple[Terms, Terms] = (3, 5)
    """Fewest and most numbers in a chain, both included, each length equally likely."""
    digits: int = Field(default=2, ge=1, le=15)
    """Numbers are uniform over 0 .. 10**digits - 1."""

    @field_validator("terms")
    @classmethod
    def _ordered(cls, terms: tuple[int, int]) -> tuple[int, int]:
        if terms[0] > terms[1]:
            raise ValueError("the fewest terms come first, then the most")
        return terms


def sum_problem(options: SumsOptions, seed: int, index: int) -> Problem:
    """Return problem `index` of the endless stream that (options, seed) name.

    >>> problem = sum_problem(SumsOptions(), seed=0, index=0)
    >>> sum(map(int, problem.prompt.removesuffix("=").split("+"))) == int(problem.gold)
    True
    """
    random = generator(seed, index, "problems/sums")
    low, high = options.terms
    numbers = random.integers(10**options.digits, size=random.integers(low, high + 1)).tolist()
    return make_problem(prompt="+".join(map(str, numbers)) + "=", gold=str(sum(numbers)), source="sums")


def stream(options: SumsOptions, seed: int, first: int = 0) -> Iterator[Problem]:
    """Yield problems `first`, `first + 1`, ... without end; a problem may come up again."""
    return (sum_problem(options, seed, index) for index in count(first))


def generate(options: SumsOptions, seed: int, count: int, first: int = 0) -> list[Problem]:
    """Return problems `first` .. `first + count - 1`, whatever their splits; a problem may come up again."""
    return list(islice(stream(options, seed, first), count))


def short_answer(prompt: str) -> str:
    """Return the bare answer.

    >>> short_answer("47+58+19=")
    'A124'
    """
    return f"A{sum(_numbers(prompt))}"


def long_answer(prompt: str) -> str:
    """Return the running sums, then the answer.

    >>> long_answer("47+58+19=")
    '47+58=105;105+19=124;A124'
    """
    numbers = _numbers(prompt)
    totals = list(accumulate(numbers))
    steps = [
        f"{before}+{number}={after};"
        for before, number, after in zip(totals[:-1], numbers[1:], totals[1:], strict=True)
    ]
    return "".join(steps) + f"A{totals[-1]}"


def _numbers(prompt: str) -> list[int]:
    return [int(number) for number in prompt.removesuffix("=").split("+")]
