"""The table of problem sources, and the one door through which a run gets its problems."""

from collections.abc import Callable, Iterable, Mapping

from earned.errors import RecipeError
from earned.problems import sums
from earned.problems.problem_set import ProblemSet
from earned.problems.splits import choose_splits
from earned.recipe import Problems, did_you_mean, validate
from earned.vocabulary import Problem


def _sums(options: Mapping[str, object], seed: int) -> Iterable[Problem]:
    return sums.stream(validate(sums.SumsOptions, options, "problems.options"), seed)


SOURCES: Mapping[str, Callable[[Mapping[str, object], int], Iterable[Problem]]] = {"sums": _sums}
"""From the name in the recipe to a function of (options, seed) that yields problems of all splits."""


def load_problems(recipe_problems: Problems, seed: int) -> ProblemSet:
    """Return the problems that `[problems]` asks for; the same for the same table and seed.

    Raises:
        RecipeError: for an unknown source, an unknown or refused option, or a source with too few problems.
    """
    name = recipe_problems.source
    if name not in SOURCES:
        allowed = ", ".join(map(repr, SOURCES))
        raise RecipeError(
            f"problems.source: unknown source {name!r}, allowed: {allowed}.{did_you_mean(name, [*SOURCES])}"
        )
    return choose_splits(
        SOURCES[name](recipe_problems.options, seed),
        train=recipe_problems.train,
        validation=recipe_problems.validation,
        held_out=recipe_problems.held_out,
    )
