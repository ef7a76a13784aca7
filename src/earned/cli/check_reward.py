"""`earned check-reward RECIPE.toml`."""

import sys
from pathlib import Path

from rich.console import Console

from earned.cli.flags import Flags, Json, recipe_flags
from earned.cli.json_line import write_json
from earned.problems.shapes import counted
from earned.recipe import Recipe
from earned.recipe_file import load
from earned.reward_probe import KindResult, RewardReport
from earned.reward_probe import check_reward as probe_reward

FOUND = 1


def check_reward(recipe: Path, *flags: Flags, json: Json = False) -> None:
    """Try the reward of a recipe on texts that must earn nothing, and on right answers in usual writings.

    No model is loaded. Exits 1 when something is found that `rewards.allow` does not name; `earned train` then refuses.

    Args:
        recipe: TOML file; see `recipes/`.
        *flags: Keys of the recipe, for example `--rewards.answer.check my.py:reward`.
        json: Print one line of JSON instead of text.
    """
    report = probe_reward(load(Recipe, recipe, recipe_flags(flags)))
    if json:
        write_json(_row(report, recipe.stem))
    else:
        console = Console(highlight=False)
        for line in _lines(report):
            console.print(line, markup=False, soft_wrap=True)
    sys.exit(FOUND if report.refused else 0)


def _row(report: RewardReport, name: str) -> dict[str, object]:
    return {
        "recipe": name,
        "passed": not report.refused,
        "problems": report.problems,
        "kinds": [
            {"kind": one.kind, "texts": one.texts, "paid": one.paid, "unscored": one.unscored, "finding": one.finding}
            for one in report.kinds
        ],
        "findings": [
            {
                "finding": one.name,
                "allowed": one.allowed,
                "kind": one.tried.probe.kind,
                "problem": one.tried.probe.problem.id,
                "gold": one.tried.probe.problem.gold,
                "text": one.tried.probe.text,
                "reward": one.tried.first.value,
                "reward_again": one.tried.again.value,
                "explanation": one.tried.first.explanation,
                "sentence": one.sentence,
            }
            for one in report.findings
        ],
    }


def _lines(report: RewardReport) -> list[str]:
    if not report.problems:
        return ["a control, allowed by name: it is meant to teach nothing, so nothing was tried"]
    repeated = "not_deterministic" if any(one.name == "not_deterministic" for one in report.findings) else "ok"
    return [
        *(_line(one) for one in report.kinds),
        f"{'the same text twice':<28} {repeated}",
        *(f"{'allowed: ' if one.allowed else ''}{one.sentence}" for one in report.findings),
        f"{_verdict(report)} ({counted(report.problems, 'problem')})",
    ]


def _verdict(report: RewardReport) -> str:
    if report.refused:
        return "the reward cannot be trusted: " + ", ".join(one.name for one in report.refused)
    if report.findings:
        return "nothing was found that the recipe does not allow"
    return "nothing wrong was found" + ("" if report.kinds else "; without gold answers nothing says what is paid")


def _line(one: KindResult) -> str:
    unscored = f", {one.unscored} not scored" if one.unscored else ""
    return f"{one.kind:<28} {one.finding or 'ok'}: {one.paid} of {one.texts} texts paid{unscored}"
