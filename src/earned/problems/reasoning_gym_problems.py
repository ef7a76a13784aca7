"""Puzzles of the library reasoning-gym: `reasoning_gym:NAME`, with the library's own options.

A puzzle may have many solutions, and the library may show another one in another process, so a problem is named, and
put into its split, by its question alone. Its columns hold what the check `reasoning_gym` goes by: `dataset`,
`options`, and `entry`, what the library made.
"""

from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import fields, replace
from decimal import localcontext
from io import StringIO
from itertools import count
from typing import Any

from earned.errors import RecipeError, did_you_mean
from earned.problems.splits import make_problem
from earned.randomness import generator
from earned.vocabulary import Problem

PREFIX = "reasoning_gym:"
NEEDS_PUZZLES_EXTRA = 'needs reasoning-gym, which comes with the extra `puzzles`: pip install "earned[puzzles]"'
CHUNK = 500
"""Entries of one data set, the library's own default; a data set of another seed follows."""

NOT_OPTIONS = {
    "seed": "it follows from the seed of the run",
    "size": "problems.train, problems.validation and problems.held_out say how many there are",
}
"""What every data set of the library has and no recipe sets."""

MIXTURE = "composite"
"""A data set made of others, each with a table of its own; a recipe names one of them."""


def stream(name: str, options: Mapping[str, object], seed: int) -> Iterator[Problem]:
    """Yield problems of the library's data set `name` without end; a problem may come up again.

    Raises:
        RecipeError: the library is not installed, has no such data set, refuses the options or fails with them.
    """
    try:
        from reasoning_gym.factory import DATASETS
    except ImportError:
        raise RecipeError(f"{PREFIX}{name} {NEEDS_PUZZLES_EXTRA}") from None
    known = sorted(set(DATASETS) - {MIXTURE})
    if name not in known:
        hint = did_you_mean(name, known) or f" There are {', '.join(known)}."
        raise RecipeError(f"problems.source: reasoning-gym has no data set {name!r}.{hint}")
    kind, config = DATASETS[name]
    _require_known(options, [field.name for field in fields(config)])
    try:
        for chunk in count():
            chunk_seed = int(generator(seed, chunk, f"problems/{PREFIX}{name}").integers(2**31))
            entries = kind(config(**options, seed=chunk_seed, size=CHUNK))
            yield from (_problem(name, options, _entry(entries, index)) for index in range(CHUNK))
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise RecipeError(f"problems.options: reasoning-gym makes no {name} with {dict(options)}: {what}") from None


def plain(value: Any) -> Any:
    """Return a value without the types of numpy; lists, tuples and dictionaries stay, other objects become their text.

    >>> import fractions, numpy
    >>> plain({"grid": ((1, numpy.int64(2)), [numpy.str_("a"), fractions.Fraction(1, 2)])})
    {'grid': ((1, 2), ['a', '1/2'])}
    """
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    if hasattr(value, "tolist"):
        return value.tolist()
    return value if isinstance(value, int | float | str | None) else str(value)


def _require_known(options: Mapping[str, object], keys: list[str]) -> None:
    known = [key for key in keys if key not in NOT_OPTIONS]
    for key in options:
        if key in NOT_OPTIONS:
            raise RecipeError(f"problems.options.{key}: no option here: {NOT_OPTIONS[key]}")
        if key not in known:
            hint = did_you_mean(key, known) or f" Known here: {', '.join(known) or 'none'}."
            raise RecipeError(f"problems.options.{key}: unknown key.{hint}")


def _entry(entries: Any, index: int) -> dict[str, Any]:
    # Some data sets print while they make an entry, which would mix with what a command says; one sets the precision of
    # decimals for the whole thread.
    with redirect_stdout(StringIO()), localcontext():
        return plain(dict(entries[index]))


def _problem(name: str, options: Mapping[str, object], entry: dict[str, Any]) -> Problem:
    columns = {"dataset": name, "options": dict(options), "entry": entry}
    named = make_problem(entry["question"], None, f"{PREFIX}{name}", columns)
    return replace(named, gold=None if entry["answer"] is None else str(entry["answer"]))
