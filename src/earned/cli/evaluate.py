"""`earned eval MODEL --problems sums`."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from earned.cli.flags import Flags, Json, recipe_flags
from earned.cli.json_line import write_json
from earned.cli.outcome import power
from earned.evaluation.statistics import detectable_difference
from earned.problems.few_shot import FewShot
from earned.problems.shapes import counted
from earned.recipe import PROMPT, Evaluation, Problems, Sampling
from earned.recipe_file import nested, validate
from earned.records.parquet import require_parquet, write_parquet

if TYPE_CHECKING:
    from earned.measure import Measured


def evaluate(
    model: str,
    *flags: Flags,
    problems: str = "sums",
    limit: int | None = None,
    samples: int = 4,
    temperature: float = 1.0,
    max_new_tokens: int = 96,
    top_p: float = 1.0,
    top_k: int = 0,
    check: str = "number",
    template: str = PROMPT,
    few_shot: str | None = None,
    shots: int = 4,
    seed: int = 0,
    table: Path | None = None,
    json: Json = False,
) -> None:
    """Measure a model: mean@k with its 95 % interval, greedy, pass@k, the majority of k, length.

    Of a file every usable row is measured; a checkpoint of a run is never measured on what that run trained on.
    Options of the problems are flags too, for example `--options.terms [6,6]`, and `--few-shot.options.answer solution`
    names a column of the examples.

    Args:
        *flags: Options of the problems, for example `--options.terms [6,6]`.
        model: A built-in name, a model folder (such as a checkpoint of a run) or a hub id.
        problems: Where the problems come from.
        limit: At most so many problems; else 256 of a built-in, all of a file.
        samples: Completions per problem, k.
        temperature: Of the sampling; the greedy accuracy is always beside it.
        max_new_tokens: Longest completion.
        top_p: Sample from the likeliest tokens that together have this probability; 1 for all.
        top_k: Sample from so many of the likeliest tokens; 0 for all.
        check: What decides that an answer is right.
        template: What the model is asked, with the problem in the place of {prompt}.
        few_shot: A file of problems with worked answers, of which the first are shown before every problem.
        shots: How many of them.
        seed: Of the problems and of the sampling.
        table: A new .parquet file for a row about each problem.
        json: Print one line of JSON instead of text.
    """
    given = nested(recipe_flags(flags))
    examples = _examples(given.pop("few_shot", {}), few_shot, shots)
    wanted = validate(Problems, {"source": problems, "template": template, **given}, "problems")
    validate(Evaluation, {"samples": samples, "temperature": temperature, "check": check})
    validate(Sampling, {"max_new_tokens": max_new_tokens})
    if table is not None:
        require_parquet(table)

    from earned import measure

    settings = measure.SamplingSettings(
        group_size=samples, temperature=temperature, max_new_tokens=max_new_tokens, top_p=top_p, top_k=top_k
    )
    measured = measure.evaluate_model(model, wanted, settings, check=check, limit=limit, few_shot=examples, seed=seed)
    if table is not None:
        write_parquet(table, measure.ProblemResult, measured.problems)
    _show({"model": model, "source": problems, "temperature": temperature}, measured, json)


def _show(asked: Mapping[str, object], measured: "Measured", json: bool) -> None:
    if json:
        write_json(_row(asked, measured))
        return
    console = Console(highlight=False)
    for line in _lines(asked, measured):
        console.print(line, markup=False, soft_wrap=True)


def _examples(options: Mapping[str, object], source: str | None, shots: int) -> FewShot | None:
    table = {**options, **({"source": source} if source else {})}
    return validate(FewShot, {"shots": shots, **table}, "few_shot") if table else None


def _row(asked: Mapping[str, object], measured: "Measured") -> dict[str, object]:
    found = asdict(measured.result)
    del found["step"]  # of a run; an evaluation by itself has none
    return {
        **asked,
        "shots": measured.shots,
        **found,
        "pass_at": measured.pass_at,
        "detectable_difference": detectable_difference(measured.result.units),
        "notes": measured.notes,
    }


def _lines(asked: Mapping[str, object], measured: "Measured") -> list[str]:
    found = measured.result
    shots = f" after {counted(measured.shots, 'worked example')}" if measured.shots else ""
    return [
        f"{asked['model']} on {found.problems:,} problems of {asked['source']}{shots}, "
        f"{counted(found.samples, 'sample')} each at temperature {asked['temperature']:g}",
        f"accuracy  {found.mean:.3f} [{found.low:.3f}, {found.high:.3f}] (95 %), mean@{found.samples}",
        f"greedy    {_number(found.greedy)}",
        *(f"pass@{k:<4} {value:.3f}" for k, value in measured.pass_at.items()),
        f"maj@{found.samples:<5} {_number(found.maj_at_k)}",
        f"length    {found.length_mean:.1f} tokens, {found.truncated_share:.1%} cut off",
        power(found),
        *measured.notes,
    ]


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
