"""`earned runs list` and `earned runs show RUN`."""

import json as jsonlib
import sys
from dataclasses import asdict
from pathlib import Path

from cyclopts import App
from rich.console import Console
from rich.table import Table

from earned.cli.flags import Json
from earned.cli.outcome import power_line
from earned.errors import RecordError
from earned.records.reader import RunReader, find_runs
from earned.records.run_folder import run_database
from earned.vocabulary import Split

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
            sys.stdout.write(jsonlib.dumps({**asdict(run), "path": str(run.path)}) + "\n")
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
    if not run_database(run).is_file():
        raise RecordError(f"{run}: there is no run here (no run.sqlite)")
    reader = RunReader(run_database(run))
    evaluations, events, meta = reader.evaluations(), reader.events(), reader.meta()
    if json:
        row = {
            "run": str(run),
            "status": meta.get("status"),
            "steps": len(reader.steps()),
            "evaluations": [asdict(result) for result in evaluations],
            "events": [asdict(event) for event in events],
        }
        sys.stdout.write(jsonlib.dumps(row) + "\n")
        return
    table = Table(title=f"{run.name}: {meta.get('status', 'unknown')}", title_justify="left")
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


def _accuracy(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
