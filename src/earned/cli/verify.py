"""`earned verify --checker number --cases FILE.jsonl`."""

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from earned.cli.flags import Flags, Json, recipe_flags
from earned.cli.json_line import write_json
from earned.errors import RecipeError
from earned.evaluation.statistics import Interval
from earned.recipe_file import nested
from earned.verification import JudgedCase, Verification
from earned.verification import verify as judge

SHOWN_CHARACTERS = 120
FAILED = 1


def verify(*flags: Flags, checker: str, cases: Path, json: Json = False) -> None:
    """Measure a check on labelled answers: false accepts, false rejects, time-outs, rates with 95 % intervals.

    Exits 1 when there are no cases, or when one is judged wrongly or too late; contested ones are only shown.

    Args:
        *flags: Options of the check, for example `--options.limit_seconds 2`.
        checker: A built-in check, or a function of yours, FILE.py:function.
        cases: One JSON object a line: id, gold, response, accept, and where needed contested, max_seconds, prompt,
            truncated; further keys are columns of the problem.
        json: Print one line of JSON instead of text.
    """
    found = judge(checker, cases, _options(flags))
    if json:
        write_json(_row(found))
    else:
        _show(found, str(cases))
    sys.exit(0 if found.passed else FAILED)


def _options(flags: Sequence[str]) -> dict[str, object]:
    given = nested(recipe_flags(flags))
    options = given.pop("options", {})
    if given or not isinstance(options, dict):
        unknown = ", ".join(f"--{name}" for name in given or ["options"])
        raise RecipeError(f"{unknown}: no such flag here; options of the check are given as --options.NAME VALUE")
    return options


def _row(found: Verification) -> dict[str, object]:
    return {
        "n": len(found.judged),
        "false_accepts": _ids(found.false_accepts),
        "false_rejects": _ids(found.false_rejects),
        "contested": [
            {"id": one.case.id, "expected": one.case.accept, "given": one.accepted} for one in found.contested
        ],
        "timeouts": _ids(found.timeouts),
        "unscored": _ids(found.unscored),
        "seconds": found.seconds,
        "false_accept_rate": _rate(found.false_accept_rate),
        "false_reject_rate": _rate(found.false_reject_rate),
    }


def _ids(judged: Sequence[JudgedCase]) -> list[str]:
    return [one.case.id for one in judged]


def _rate(interval: Interval) -> dict[str, float]:
    rate = asdict(interval)
    return {"value": rate.pop("mean"), **rate}


def _show(found: Verification, cases: str) -> None:
    console = Console(highlight=False)
    agreeing = sum(one.accepted is one.case.accept for one in found.contested)
    lines = [
        f"{found.checker} on {len(found.judged)} cases of {cases} in {found.seconds:.1f} s",
        f"false accepts  {len(found.false_accepts):>4}  {_percent(found.false_accept_rate)} of the wrong answers",
        f"false rejects  {len(found.false_rejects):>4}  {_percent(found.false_reject_rate)} of the right answers",
        f"time-outs      {len(found.timeouts):>4}",
        f"unscored       {len(found.unscored):>4}  the check could not judge them",
        f"contested      {len(found.contested):>4}  {agreeing} as labelled; in no rate",
    ]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
    if not found.judged:
        console.print("no cases: nothing was measured")
    for one in found.judged:
        if kind := _kind(one):
            console.print(_mistake(kind, one), markup=False, soft_wrap=True)


def _kind(one: JudgedCase) -> str:
    """Return in words what is wrong with a verdict, or nothing."""
    kinds = {
        "false accept": one.wrong and one.accepted,
        "false reject": one.wrong and not one.accepted,
        f"{one.seconds:.1f} s": one.timed_out,
        "contested, not as labelled": one.case.contested and one.accepted is not one.case.accept,
    }
    return ", ".join(kind for kind, holds in kinds.items() if holds)


def _mistake(kind: str, one: JudgedCase) -> str:
    case, verdict = one.case, one.verdict
    gold = "none" if case.gold is None else _cut(str(case.gold))
    read = "no answer" if verdict.extracted is None else _cut(verdict.extracted)
    return (
        f"{case.id}: {kind}\n  gold      {gold}\n  response  {_cut(case.response or '')}\n  read      {read}\n"
        f"  because   {verdict.rule}: {_cut(verdict.explanation)}"
    )


def _cut(text: str) -> str:
    """Return the end of a text, where answers are, without control characters."""
    end = text[-SHOWN_CHARACTERS:]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in end)
    return ("..." if len(text) > len(end) else "") + shown


def _percent(rate: Interval) -> str:
    return "-" if math.isnan(rate.mean) else f"{rate.mean:.1%} [{rate.low:.1%}, {rate.high:.1%}]"
