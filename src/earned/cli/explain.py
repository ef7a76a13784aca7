"""`earned explain advantages|clip|metric`: the numbers behind a step of training, worked out without a model."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from earned.cli.flags import Json
from earned.cli.json_line import write_json
from earned.diagnostics.explanations import comparison, explain_advantages, explain_clip
from earned.errors import RecipeError
from earned.records.metrics import require_declared

app = App(name="explain", help="Show how advantages, the clip and metrics are worked out.")

BETWEEN_GROUPS = "/"


@app.command
def advantages(
    *rewards: Annotated[str, Parameter(allow_leading_hyphen=True)], algorithm: str = "grpo", json: Json = False
) -> None:
    """Work out the advantages of a few rewards, for example `earned explain advantages 1 0 0 0 --algorithm grpo`.

    Args:
        *rewards: Rewards of the attempts at one problem; `/` between problems, for example `1 0 0 0 / 1 1 1 0`.
        algorithm: Name of the algorithm.
        json: Print one line of JSON; `advantages` lists all attempts in order.
    """
    how = comparison(algorithm)
    groups = explain_advantages(_groups(rewards), how)
    if json:
        row = {
            "algorithm": algorithm,
            "formula": how.formula,
            "advantages": [value for group in groups for value in group.advantages],
            "groups": [asdict(group) for group in groups],
        }
        write_json(row)
        return
    console = Console(highlight=False)
    console.print(f"{algorithm}: advantage = {how.formula}", markup=False, soft_wrap=True)
    for group in groups:
        divided = how.divisor not in ("nothing", "group deviation") and group.divisor > 0
        by = f", divided by {group.divisor:.3f}" if divided else ""
        console.print(f"mean {group.mean:.3f}, deviation {group.deviation:.3f}{by}")
        table = Table("reward", "advantage")
        for reward, value in zip(group.rewards, group.advantages, strict=True):
            table.add_row(f"{reward:g}", f"{value:+.3f}")
        console.print(table)
        console.print(group.lesson, markup=False, soft_wrap=True)


@app.command
def clip(
    *, old: float, new: float, advantage: float, clip: tuple[float, float] = (0.8, 1.2), json: Json = False
) -> None:
    """Work out what the clip does with a token, for example `earned explain clip --old .2 --new .3 --advantage 1`.

    Args:
        old: Probability of the token before the update.
        new: Its probability now.
        advantage: Of the completion the token is in.
        clip: The bounds the ratio of the two is held in.
        json: Print one line of JSON.
    """
    explained = explain_clip(old, new, advantage, *clip)
    if json:
        write_json(asdict(explained))
        return
    low, high = clip
    winner = "the two are equal" if explained.winner == "equal" else f"the {explained.winner} side is the smaller"
    Console(highlight=False).print(
        f"ratio      {new:g} / {old:g} = {explained.ratio:g}\n"
        f"objective  min(ratio A, clip(ratio, {low:g}, {high:g}) A) = {explained.objective:g}; {winner}\n"
        f"clipped    {'yes' if explained.clipped else 'no'}\n{explained.lesson}",
        markup=False,
        soft_wrap=True,
    )


@app.command
def metric(name: str) -> None:
    """Say what a recorded number is, for example `earned explain metric groups/mixed_share`.

    Args:
        name: Key of the metric.
    """
    found = require_declared(name)
    Console(highlight=False).print(f"{name}, in {found.unit}\n{found.sentence}", markup=False, soft_wrap=True)


def _groups(words: Sequence[str]) -> list[list[float]]:
    groups: list[list[float]] = [[]]
    for word in words:
        if word.startswith("--"):
            raise RecipeError(f"{word}: no such flag here; there are --algorithm NAME and --json")
        if word == BETWEEN_GROUPS:
            groups.append([])
        else:
            groups[-1].append(_number(word))
    return groups


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise RecipeError(f"rewards: {word!r} is no number; write for example 1 0 0 0 --algorithm grpo") from None
