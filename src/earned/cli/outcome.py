"""What a finished run shows: a table of before and after, completions side by side, or one line of JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from earned.cli.attempts import visible
from earned.evaluation.statistics import power_sentence
from earned.problems.shapes import counted
from earned.records.reader import RunReader
from earned.records.rows import CompletionRow
from earned.records.run_folder import run_database
from earned.vocabulary import GREEDY_ATTEMPT, EvaluationResult, Split

if TYPE_CHECKING:
    from earned.api import TrainResult

EXAMPLES = 3


def row(result: "TrainResult") -> dict[str, object]:
    """Return the result for JSON; accuracies are None where there are no held-out problems, or none with a gold."""
    before, after = result.before, result.after
    return {
        "run": str(result.run),
        "accuracy_before": before and before.mean,
        "accuracy_after": after and after.mean,
        "interval_before": before and [before.low, before.high],
        "interval_after": after and [after.low, after.high],
        "length_before": before and before.length_mean,
        "length_after": after and after.length_mean,
        "seconds": round(result.seconds, 1),
    }


def show(result: "TrainResult", console: Console) -> None:
    """Print three problems before and after, the table of accuracies, and a sentence with its evidence.

    Without accuracies the reward of the training attempts is shown, which says less: those problems were trained on.
    """
    before, after, reader = result.before, result.after, RunReader(run_database(result.run))
    _show_completions(reader, console)
    if before is None or after is None:
        console.print(_without_accuracy(reader), soft_wrap=True, highlight=False)
    else:
        console.print(f"{after.problems} held-out problems, {counted(after.samples, 'sample')} each", highlight=False)
        console.print(_table(before, after))
        console.print(_verdict(before, after), soft_wrap=True)
    console.print(f"run    {result.run}\nmodel  {result.model}", soft_wrap=True, highlight=False)


def power(result: EvaluationResult) -> str:
    """Return how small a difference an evaluation can see; wordings of one problem are one problem for it."""
    return power_sentence(result.units, result.problems)


def _table(before: EvaluationResult, after: EvaluationResult) -> Table:
    table = Table()
    table.add_column("")
    table.add_column(f"before (step {before.step})", justify="right")
    table.add_column(f"after (step {after.step})", justify="right")
    for name, cells in (
        ("accuracy, mean@k", [f"{r.mean:.3f} [{r.low:.3f}, {r.high:.3f}]" for r in (before, after)]),
        ("greedy", [f"{r.greedy:.3f}" for r in (before, after)]),
        (f"solved once in {after.samples}", [f"{r.pass_at_k:.3f}" for r in (before, after)]),
        ("length in tokens", [f"{r.length_mean:.1f}" for r in (before, after)]),
        ("cut off", [f"{r.truncated_share:.1%}" for r in (before, after)]),
    ):
        table.add_row(name, *map(Text, cells))
    return table


def _show_completions(reader: RunReader, console: Console) -> None:
    watched = [row for row in reader.completions(phase="watched") if row.attempt == GREEDY_ATTEMPT]
    if not watched:
        return
    first, last = ({row.problem_id: row for row in watched if row.step == watched[end].step} for end in (0, -1))
    prompts = {problem.id: problem.prompt for problem in reader.problems()}
    table = Table()
    for column in ("problem", "before", "after"):
        table.add_column(column, overflow="fold")
    for problem_id in list(first)[:EXAMPLES]:
        table.add_row(Text(visible(prompts[problem_id])), _marked(first[problem_id]), _marked(last[problem_id]))
    console.print("the most likely completion of the same problems")
    console.print(table)


def _without_accuracy(reader: RunReader) -> str:
    """Return why there is no accuracy, and what training earned at its first and its last step."""
    if reader.problems(Split.HELD_OUT):
        why = "the held-out problems have no answer that the evaluation's check can read, so there is no accuracy"
    else:
        why = "no held-out problems, so nothing to compare"
    rewards = reader.metric("reward/mean")
    if not rewards:
        return why
    (first, before), (last, after) = rewards[0], rewards[-1]
    return f"{why}\ntraining reward {before:.3f} at step {first}, {after:.3f} at step {last}"


def _marked(row: CompletionRow) -> Text:
    if row.reward is None:
        return Text(visible(row.text))
    right = row.reward == 1
    return Text(f"{visible(row.text)} {'right' if right else 'wrong'}", style="green" if right else "red")


def _verdict(before: EvaluationResult, after: EvaluationResult) -> str:
    gain = after.mean - before.mean
    times = after.length_mean / max(1e-9, before.length_mean)
    if after.low > before.high:
        what = f"Held-out accuracy rose by {gain:.2f}, the intervals are apart"
    elif after.high < before.low:
        what = f"Held-out accuracy fell by {-gain:.2f}, the intervals are apart"
    else:
        what = f"Held-out accuracy changed by {gain:+.2f}, which is within the intervals: no change shown"
    return f"{what}. Length x{times:.1f}. ({power(after)}.)"


def power_line(results: Sequence[EvaluationResult]) -> str:
    """Return, for each split, how small a difference between two of its accuracies can be seen."""
    last_of = {result.split.in_words: result for result in results}
    return "; ".join(f"{split}: {power(last)}" for split, last in last_of.items())
