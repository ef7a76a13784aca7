"""`earned demo`."""

from typing import Annotated

from cyclopts import Parameter

from earned.cli.flags import Flags, recipe_flags
from earned.cli.train import run_recipe
from earned.recipe import Recipe, load, shipped


def demo(*flags: Flags, json: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Train the built-in model on chained sums by GRPO: it learns that writing steps pays. About two minutes.

    This is `earned train recipes/tiny_sums.toml`; keys of the recipe are flags here too, for example `--steps 10`.

    Args:
        *flags: Keys of the recipe, for example `--steps 10`.
        json: End with one line of JSON on standard output; all else goes to standard error.
    """
    run_recipe(load(Recipe, shipped("tiny_sums"), recipe_flags(flags)), "demo", json=json)
