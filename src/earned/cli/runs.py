"""`earned runs list`, `earned runs show RUN` and `earned runs completions RUN`."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.table import Table

from earned.cli.attempts import print_attempt, print_prompt, visible
from earned.cli.flags import Json
from earned.cli.json_line import write_json
from earned.cli.outcome import power_line
from earned.diagnostics.groups import is_right
from earned.errors import RecordError
from earned.records.reader import RunReader, find_runs
from earned.records.rows import CompletionRow, Phase
from earned.records.run_folder import run_database
from earned.vocabulary import GREEDY_ATTEMPT, Score, Split

app = App(name="runs", help="Look at recorded runs.")


@app.command(name="list")
def list_runs(folder: Path = Path("runs"), *, json: Json = False) -> None:
    """List the runs in a folder.

    Args:
        folder: Folder of all runs.
        json: Print one line of JSON for each run.
    """
    found = find_runs(folder)
    if json:
        for run in found:
            write_json({**asdict(run), "path": str(run.path)})
        return
    table = Table()
    for column in ("run", "status", "steps", "held-out first", "held-out last"):
        table.add_column(column)
    for run in found:
        table.add_row(run.name, run.status, str(run.steps), _accuracy(run.first_held_out), _accuracy(run.last_held_out))
    console = Console(highlight=False)
    console.print(table if found else f"no runs in {folder}")


@app.command
def show(run: Path, *, json: Json = False) -> None:
    """Show one run: its evaluations and events.

    Args:
        run: A run folder.
        json: Print one line of JSON.
    """
    reader = _reader(run)
    evaluations, events, status = reader.evaluations(), reader.events(), reader.status()
    if json:
        row = {
            "run": str(run),
            "status": status,
            "steps": len(reader.steps()),
            "evaluations": [asdict(result) for result in evaluations],
            "events": [asdict(event) for event in events],
        }
        write_json(row)
        return
    table = Table(title=f"{run.name}: {status}", title_justify="left")
    for column in ("step", "split", "accuracy", "greedy", "length"):
        table.add_column(column, justify="right")
    for result in evaluations:
        accuracy = f"{result.mean:.3f} ({result.low:.3f}-{result.high:.3f})"
        split = "held-out" if result.split is Split.HELD_OUT else result.split.value
        table.add_row(str(result.step), split, accuracy, f"{result.greedy:.3f}", f"{result.length_mean:.1f}")
    console = Console(highlight=False)
    console.print(table)
    console.print(power_line(evaluations), soft_wrap=True)
    for event in events:
        console.print(f"step {event.step}: {event.text}", markup=False, soft_wrap=True)


@app.command
def completions(
    run: Path,
    *,
    step: int | None = None,
    phase: Phase = "train",
    sort: Literal["reward", "attempt"] = "attempt",
    problem: str | None = None,
    limit: Annotated[int, Parameter(validator=Number(gte=1))] = 20,
    json: Json = False,
) -> None:
    """Read what the model wrote, for example `earned runs completions runs/a --step 3 --sort reward`.

    Args:
        run: A run folder.
        step: Which step; by default the last one that has completions of the phase.
        phase: What they were sampled for: training, an evaluation, or the problems watched at every evaluation.
        sort: By problem and attempt, or best reward first.
        problem: Id of a problem, to see only its attempts.
        limit: How many completions at most.
        json: Print one line of JSON for each completion.
    """
    reader = _reader(run)
    step = _step(reader, run, phase, step)
    found = reader.completions(step, phase, problem, order=sort)
    if not found:
        some = reader.completions(step, phase, limit=1)[0].problem_id
        raise RecordError(
            f"--problem: {problem!r} has no {phase} completions at step {step}; {some!r} has, for example"
        )
    problems = {each.id: each for each in reader.problems()}
    shown = found[:limit]
    if json:
        for row in shown:
            asked = problems[row.problem_id]
            write_json({**asdict(row), "prompt": asked.prompt, "gold": asked.gold})
        return
    console = Console(highlight=False)
    for problem_id, rows in groupby(shown, key=lambda row: row.problem_id):
        asked = problems[problem_id]
        print_prompt(console, asked.prompt)
        gold = "" if asked.gold is None else f", the right answer is {visible(asked.gold)}"
        console.print(f"{problem_id}{gold}", style="dim", markup=False, soft_wrap=True)
        for row in rows:
            name = "greedy" if row.attempt == GREEDY_ATTEMPT else row.attempt
            print_attempt(console, name, row, _right(row))
        console.print()
    count = f"{len(found)}" if len(shown) == len(found) else f"{len(shown)} of {len(found)}"
    console.print(f"step {step}, {phase}: {count} completions", markup=False)


def _reader(run: Path) -> RunReader:
    if not run_database(run).is_file():
        raise RecordError(f"{run}: there is no run here (no run.sqlite)")
    return RunReader(run_database(run))


def _step(reader: RunReader, run: Path, phase: Phase, wanted: int | None) -> int:
    """Return the wanted step, by default the last one."""
    steps = reader.completion_steps(phase)
    if not steps:
        raise RecordError(f"{run}: there are no {phase} completions in this run")
    if wanted is not None and wanted not in steps:
        raise RecordError(f"--step: there are no {phase} completions of step {wanted}, but of {ranges(steps)}")
    return steps[-1] if wanted is None else wanted


def _right(row: CompletionRow) -> bool | None:
    return None if row.reward is None else is_right(Score(value=row.reward, status=row.status, parts=row.parts))


def ranges(steps: Sequence[int]) -> str:
    """Return ascending steps in words.

    >>> ranges([0, 20, 40]), ranges([1, 2, 3, 7])
    ('0, 20, 40', '1-3, 7')
    """
    runs: list[list[int]] = []
    for step in steps:
        if runs and step == runs[-1][-1] + 1:
            runs[-1].append(step)
        else:
            runs.append([step])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _accuracy(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
