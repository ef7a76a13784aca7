"""What every row of the table of algorithms reaches on one budget: CPU minutes of training, three seeds each.

    python bench/algorithm_rows.py [--cpu-minutes 1.5] [--rows NAME ...] [--seeds 3] [--jobs 2] [--quick] [--json]

Every run is the demo (recipes/tiny_sums.toml) under another row, on one thread in a process of its own. It trains until
the CPU time of that process, from the first step on, is used up; the held-out problems are measured before and after,
outside the budget. Nothing is tuned to a row: they all have the recipe's learning rate and their own defaults.

Results are kept in docs/results/algorithms.csv as they come. Called again, it runs what is missing and writes
docs/results/algorithms.md anew from all there is; a budget other than that of the file is refused. The bar is that of
the demo: held-out accuracy up by .30.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean

from pydantic import TypeAdapter

from earned import api
from earned.algorithms.named import ALGORITHMS
from earned.cli.json_line import write_json
from earned.evaluation.statistics import mean_interval
from earned.measure import evaluate_model
from earned.recipe import Recipe
from earned.recipe_file import load, shipped
from earned.records.reader import RunReader
from earned.rollouts.engine import SamplingSettings

BAR = 0.30
RESULTS = Path(__file__).parents[1] / "docs" / "results"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "GOMP_SPINCOUNT": "0"}
NO_END = 1_000_000
"""Steps after which a run would end by itself."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One run: a line of the CSV file."""

    row: str
    seed: int
    budget_cpu_seconds: float
    cpu_seconds: float = 0.0
    """Really used by training; the step in which the budget ends is finished."""
    steps: int = 0
    completions: int = 0
    """Sampled for training."""
    problems: int = 0
    samples: int = 0
    before: float = 0.0
    before_low: float = 0.0
    before_high: float = 0.0
    after: float = 0.0
    after_low: float = 0.0
    after_high: float = 0.0
    greedy_before: float = 0.0
    greedy_after: float = 0.0
    length_before: float = 0.0
    length_after: float = 0.0
    failure: str = ""
    """Why there is no result; empty where there is one."""

    @property
    def gain(self) -> float:
        return self.after - self.before


class CpuBudget:
    """Asks for a stop once this process has used its CPU time, counted from when training first asks."""

    def __init__(self, seconds: float) -> None:
        self.used = 0.0
        self._seconds = seconds
        self._start: float | None = None

    def __call__(self) -> bool:
        now = time.process_time()
        self._start = now if self._start is None else self._start
        self.used = now - self._start
        return self.used >= self._seconds


def recipe_for(row: str, seed: int, held_out: int) -> Recipe:
    flags = {
        "seed": str(seed),
        "algorithm.name": row,
        "steps": str(NO_END),
        "evaluation.every": str(NO_END),
        "checkpoint.every": str(NO_END),
        "problems.validation": "0",
        "problems.held_out": str(held_out),
        "evaluation.watched": "0",
        "records.tokens": "none",
    }
    return load(Recipe, shipped("tiny_sums"), flags, environment={})


def run_here(row: str, seed: int, cpu_seconds: float, held_out: int) -> Outcome:
    """Train and measure in this process."""
    recipe, budget = recipe_for(row, seed, held_out), CpuBudget(cpu_seconds)
    with tempfile.TemporaryDirectory() as folder:
        result = api.train(recipe, api.RunOptions(runs=Path(folder)), stop_requested=budget)
        assert result.before is not None and result.model is not None, "the run has held-out problems and was saved"
        evaluation = recipe.evaluation
        settings = SamplingSettings(
            group_size=evaluation.samples,
            temperature=evaluation.temperature,
            max_new_tokens=recipe.sampling.max_new_tokens,
        )
        after = evaluate_model(str(result.model), recipe.problems, settings, seed=seed).result
        reader = RunReader(result.run)
        steps, completions = len(reader.steps()), len(reader.completions(phase="train"))
    before = result.before
    return Outcome(
        row=row,
        seed=seed,
        budget_cpu_seconds=cpu_seconds,
        cpu_seconds=budget.used,
        steps=steps,
        completions=completions,
        problems=after.problems,
        samples=after.samples,
        before=before.mean,
        before_low=before.low,
        before_high=before.high,
        after=after.mean,
        after_low=after.low,
        after_high=after.high,
        greedy_before=before.greedy,
        greedy_after=after.greedy,
        length_before=before.length_mean,
        length_after=after.length_mean,
    )


def run_apart(row: str, seed: int, cpu_seconds: float, held_out: int) -> Outcome:
    """Train and measure in a process of its own, on one thread; a run that fails is an outcome too."""
    command = [sys.executable, __file__, "--here", row, str(seed), str(cpu_seconds), str(held_out)]
    environment = {**os.environ, **ONE_THREAD}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == 0:
        return Outcome(**json.loads(done.stdout.splitlines()[-1]))
    last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
    return Outcome(row=row, seed=seed, budget_cpu_seconds=cpu_seconds, failure="".join(last) or "died without a word")


def read_outcomes(file: Path) -> list[Outcome]:
    if not file.is_file():
        return []
    outcome = TypeAdapter(Outcome)
    with file.open(encoding="utf-8", newline="") as lines:
        return [outcome.validate_python(line) for line in csv.DictReader(lines)]


def in_order(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes in the order of the table of algorithms, then of their seeds."""
    order = list(ALGORITHMS)
    return sorted(outcomes, key=lambda outcome: (order.index(outcome.row), outcome.seed))


def write_outcomes(file: Path, outcomes: Sequence[Outcome]) -> None:
    """Write all lines aside and put them in place at once."""
    aside = file.with_suffix(".writing")
    with aside.open("w", encoding="utf-8", newline="") as lines:
        table = csv.DictWriter(lines, [field.name for field in fields(Outcome)], lineterminator="\n")
        table.writeheader()
        for outcome in in_order(outcomes):
            values = asdict(outcome)
            table.writerow(
                {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}
            )
    aside.rename(file)


def sweep(wanted: Sequence[tuple[str, int]], cpu_seconds: float, held_out: int, jobs: int, file: Path) -> list[Outcome]:
    """Run what the file lacks, or holds as a failure, and return all that it then holds."""
    kept = [outcome for outcome in read_outcomes(file) if outcome.row in ALGORITHMS]
    if any(outcome.budget_cpu_seconds != cpu_seconds for outcome in kept):
        sys.exit(f"{file}: holds runs of another budget; give that one, or another --folder")
    outcomes = {(outcome.row, outcome.seed): outcome for outcome in kept}
    missing = [key for key in wanted if key not in outcomes or outcomes[key].failure]
    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(run_apart, row, seed, cpu_seconds, held_out) for row, seed in missing]
        for done, future in enumerate(as_completed(running), start=1):
            outcome = future.result()
            outcomes[outcome.row, outcome.seed] = outcome
            write_outcomes(file, list(outcomes.values()))
            said = outcome.failure or f"{outcome.before:.3f} -> {outcome.after:.3f} in {outcome.steps} steps"
            print(f"[{done}/{len(missing)}] {outcome.row} seed {outcome.seed}: {said}", file=sys.stderr, flush=True)
    return in_order(outcomes.values())


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A row over its seeds; `low` and `high` are the 95 % interval of the mean gain, seeds being the unit."""

    row: str
    runs: tuple[Outcome, ...]
    failures: tuple[str, ...]
    gain: float
    low: float
    high: float

    @property
    def passes(self) -> bool:
        return not self.failures and self.gain >= BAR


def summaries(outcomes: Sequence[Outcome]) -> Iterator[Summary]:
    for row in dict.fromkeys(outcome.row for outcome in outcomes):
        runs = tuple(outcome for outcome in outcomes if outcome.row == row and not outcome.failure)
        failures = tuple(outcome.failure for outcome in outcomes if outcome.row == row and outcome.failure)
        gains = [run.gain for run in runs]
        mean = fmean(gains) if gains else float("nan")
        interval = mean_interval(gains) if len(gains) > 1 else None
        low, high = (interval.low, interval.high) if interval else (float("nan"), float("nan"))
        yield Summary(row=row, runs=runs, failures=failures, gain=mean, low=low, high=high)


def number(value: float) -> str:
    """Return an accuracy as it is written here: .914, -.032."""
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3f}"


def row_of(summary: Summary) -> str:
    """Return a line of the Markdown table."""
    runs = summary.runs
    if not runs:
        return f"| `{summary.row}` | - | - | - | - | - | {summary.failures[0]} |"
    before = " ".join(number(run.before) for run in runs)
    after = ", ".join(f"{number(run.after)} [{number(run.after_low)}, {number(run.after_high)}]" for run in runs)
    gain = f"{number(summary.gain)} [{number(summary.low)}, {number(summary.high)}]"
    steps = " ".join(str(run.steps) for run in runs)
    verdict = "passes" if summary.passes else "**misses**" if not summary.failures else summary.failures[0]
    greedy = " ".join(number(run.greedy_after) for run in runs)
    return f"| `{summary.row}` | {steps} | {before} | {after} | {greedy} | {gain} | {verdict} |"


def report(outcomes: Sequence[Outcome]) -> str:
    """Return the page of results, all of it from the data."""
    found = sorted(summaries(outcomes), key=lambda summary: -summary.gain if summary.runs else float("inf"))
    first = next((run for summary in found for run in summary.runs), outcomes[0])
    missed = [f"`{summary.row}` ({number(summary.gain)})" for summary in found if summary.runs and not summary.passes]
    seeds = sorted({outcome.seed for outcome in outcomes})
    minutes = f"{first.budget_cpu_seconds / 60:g}"
    told = (
        f"`python bench/algorithm_rows.py --cpu-minutes {minutes}`: `recipes/tiny_sums.toml` under every row with its "
        f"own defaults, seeds {', '.join(map(str, seeds))}, {minutes} CPU minutes of training each on one thread. "
        "Nothing was tuned to a row; all have the recipe's learning rate. "
        f"Accuracy is mean@{first.samples} on {first.problems} held-out problems, other ones for every seed, with the "
        "95 % interval over problems; the gain is the mean over seeds, with the 95 % interval over seeds (t). "
        "A budget of time counts what a row costs: those that do more work a step take fewer steps. "
        "Data: [algorithms.csv](algorithms.csv)."
    )
    lines = [
        "# Every algorithm on one budget",
        "",
        *textwrap.wrap(told, 120, break_long_words=False, break_on_hyphens=False),
        "",
        "| row | steps | before, by seed | after, by seed | greedy after | mean gain | demo bar, +.30 |",
        "|---|---|---|---|---|---|---|",
        *(row_of(summary) for summary in found),
        "",
        f"Rows that miss the bar: {', '.join(missed) or 'none'}.",
    ]
    return "\n".join(lines) + "\n"


def show(outcomes: Sequence[Outcome]) -> None:
    print(f"{'':24}{'runs':>5}{'steps':>12}{'before':>8}{'after':>8}{'gain':>8}  {'95 % over seeds':18}bar +{BAR:.2f}")
    for summary in summaries(outcomes):
        if not summary.runs:
            print(f"{summary.row:24}    0  {summary.failures[0]}")
            continue
        before, after = fmean(run.before for run in summary.runs), fmean(run.after for run in summary.runs)
        steps = "-".join(str(end(run.steps for run in summary.runs)) for end in (min, max))
        interval = f"[{summary.low:.3f}, {summary.high:.3f}]"
        verdict = "passes" if summary.passes else "misses"
        verdict += f", {len(summary.failures)} failed: {summary.failures[0]}" if summary.failures else ""
        print(
            f"{summary.row:24}{len(summary.runs):5}{steps:>12}{before:8.3f}{after:8.3f}{summary.gain:8.3f}  "
            f"{interval:18}{verdict}"
        )


def as_json(outcomes: Sequence[Outcome], cpu_seconds: float) -> Mapping[str, object]:
    rows = {
        summary.row: {
            "gain": summary.gain,
            "low": summary.low,
            "high": summary.high,
            "passes": summary.passes,
            "failures": summary.failures,
            "runs": [asdict(run) for run in summary.runs],
        }
        for summary in summaries(outcomes)
    }
    return {"bar": BAR, "budget_cpu_seconds": cpu_seconds, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu-minutes", type=float, default=1.5, help="of training, a run")
    parser.add_argument("--rows", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side, one thread each")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="of algorithms.csv and algorithms.md")
    parser.add_argument("--quick", action="store_true", help="6 CPU seconds, 32 problems, 2 seeds, kept nowhere")
    parser.add_argument("--json", action="store_true", help="all numbers on a last line")
    parser.add_argument("--here", nargs=4, metavar=("ROW", "SEED", "CPU_SECONDS", "HELD_OUT"), help="one run, as JSON")
    options = parser.parse_args()
    if options.here:
        row, seed, cpu_seconds, held_out = options.here
        write_json(asdict(run_here(row, int(seed), float(cpu_seconds), int(held_out))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if options.quick else options.folder
        cpu_seconds, held_out, seeds = (6.0, 32, 2) if options.quick else (60 * options.cpu_minutes, 256, options.seeds)
        folder.mkdir(parents=True, exist_ok=True)
        wanted = [(row, seed) for row in options.rows for seed in range(seeds)]
        outcomes = sweep(wanted, cpu_seconds, held_out, options.jobs, folder / "algorithms.csv")
        (folder / "algorithms.md").write_text(report(outcomes), encoding="utf-8")
    show(outcomes)
    if options.json:
        write_json(as_json(outcomes, cpu_seconds))


if __name__ == "__main__":
    main()
