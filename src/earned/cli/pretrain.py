"""`earned pretrain RECIPE.toml -o FOLDER`."""

import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from earned.cli.flags import Flags, recipe_flags
from earned.cli.json_line import write_json
from earned.pretrain_recipe import PretrainRecipe
from earned.recipe_file import load, to_toml

REPORT_EVERY = 50


def pretrain(
    recipe: Path,
    *flags: Flags,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Train a small model from nothing by next-token prediction; `recipes/tiny_base.toml` makes the built-in `tiny`.

    Args:
        recipe: TOML file; its keys are flags too.
        *flags: Keys of the recipe.
        output: Folder of the model; new or empty.
        dry_run: Print the resolved recipe and do nothing.
        json: End with one line of JSON on standard output.
    """
    resolved = load(PretrainRecipe, recipe, recipe_flags(flags))
    if dry_run:
        sys.stdout.write(to_toml(resolved))
        return

    from earned import api

    console, start = Console(stderr=json, highlight=False), time.monotonic()
    losses: list[float] = []

    def report(step: int, loss: float) -> None:
        losses.append(loss)
        if step % REPORT_EVERY == 0 or step == resolved.steps:
            recent = losses[-REPORT_EVERY:]
            seconds = time.monotonic() - start
            console.print(f"step {step:>5}/{resolved.steps}  loss {sum(recent) / len(recent):.4f}  {seconds:.0f} s")

    folder = api.pretrain_model(resolved, output, report)
    if json:
        row = {"model": str(folder), "loss": losses[-1], "seconds": round(time.monotonic() - start, 1)}
        write_json(row)
    else:
        console.print(f"model  {folder}")
