"""`earned eval MODEL --problems sums`."""

import json as jsonlib
import sys
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from earned.cli.flags import Flags, recipe_flags
from earned.recipe import Evaluation, Problems, Sampling, nested, validate


def evaluate(
    model: str,
    *flags: Flags,
    problems: str = "sums",
    limit: int = 256,
    samples: int = 4,
    temperature: float = 1.0,
    max_new_tokens: int = 96,
    check: str = "number",
    seed: int = 0,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Measure a model on held-out problems: mean@k with its 95 % interval, greedy, pass@k, length.

    Options of the problems are flags too, for example `--options.terms [6,6]`.

    Args:
        *flags: Options of the problems, for example `--options.terms [6,6]`.
        model: A built-in name, a model folder (such as a checkpoint of a run) or a hub id.
        problems: Where the problems come from.
        limit: How many held-out problems.
        samples: Completions per problem, k.
        temperature: Of the sampling; the greedy accuracy is always beside it.
        max_new_tokens: Longest completion.
        check: What decides that an answer is right.
        seed: Of the problems and of the sampling.
        json: Print one line of JSON instead of text.
    """
    table = {"source": problems, "held_out": limit, "validation": 0, "train": 1, **nested(recipe_flags(flags))}
    wanted = validate(Problems, table, "problems")
    validate(Evaluation, {"samples": samples, "temperature": temperature, "check": check})
    validate(Sampling, {"max_new_tokens": max_new_tokens})

    from earned import measure

    settings = measure.SamplingSettings(group_size=samples, temperature=temperature, max_new_tokens=max_new_tokens)
    result = measure.evaluate_model(model, wanted, settings, check=check, seed=seed)
    if json:
        row = {"model": model, **asdict(result), "split": result.split.value}
        sys.stdout.write(jsonlib.dumps(row) + "\n")
        return
    Console(highlight=False).print(
        f"{model} on {result.problems} held-out problems of {problems}, {result.samples} samples each at "
        f"temperature {temperature:g}\n"
        f"accuracy  {result.mean:.3f} [{result.low:.3f}, {result.high:.3f}] (95 %)\n"
        f"greedy    {result.greedy:.3f}\n"
        f"pass@{result.samples}    {result.pass_at_k:.3f}\n"
        f"length    {result.length_mean:.1f} tokens, {result.truncated_share:.1%} cut off",
        markup=False,
        soft_wrap=True,
    )
