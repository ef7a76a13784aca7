"""`earned screen MODEL --problems sums -k 8`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from earned.cli.flags import Flags, Json, recipe_flags
from earned.cli.json_line import write_json
from earned.errors import RecipeError
from earned.problems.shapes import counted
from earned.recipe import PROMPT, Evaluation, Problems, Sampling
from earned.recipe_file import nested, validate

if TYPE_CHECKING:
    from earned.evaluation.group_signal import Bar
    from earned.screening import Screened

WIDTH = 40
"""Of the longest bar, in characters."""


def screen(
    model: str,
    *flags: Flags,
    problems: str = "sums",
    limit: int = 256,
    samples: Annotated[int, Parameter(name=["--samples", "-k"])] = 8,
    group_size: str = "4,8,16",
    temperature: float = 1.0,
    max_new_tokens: int = 96,
    check: str = "number",
    template: str = PROMPT,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Look whether training problems suit a model: how often it solves each, and what share of groups would teach.

    For example `earned screen tiny --problems sums --options.terms [3,4] -k 8`. A group teaches when some attempts are
    right and some are wrong. For group sizes up to k the share is counted; above, it is that of a fitted model.

    Args:
        model: A built-in name, a model folder (such as a checkpoint of a run) or a hub id.
        *flags: Options of the problems, for example `--options.terms [6,6]`.
        problems: Where the problems come from; those of the training split are tried.
        limit: At most so many problems.
        samples: Attempts at each problem, k.
        group_size: Group sizes that are considered, for example `4,8,16`.
        temperature: Of the sampling, as it will be in training.
        max_new_tokens: Longest completion.
        check: What decides that an answer is right.
        template: What the model is asked, with the problem in the place of {prompt}.
        seed: Of the problems and of the sampling.
        json: Print one line of JSON instead of text.
    """
    given = nested(recipe_flags(flags))
    wanted = validate(Problems, {"source": problems, "template": template, **given}, "problems")
    validate(Evaluation, {"samples": samples, "temperature": temperature, "check": check})
    validate(Sampling, {"max_new_tokens": max_new_tokens})
    sizes = _sizes(group_size)

    from earned import screening

    settings = screening.SamplingSettings(group_size=samples, temperature=temperature, max_new_tokens=max_new_tokens)
    found = screening.screen(model, wanted, settings, check=check, group_sizes=sizes, limit=limit, seed=seed)
    asked = {"model": model, "source": problems, "check": check, "temperature": temperature, "seed": seed}
    if json:
        write_json(_row(asked, found))
    else:
        _show(asked, found, Console(highlight=False))


def _sizes(words: str) -> list[int]:
    try:
        return sorted({int(word) for word in words.split(",")})
    except ValueError:
        raise RecipeError(f"--group-size: whole numbers with commas between, such as 4,8,16, not {words!r}") from None


def _row(asked: Mapping[str, object], found: "Screened") -> dict[str, object]:
    rate = found.pass_rate
    return {
        **asked,
        "problems": len(found.problems),
        "samples": found.samples,
        "pass_rate": {"mean": rate.mean, "low": rate.low, "high": rate.high},
        "never_share": found.never,
        "always_share": found.always,
        "histogram": [asdict(bar) for bar in found.histogram],
        "groups": [asdict(signal) for signal in found.signals],
        "length_mean": found.length_mean,
        "truncated_share": found.truncated_share,
        "advice": found.advice,
        "notes": found.notes,
    }


def _show(asked: Mapping[str, object], found: "Screened", console: Console) -> None:
    def say(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    problems = counted(len(found.problems), "training problem")
    say(
        f"{asked['model']} on {problems} of {asked['source']}, {counted(found.samples, 'attempt')} each "
        f"at temperature {asked['temperature']:g}"
    )
    most = max(bar.problems for bar in found.histogram)
    for bar in found.histogram:
        console.print(_bar(bar, most, found, console.encoding), soft_wrap=True)
    rate = found.pass_rate
    say(f"pass rate  {rate.mean:.3f} [{rate.low:.3f}, {rate.high:.3f}] (95 %)")
    say(f"problems   {found.never:.1%} never solved, {found.always:.1%} always solved")
    say(f"length     {found.length_mean:.1f} tokens, {found.truncated_share:.1%} cut off")
    for signal in found.signals:
        how = "" if signal.counted else "  by a model (beta-binomial), not counted"
        say(
            f"groups of {signal.group_size:<4} {signal.share:.3f} [{signal.low:.3f}, {signal.high:.3f}] "
            f"with signal{how}"
        )
    say(found.advice)
    for note in found.notes:
        say(note)


def _bar(bar: "Bar", most: int, found: "Screened", encoding: str) -> Text:
    """Return a line of the histogram; problems that teach are green, and the numbers say it without colour."""
    exact = len(found.histogram) == found.samples + 1
    rate = f"{round(bar.rate * found.samples)} of {found.samples}" if exact else f"about {bar.rate:.0%}"
    mark = "█" if encoding.lower().startswith("utf") else "#"
    length = round(WIDTH * bar.problems / most)
    marks = mark * max(length, int(bar.problems > 0))
    line = Text(f"{rate + ' right':<15} {bar.problems:>5}  ").append(marks, "green" if 0 < bar.rate < 1 else "dim")
    line.rstrip()
    return line
