"""What is wrong with the rows of a table: found at load, said with line numbers; what cannot be used is left out."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from earned.problems.golds import GoldForm
from earned.problems.shapes import Entry, counted
from earned.problems.splits import problem_hash
from earned.vocabulary import Problem

SHOWN_NUMBERS = 5

SENTINELS = {"proof", "n/a", "none", "null", "nan", "unknown", "?"}
"""Gold answers that more often mean that there is none."""

LEFT_OUT = {
    "empty_prompt": "no prompt",
    "empty_gold": "an empty gold answer",
    "duplicate": "the same prompt and gold as an earlier row",
    "other_gold": "the same prompt as an earlier row with another gold, so one of the two is wrong",
}
"""Kinds of rows that never become problems. The last two also keep the splits apart: no prompt is in two of them."""

KEPT = {
    "same_id": "the id of an earlier row with another problem (problems are told apart by their text, not by it)",
    "no_text_gold": "a gold that is a list or an object: no text to compare, only a reward of your own can read it",
    "sentinel": "a gold that usually means there is none (proof, n/a, none, ...)",
    "unreadable_gold": "a gold that the check cannot read, so every answer would stay unscored",
    "several_lines": "a gold of several lines without #### or \\boxed{}",
    "overlap": "a prompt that the other file has too",
}
"""Kinds of rows that stay and deserve a look."""

Parse = Callable[[str], object | None]
"""What a check makes of a gold answer; None when it can make nothing of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """All rows of a table with one kind of fault."""

    kind: str
    """A key of `LEFT_OUT` or `KEPT`."""
    numbers: tuple[int, ...]
    """Lines or rows of the table, ascending."""

    @property
    def left_out(self) -> bool:
        """True when these rows do not become problems."""
        return self.kind in LEFT_OUT

    def sentence(self, unit: str) -> str:
        """Return the finding with its first five lines and the count.

        >>> Finding(kind="empty_gold", numbers=(3, 9)).sentence("line")
        '2 rows left out (lines 3, 9): an empty gold answer'
        """
        shown = [*map(str, self.numbers[:SHOWN_NUMBERS])] + ["..."] * (len(self.numbers) > SHOWN_NUMBERS)
        places = f"{unit}{'s' if len(self.numbers) > 1 else ''} {', '.join(shown)}"
        fate = "left out" if self.left_out else "kept"
        return f"{counted(len(self.numbers), 'row')} {fate} ({places}): {(LEFT_OUT | KEPT)[self.kind]}"


def lint(found: Sequence[Entry], parse: Parse | None = None, others: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return what is wrong with the rows, by kind in the order of `LEFT_OUT` and `KEPT`.

    Args:
        found: All rows of a table, in order.
        parse: Reads a gold answer as the check does that will judge; without it only gold of several lines is noted.
        others: Keys (`prompt_keys`) of the prompts of another table, such as the evaluation's.
    """
    numbers: dict[str, list[int]] = {kind: [] for kind in (*LEFT_OUT, *KEPT)}
    earlier: dict[str, Problem] = {}
    named: dict[str, Problem] = {}
    for entry in found:
        key = _prompt_key(entry.problem)
        fault = _leaves_out(entry, earlier.get(key))
        if fault is None:
            earlier[key] = entry.problem
            if entry.own_id is not None and named.setdefault(entry.own_id, entry.problem) is not entry.problem:
                numbers["same_id"].append(entry.number)
            if key in others:
                numbers["overlap"].append(entry.number)
        for kind in _doubts(entry, parse) if fault is None else [fault]:
            numbers[kind].append(entry.number)
    return tuple(Finding(kind=kind, numbers=tuple(lines)) for kind, lines in numbers.items() if lines)


def prompt_keys(problems: Sequence[Problem]) -> set[str]:
    """Return what identifies each prompt, whatever its gold: for `lint(..., others=)`."""
    return {_prompt_key(problem) for problem in problems}


def kept(found: Sequence[Entry], findings: Sequence[Finding]) -> tuple[Entry, ...]:
    """Return the entries that become problems; no two of them have the same prompt."""
    gone = {number for finding in findings if finding.left_out for number in finding.numbers}
    return tuple(entry for entry in found if entry.number not in gone)


def _prompt_key(problem: Problem) -> str:
    return problem_hash(problem.prompt, None)


def _leaves_out(entry: Entry, earlier: Problem | None) -> str | None:
    if not entry.problem.prompt.strip():
        return "empty_prompt"
    if entry.form is GoldForm.EMPTY:
        return "empty_gold"
    if earlier is None:
        return None
    return "duplicate" if earlier.id == entry.problem.id else "other_gold"


def _doubts(entry: Entry, parse: Parse | None) -> Iterator[str]:
    gold = entry.problem.gold
    if entry.form is GoldForm.STRUCTURED:
        yield "no_text_gold"
    if gold is None:
        return
    if gold.casefold() in SENTINELS:
        yield "sentinel"
    elif parse is not None and parse(gold) is None:
        yield "unreadable_gold"
    elif parse is None and "\n" in gold:
        yield "several_lines"
