"""`earned algorithms`: the table of algorithms with their parts, defaults and sources."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from earned.cli.flags import Json
from earned.cli.json_line import write_json
from earned.errors import RecipeError

if TYPE_CHECKING:
    from earned.algorithms.described import PartDescription, RowDescription

KINDS = {
    "advantage": "Advantages: how much better than the others an attempt did",
    "surrogate": "Surrogates: what a token contributes to the loss",
    "aggregation": "Aggregations: the weight of a token in the loss",
    "divergence": "Divergences: how far the policy is from where the run started",
    "sampler_correction": "Sampler corrections: the weight of a token whose sampler and trainer disagree",
    "value_model": "Value model: what a critic adds",
}
HINT = (
    "Choose one with --algorithm.name NAME, and another part or number with --algorithm.surrogate NAME and the like.\n"
    "`earned explain advantages 1 0 0 0 --algorithm NAME` shows its advantages; `--markdown` has every formula."
)
PAGE = """# Algorithms

Made from the code by `earned algorithms --markdown`; a test holds the two equal. An algorithm is an advantage, a
surrogate, an aggregation and, where wanted, more. Choose one by its name, and another part or number in its place:

```toml
[algorithm]
name = "grpo"
aggregation = "token_mean"
clip_high = 0.28
```

`earned explain advantages 1 0 0 0 --algorithm maxrl` works out what an algorithm makes of a few rewards.
"""


def algorithms(*, json: Json = False, markdown: Annotated[bool, Parameter(negative="")] = False) -> None:
    """List the algorithms: what they consist of, what their numbers are by default, and where they come from.

    Args:
        json: Print one line of JSON, a list.
        markdown: Print the page docs/algorithms.md, with the formula and the source of every part.
    """
    if json and markdown:
        raise RecipeError("--json and --markdown: choose one of them")

    from earned.algorithms.described import describe_parts, describe_row
    from earned.algorithms.named import ALGORITHMS

    rows = [describe_row(row) for row in ALGORITHMS.values()]
    if json:
        write_json([asdict(row) for row in rows])
    elif markdown:
        sys.stdout.write("\n".join(_page(rows, describe_parts())))
    else:
        _show(rows)


def _show(rows: "Sequence[RowDescription]") -> None:
    table = Table("algorithm", "advantage", "surrogate", "aggregation", box=None, pad_edge=False)
    for row in rows:
        table.add_row(row.name, row.advantage, row.surrogate, row.aggregation)
    console = Console(highlight=False)
    console.print(table)
    for row in rows:
        numbers = f"\n  {_numbers(row)}" if _numbers(row) else ""
        text = f"\n{row.name}: {row.summary}{numbers}\n  {row.source}"
        console.print(text, markup=False, soft_wrap=True)
    console.print(f"\n{HINT}", markup=False, soft_wrap=True)


def _numbers(row: "RowDescription") -> str:
    """Return what an algorithm has beside its three parts."""
    said = (
        (row.clip_low is not None, f"clip_low {row.clip_low}"),
        (row.clip_high is not None, f"clip_high {row.clip_high}"),
        (row.updates > 1, f"{row.updates} updates a batch"),
        (row.divergence, f"{row.divergence} in the {row.divergence_in}, weight {row.divergence_weight}"),
        (row.sampler_correction, f"{row.sampler_correction} at {row.sampler_correction_cap}"),
        (row.refill_rounds, f"up to {row.refill_rounds} refills"),
        (row.mask_truncated, "truncated left out"),
        (row.missing_eos_penalty, f"{row.missing_eos_penalty} off where truncated"),
        (row.critic, "value model"),
    )
    return ", ".join(words for there, words in said if there)


def _page(rows: "Sequence[RowDescription]", parts: "dict[str, tuple[PartDescription, ...]]") -> Iterable[str]:
    yield PAGE
    yield from _table(
        ("algorithm", "what it is", "advantage", "surrogate", "aggregation", "and", "source"),
        (
            (f"`{row.name}`", row.summary, row.advantage, row.surrogate, row.aggregation, _numbers(row), row.source)
            for row in rows
        ),
    )
    for field, title in KINDS.items():
        yield f"\n## {title}\n"
        yield from _table(("part", "what it is", "formula", "source"), map(_cells, parts[field]))
    yield ""


def _cells(part: "PartDescription") -> tuple[str, ...]:
    clips = ", ".join(f"{field} {value:g}" for field, value in part.clips.items())
    link = f"[`{part.name}`](../src/earned/algorithms/{part.module}.py)"
    return link, part.sentence + (f" Usual: {clips}." if clips else ""), f"`{part.formula}`", part.source


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    for cells in (head, ["---"] * len(head), *rows):
        escaped = (cell.replace("|", r"\|") for cell in cells)
        yield f"| {' | '.join(escaped)} |"
