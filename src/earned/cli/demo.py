"""`earned demo`."""

from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from earned.cli.flags import Flags, recipe_flags
from earned.cli.train import run_recipe
from earned.policy.catalog import CATALOG
from earned.recipe import Recipe
from earned.recipe_file import load, shipped

DEMOS = {"tiny": "tiny_sums", "smollm2-135m": "smollm2_addition"}
"""The shipped recipe of each model."""


def demo(
    *flags: Flags,
    model: Literal["tiny", "smollm2-135m"] = "tiny",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Train a model by GRPO and show it before and after: the built-in one, in two minutes, learns to write steps.

    With `--model smollm2-135m` a real model of 135 million parameters, fetched the first time, learns one-digit sums
    asked in words, in about seven minutes on two cores. These are `recipes/tiny_sums.toml` and
    `recipes/smollm2_addition.toml`; keys of the recipe are flags here too, for example `--steps 10`.

    Args:
        *flags: Keys of the recipe, for example `--steps 10`.
        model: Which of the two.
        json: End with one line of JSON on standard output; all else goes to standard error.
    """
    recipe = load(Recipe, shipped(DEMOS[model]), recipe_flags(flags))
    if model in CATALOG:
        from earned.policy.pull import pull_model

        console = Console(stderr=json, highlight=False)
        pull_model(model, lambda text: console.print(text, markup=False, soft_wrap=True))
    run_recipe(recipe, "demo", json=json)
