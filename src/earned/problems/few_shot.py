"""Worked examples from a file of problems: what a model is shown before it is asked."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from earned.errors import RecipeError
from earned.problems.golds import plain_text
from earned.problems.problem_set import asked
from earned.problems.shapes import counted, value_at
from earned.problems.sources import built_in, read_source
from earned.recipe_file import Positive, Section
from earned.vocabulary import Example


class FewShot(Section):
    """Where worked examples come from."""

    source: str
    """A file or OWNER/NAME[:CONFIG] of the hub; its columns are found as those of problems are."""
    shots: Positive = 4
    """How many: the first usable rows."""
    options: dict[str, Any] = Field(default_factory=dict)
    """As `problems.options`."""


def read_examples(wanted: FewShot) -> tuple[Example, ...]:
    """Return the first problems with their worked answers: all that the answer column says, not only the gold.

    Raises:
        RecipeError: the source cannot be read, or has too few problems with an answer as text.
    """
    if built_in(wanted.source) is not None:
        raise RecipeError(f"few_shot.source: {wanted.source!r} is built in and holds no worked answers; name a file")
    try:
        source = read_source(wanted.source, wanted.options)
    except RecipeError as error:
        raise RecipeError(f"few_shot: {error}") from None
    examples = [
        Example(problem=problem, answer=_worked(value_at(problem.columns, source.answer_column)))
        for problem in source.problems
        if problem.gold is not None and source.answer_column is not None
    ]
    if len(examples) < wanted.shots:
        raise RecipeError(
            f"few_shot.shots: {wanted.shots} wanted, but {wanted.source} has only "
            f"{counted(len(examples), 'problem')} with an answer as text"
        )
    return tuple(examples[: wanted.shots])


def in_template(examples: Sequence[Example], template: str) -> tuple[Example, ...]:
    """Return the examples asked in the words of a template that holds `{prompt}`; answers stay as they are."""
    return tuple(replace(example, problem=asked([example.problem], template)[0]) for example in examples)


def _worked(value: Any) -> str:
    return plain_text(value[0] if isinstance(value, list) else value).strip()
