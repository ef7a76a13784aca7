"""`earned problems SOURCE`."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from earned.cli.flags import Flags, recipe_flags
from earned.cli.json_line import write_json
from earned.errors import RecipeError
from earned.problems.lint import prompt_keys
from earned.problems.sources import Source, built_in, read_source
from earned.recipe import Problems
from earned.recipe_file import nested, validate
from earned.rewards.checks import GOLD_PARSERS
from earned.vocabulary import Problem


def problems(
    source: str,
    *flags: Flags,
    limit: int = 5,
    check: str = "number",
    against: str | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Look at problems before training on them: a few of them, the counts, the columns chosen, and what is wrong.

    Options of the problems are flags too, for example `--options.prompt text --options.answer label`.

    Args:
        source: A built-in (sums, addition, countdown, reasoning_gym:NAME), a file (.jsonl, .json, .csv, .parquet) or a
            data set of the hub (OWNER/NAME).
        *flags: Options of the problems.
        limit: How many problems to show.
        check: The check that will judge; gold answers that it cannot read are listed.
        against: Another file or data set; prompts that it has too are listed.
        json: Print one line of JSON instead of text.
    """
    options = validate(Problems, {"source": source, **nested(recipe_flags(flags))}, "problems").options
    if check not in GOLD_PARSERS:
        allowed = ", ".join(map(repr, GOLD_PARSERS))
        raise RecipeError(f"--check: {check!r} compares with no gold answer, allowed: {allowed}")
    if (endless := built_in(source)) is not None:
        _show_endless(source, list(islice(endless(options, 0), limit)), json=json)
        return
    others = prompt_keys(read_source(against, {}).problems) if against else ()
    read = read_source(source, options, GOLD_PARSERS[check], others)
    if json:
        write_json(_row(read, limit))
        return
    console = Console(highlight=False)
    if limit:
        console.print(_examples(read.problems[:limit], read.unit, read.numbers))
    for sentence in read.summary():
        console.print(sentence, markup=False, soft_wrap=True)
    if not read.findings:
        console.print("nothing wrong was found with the rows")
    console.print(f"golds were read as the check {check!r} reads them", markup=False)


def _show_endless(source: str, first: Sequence[Problem], *, json: bool) -> None:
    if json:
        row = {"source": source, "rows": None, "examples": [_example(problem) for problem in first]}
        write_json(row)
        return
    console = Console(highlight=False)
    console.print(_examples(first, "problem", range(len(first))))
    console.print(
        f"{source}: built in, made without end; a run gets as many of each split as it asks for", markup=False
    )


def _row(read: Source, limit: int) -> dict[str, object]:
    return {
        "source": read.name,
        "rows": read.rows,
        "shape": read.shape,
        "problems": len(read.problems),
        "counts": {split.value: count for split, count in read.counts.items()},
        "unit": read.unit,
        "findings": [
            {**asdict(finding), "left_out": finding.left_out, "text": finding.sentence(read.unit)}
            for finding in read.findings
        ],
        "examples": [
            {read.unit: number, **_example(problem)}
            for number, problem in zip(read.numbers[:limit], read.problems[:limit], strict=True)
        ],
    }


def _example(problem: Problem) -> dict[str, object]:
    return {"id": problem.id, "split": problem.split.value, "prompt": problem.prompt, "gold": problem.gold}


def _examples(shown: Sequence[Problem], unit: str, numbers: Sequence[int]) -> Table:
    table = Table()
    for column in (unit, "split", "prompt", "gold"):
        table.add_column(column, overflow="fold")
    for number, problem in zip(numbers, shown, strict=False):
        cells = (str(number), problem.split.in_words, problem.prompt, problem.gold or "-")
        table.add_row(*map(Text, cells))
    return table
