"""`earned train RECIPE.toml`."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from earned.cli.flags import Flags, recipe_flags
from earned.cli.json_line import write_json
from earned.errors import RecipeError
from earned.recipe import Recipe
from earned.recipe_file import load, to_toml


def train(
    recipe: Path,
    *flags: Flags,
    run: Annotated[str | None, Parameter(name="--run")] = None,
    runs: Path = Path("runs"),
    resume: Annotated[bool, Parameter(negative="")] = False,
    overwrite: Annotated[bool, Parameter(negative="")] = False,
    strict: Annotated[bool, Parameter(negative="")] = False,
    seeds: int = 1,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Train a model by reinforcement learning.

    Every key of the recipe is also a flag after the file, for example `--algorithm.name rloo --steps 10`, and an
    environment variable, for example `EARNED_OPTIM__LEARNING_RATE=1e-5`. Defaults < file < environment < flags.

    Args:
        recipe: TOML file; see `recipes/`.
        *flags: Keys of the recipe, for example `--algorithm.name rloo --steps 10`.
        run: Name of the run folder; by default the recipe's name and the time.
        runs: Folder of all runs.
        resume: Go on with `--run` from its newest checkpoint.
        overwrite: Delete `--run` first.
        strict: Exit 1 when the weights did not change.
        seeds: Train so many times, with the recipe's seed and those that follow, into `RUN-seedN` each.
        dry_run: Print the resolved recipe and do nothing.
        json: End with one line of JSON on standard output; all else goes to standard error.
    """
    resolved = load(Recipe, recipe, recipe_flags(flags))
    if dry_run:
        sys.stdout.write(to_toml(resolved))
        return
    if resume and overwrite:
        raise RecipeError("--resume and --overwrite: choose one")
    if resume and run is None:
        raise RecipeError("--resume: say which run with --run NAME")
    if seeds == 1:
        run_recipe(
            resolved, recipe.stem, run=run, runs=runs, resume=resume, overwrite=overwrite, strict=strict, json=json
        )
        return

    from earned.api import RunOptions
    from earned.cli.seeds import run_seeds

    options = RunOptions(runs=runs, name=run, recipe_name=recipe.stem, overwrite=overwrite)
    run_seeds(resolved, seeds, options, resume=resume, strict=strict, json=json)


def run_recipe(
    recipe: Recipe,
    recipe_name: str,
    *,
    run: str | None = None,
    runs: Path = Path("runs"),
    resume: bool = False,
    overwrite: bool = False,
    strict: bool = False,
    json: bool = False,
) -> None:
    """Run a resolved recipe on the screen, show its outcome, and exit other than 0 where that is due."""
    console = Console(stderr=json, highlight=False)

    from earned import api
    from earned.cli.outcome import row, show
    from earned.cli.progress import RunProgress
    from earned.cli.stopping import StopFlag
    from earned.training.checkpoints import saved_step

    stop = StopFlag()
    first = saved_step(runs / str(run) / "checkpoints") if resume else 0
    with RunProgress(console, recipe.steps, first) as progress:
        if resume:
            result = api.resume(runs / str(run), expected=recipe, listener=progress, stop_requested=stop)
        else:
            options = api.RunOptions(runs=runs, name=run, recipe_name=recipe_name, overwrite=overwrite)
            result = api.train(recipe, options, listener=progress, stop_requested=stop)
    if not result.finished:
        console.print(f"stopped and saved. Go on with --run {result.run.name} --resume", soft_wrap=True)
        sys.exit(stop.exit_code)
    show(result, console)
    if json:
        write_json(row(result))
    if not result.weights_changed:
        console.print("the weights did not change", style="yellow")
        sys.exit(1 if strict else 0)
