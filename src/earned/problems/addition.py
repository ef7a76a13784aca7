"""Sums asked in words: the built-in problems for real models, `What is 3 plus 4?` with the gold answer `7`.

There are few pairs of small numbers, so the pair is what a split and an interval go by, not its wording: no pair of the
held-out problems was trained on in any order or wording, and the wordings of one pair are not independent.
"""

from collections.abc import Iterator
from itertools import count

from pydantic import Field

from earned.problems.splits import make_problem
from earned.randomness import generator
from earned.recipe_file import Section
from earned.vocabulary import Problem

WORDINGS = (
    "What is {a} plus {b}?",
    "What is {a} + {b}?",
    "Add {a} and {b}.",
    "Calculate {a} plus {b}.",
    "Compute {a} + {b}.",
    "What is the sum of {a} and {b}?",
)

SHARES = (0.5, 0.1)
"""Of the pairs, for training and for validation. A tenth of the 55 pairs of one digit would say little, so two in five
are held out."""


class AdditionOptions(Section):
    """How large the numbers are."""

    digits: int = Field(default=1, ge=1, le=15)
    """Both numbers have so many: 0..9, then 10..99, and so on."""


def addition_problem(options: AdditionOptions, seed: int, index: int) -> Problem:
    """Return problem `index` of the endless stream that (options, seed) name: a pair, its order and its wording.

    >>> problem = addition_problem(AdditionOptions(), seed=0, index=1)
    >>> problem.prompt, problem.gold, problem.cluster
    ('Compute 9 + 5.', '14', '5+9')
    """
    random = generator(seed, index, "problems/addition")
    lowest = 10 ** (options.digits - 1) if options.digits > 1 else 0
    a, b = random.integers(lowest, 10**options.digits, size=2).tolist()
    wording = WORDINGS[random.integers(len(WORDINGS))]
    return make_problem(
        prompt=wording.format(a=a, b=b),
        gold=str(a + b),
        source="addition",
        cluster=f"{min(a, b)}+{max(a, b)}",
        shares=SHARES,
    )


def stream(options: AdditionOptions, seed: int) -> Iterator[Problem]:
    """Yield problems without end; a problem may come up again."""
    return (addition_problem(options, seed, index) for index in count())
