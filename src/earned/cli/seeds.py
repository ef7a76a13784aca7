"""`earned train RECIPE --seeds N`: one run a seed, then one table over them."""

import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from earned.api import RunOptions, TrainResult
from earned.cli.json_line import write_json
from earned.cli.outcome import row
from earned.cli.progress import RunProgress
from earned.cli.stopping import StopFlag
from earned.evaluation.statistics import (
    Interval,
    detectable_mean,
    mean_interval,
    power_sentence,
    sample_deviation,
)
from earned.recipe import Recipe
from earned.series import train_seeds
from earned.training.checkpoints import saved_step
from earned.vocabulary import EvaluationResult

Compared = Mapping[int, tuple[EvaluationResult, EvaluationResult]]
"""By seed, the held-out accuracy before and after."""


def run_seeds(
    recipe: Recipe, seeds: int, options: RunOptions, *, resume: bool = False, strict: bool = False, json: bool = False
) -> None:
    """Run a resolved recipe under several seeds on the screen, show the table, and exit other than 0 where due."""
    console = Console(stderr=json, highlight=False)
    stop = StopFlag()

    def watch(one: Recipe, folder: Path) -> RunProgress:
        console.print(f"seed {one.seed}  {folder}", markup=False, soft_wrap=True)
        return RunProgress(console, one.steps, saved_step(folder / "checkpoints") if resume else 0)

    done = train_seeds(recipe, seeds, options, resume=resume, watch=watch, stop_requested=stop)
    results = dict(enumerate(done, start=recipe.seed))
    if len(done) < seeds or not done[-1].finished:
        name = done[0].run.name.removesuffix(f"-seed{recipe.seed}")
        console.print(f"stopped and saved. Go on with --run {name} --seeds {seeds} --resume", soft_wrap=True)
        sys.exit(stop.exit_code)
    show(results, console)
    if json:
        write_json(series_row(results))
    unchanged = [str(seed) for seed, result in results.items() if not result.weights_changed]
    if unchanged:
        console.print(f"the weights did not change under seed {', '.join(unchanged)}", style="yellow")
        sys.exit(1 if strict else 0)


def series_row(results: Mapping[int, TrainResult]) -> dict[str, object]:
    """Return the series for JSON: a row a seed, and the means over seeds, None without held-out problems."""
    found = _compared(results)
    gain, after = (mean_interval(values) if found else None for values in (_gains(found), _after(found)))
    return {
        "runs": [{"seed": seed, **row(result), "gain": result.gain} for seed, result in results.items()],
        "gains": _gains(found),
        "mean_gain": gain and gain.mean,
        "interval_gain": gain and [gain.low, gain.high],
        "mean_after": after and after.mean,
        "interval_after": after and [after.low, after.high],
        "seconds": round(sum(result.seconds for result in results.values()), 1),
    }


def show(results: Mapping[int, TrainResult], console: Console) -> None:
    """Print a row a seed, the means over seeds with their intervals, what they show, and what they could show."""
    found = _compared(results)
    if not found:
        runs = ", ".join(str(result.run) for result in results.values())
        console.print(f"no held-out problems, so nothing to compare. Runs: {runs}", soft_wrap=True)
        return
    console.print(_table(results, found))
    gain, after = mean_interval(_gains(found)), mean_interval(_after(found))
    console.print(
        f"mean gain   {_signed(gain)} (95 %, Student's t, the seed is the unit)", markup=False, soft_wrap=True
    )
    console.print(f"mean after  {after.mean:.3f} [{after.low:.3f}, {after.high:.3f}]", markup=False, soft_wrap=True)
    console.print(verdict(_gains(found)), soft_wrap=True)
    console.print(power(_gains(found), min(last.units for _, last in found.values())), soft_wrap=True)


def verdict(gains: list[float]) -> str:
    """Return what the gains of several seeds show.

    >>> verdict([0.5, 0.6, 0.7])
    'Held-out accuracy rose: the interval of the mean gain over 3 seeds does not hold 0.'
    >>> verdict([-0.1, 0.2])
    'No change shown: the interval of the mean gain over 2 seeds holds 0.'
    >>> verdict([0.2, 0.2])
    'No change shown: the gains of 2 seeds are equal, so how much they spread is not known.'
    """
    gain = mean_interval(gains)
    if gain.low == gain.high:
        return f"No change shown: the gains of {len(gains)} seeds are equal, so how much they spread is not known."
    if gain.low <= 0 <= gain.high:
        return f"No change shown: the interval of the mean gain over {len(gains)} seeds holds 0."
    moved = "rose" if gain.mean > 0 else "fell"
    return f"Held-out accuracy {moved}: the interval of the mean gain over {len(gains)} seeds does not hold 0."


def power(gains: list[float], units: int) -> str:
    """Return which difference one run, and which mean gain so many seeds, can tell from chance.

    >>> power([0.5, 0.6, 0.7], units=256)
    'In one run n = 256 can see a difference of 0.12; 3 seeds with a spread of 0.10 can see a mean gain of 0.31.'
    >>> power([0.2, 0.2], units=256)
    'In one run n = 256 can see a difference of 0.12.'
    """
    spread, size = sample_deviation(gains), len(gains)
    seen = f"; {size} seeds with a spread of {spread:.2f} can see a mean gain of {detectable_mean(spread, size):.2f}"
    return f"In one run {power_sentence(units)}{seen if spread else ''}."


def _table(results: Mapping[int, TrainResult], found: Compared) -> Table:
    table = Table()
    for column in ("seed", "held-out before", "after", "gain", "length before", "after", "seconds"):
        table.add_column(column, justify="right")
    for seed, (before, after) in found.items():
        table.add_row(
            str(seed),
            f"{before.mean:.3f}",
            f"{after.mean:.3f}",
            f"{after.mean - before.mean:+.3f}",
            f"{before.length_mean:.1f}",
            f"{after.length_mean:.1f}",
            f"{results[seed].seconds:.0f}",
        )
    return table


def _compared(results: Mapping[int, TrainResult]) -> Compared:
    return {seed: (result.before, result.after) for seed, result in results.items() if result.before and result.after}


def _gains(found: Compared) -> list[float]:
    return [after.mean - before.mean for before, after in found.values()]


def _after(found: Compared) -> list[float]:
    return [after.mean for _, after in found.values()]


def _signed(interval: Interval) -> str:
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
