"""The sources of problems, and the one door through which a run gets its problems.

A source is a built-in that makes problems without end, a file, or a data set of the hub. A recipe's counts are exact
for the first kind; for a finite source they are upper bounds, since its size is not the user's choice.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from earned.errors import RecipeError, did_you_mean
from earned.problems import addition, countdown, reasoning_gym_problems, sums
from earned.problems.files import READERS, Table, is_file_name, read_file
from earned.problems.hub import HUB_NAME, read_hub
from earned.problems.lint import Finding, Parse, kept, lint
from earned.problems.problem_set import ProblemSet
from earned.problems.reasoning_gym_problems import PREFIX
from earned.problems.shapes import ColumnOptions, counted, entries, in_words, sniff
from earned.problems.splits import choose_splits, take_splits
from earned.recipe import Problems
from earned.recipe_file import Section, validate
from earned.vocabulary import Problem, Split

BuiltIn = Callable[[Mapping[str, object], int], Iterable[Problem]]
Options = TypeVar("Options", bound=Section)


def _built_in(kind: type[Options], stream: Callable[[Options, int], Iterable[Problem]]) -> BuiltIn:
    return lambda options, seed: stream(validate(kind, options, "problems.options"), seed)


SOURCES: Mapping[str, BuiltIn] = {
    "sums": _built_in(sums.SumsOptions, sums.stream),
    "addition": _built_in(addition.AdditionOptions, addition.stream),
    "countdown": _built_in(countdown.CountdownOptions, countdown.stream),
}
"""From the name of a built-in to a function of (options, seed) that yields problems of all splits without end."""


def built_in(name: str) -> BuiltIn | None:
    """Return what makes the problems of a source without end, `reasoning_gym:NAME` among them; None for a table."""
    if not name.startswith(PREFIX):
        return SOURCES.get(name)
    return lambda options, seed: reasoning_gym_problems.stream(name.removeprefix(PREFIX), options, seed)


class HubOptions(ColumnOptions):
    """What a data set of the hub can be asked for."""

    split: str = "train"
    """The hub's own split to read; which of our splits a problem belongs to is decided by its hash all the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A finite source, read and looked through."""

    name: str
    unit: Literal["line", "row"]
    """What findings and `numbers` count."""
    rows: int
    """Rows of the table, those left out included."""
    shape: str
    """Which columns were chosen, in words."""
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    """Usable ones, at least one, no prompt twice, in the order of the table."""
    numbers: tuple[int, ...]
    """Line or row of each problem."""
    answer_column: str | None
    """Where the golds were read; a dot reaches into an object."""

    @property
    def counts(self) -> dict[Split, int]:
        """How many problems each split has."""
        return {split: sum(problem.split is split for problem in self.problems) for split in Split}

    def summary(self) -> tuple[str, ...]:
        """Return rows and columns, counts, and the findings, a sentence each."""
        counts = ", ".join(f"{count:,} {split.in_words}" for split, count in self.counts.items())
        return self.heading, f"{counted(len(self.problems), 'problem')}: {counts}", *self.faults

    @property
    def heading(self) -> str:
        """How many rows, and which columns were chosen."""
        return f"{self.name}: {counted(self.rows, 'row')}; {self.shape}"

    @property
    def faults(self) -> tuple[str, ...]:
        """The findings, a sentence each."""
        return tuple(finding.sentence(self.unit) for finding in self.findings)


def load_problems(recipe_problems: Problems, seed: int, parse: Parse | None = None) -> ProblemSet:
    """Return the problems that `[problems]` asks for; the same for the same table and seed.

    Args:
        recipe_problems: The table of the recipe.
        seed: Of a built-in; a finite source gives the same problems for every seed.
        parse: Reads a gold answer as the run's check does, to count the rows that it cannot read.

    Raises:
        RecipeError: for an unknown source, an unknown or refused option, a source that cannot be read, a built-in with
            too few problems, or a finite source without any for a split.
    """
    name, template = recipe_problems.source, recipe_problems.template
    counts = {split.value: getattr(recipe_problems, split.value) for split in Split}
    if (endless := built_in(name)) is not None:
        return choose_splits(endless(recipe_problems.options, seed), **counts).asked(template)
    source = read_source(name, recipe_problems.options, parse)
    chosen = take_splits(source.problems, **counts)
    used = ", ".join(f"{len(chosen.split(split)):,} {split.in_words}" for split in Split)
    wanted = ", ".join(f"{count:,}" for count in counts.values())
    return replace(
        chosen.asked(template), notes=(*source.summary(), f"used: {used} (the recipe asks for at most {wanted})")
    )


def read_source(
    name: str, options: Mapping[str, object], parse: Parse | None = None, others: Collection[str] = ()
) -> Source:
    """Return all problems of a file or of a data set of the hub, with what is wrong with its rows.

    Args:
        name: A path, relative to the current folder, or `OWNER/NAME[:CONFIG]`.
        options: `problems.options`: `prompt`, `answer`, and `split` for the hub.
        parse: Reads a gold answer as the check does that will judge.
        others: Keys (`lint.prompt_keys`) of prompts that should not be here too.

    Raises:
        RecipeError: nothing is known by this name, it cannot be read, no column is known, or no row can be used.
    """
    table, columns = _read(name, options)
    shape = sniff(table, columns)
    found = entries(table, shape)
    findings = lint(found, parse, others)
    usable = kept(found, findings)
    if not usable:
        reasons = "; ".join(finding.sentence(table.unit) for finding in findings)
        raise RecipeError(f"{name}: not one of its rows can be used. {in_words(shape, found)}. {reasons}")
    return Source(
        name=name,
        unit=table.unit,
        rows=len(table.rows),
        shape=in_words(shape, found),
        findings=findings,
        problems=tuple(entry.problem for entry in usable),
        numbers=tuple(entry.number for entry in usable),
        answer_column=shape.answer,
    )


def _read(name: str, options: Mapping[str, object]) -> tuple[Table, ColumnOptions]:
    if is_file_name(name) or Path(name).exists():
        return read_file(name), validate(ColumnOptions, options, "problems.options")
    if HUB_NAME.fullmatch(name):
        asked = validate(HubOptions, options, "problems.options")
        return read_hub(name, asked.split), asked
    endless = [*SOURCES, f"{PREFIX}NAME"]
    raise RecipeError(
        f"problems.source: unknown source {name!r}. Allowed: {', '.join(map(repr, endless))}, a file "
        f"({', '.join(READERS)}) or a data set of the hub (OWNER/NAME or OWNER/NAME:CONFIG)."
        f"{did_you_mean(name, endless)}"
    )
