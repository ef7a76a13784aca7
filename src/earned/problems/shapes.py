"""Which columns of a table hold the prompt and the gold answer; chosen by their names, and the choice said in words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earned.errors import RecipeError, did_you_mean
from earned.problems.files import Row, Table
from earned.problems.golds import GoldForm, plain_text, read_gold
from earned.problems.splits import make_problem
from earned.recipe_file import Section
from earned.vocabulary import Problem

PROMPT_COLUMNS = (
    ("prompt",),
    ("body", "question"),
    ("question",),
    ("problem",),
    ("instruction", "input"),
    ("instruction",),
    ("query",),
    ("input",),
)
"""In order of preference, letter case aside; the texts of two columns are put one below the other."""

ANSWER_COLUMNS = (
    "reward_model.ground_truth",
    "answer",
    "final_answer",
    "final_ans",
    "gold",
    "expected_answer",
    "ground_truth",
    "target",
    "solution",
    "output",
)
"""In order of preference, letter case aside; a dot reaches into an object (verl's rows)."""

ID_COLUMNS = ("id", "task_id", "unique_id", "problem_id", "question_id", "uid", "uuid", "idx", "index")

CODE_COLUMNS = {"entry_point", "canonical_solution", "test_list", "test_cases", "unit_tests", "input_output"}
"""A table with one of them and without an answer column asks for programs."""


class ColumnOptions(Section):
    """Columns named by the user, for a table whose own names say nothing; a dot reaches into an object."""

    prompt: str | None = None
    answer: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Where in a row to look."""

    prompt: tuple[str, ...]
    """One column, or two whose texts are joined."""
    answer: str | None
    """None where the table has no answers."""
    own_id: str | None
    """The table's own name for a row, used only to find rows that share one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A row as a problem, good or bad."""

    number: int
    """Line or row of the table."""
    problem: Problem
    """An empty prompt or gold where the row has none; gold None where the table or the row has no text gold."""
    own_id: str | None
    form: GoldForm | None
    """None where the table has no answer column."""


def sniff(table: Table, options: ColumnOptions) -> Shape:
    """Return the columns to use.

    Raises:
        RecipeError: a column that the options name is not there, no column is known as a prompt, or the table holds
            programming problems.
    """
    columns = _columns(table.rows)
    answer = _named(table, options.answer, "answer", columns) or _first_present(table.rows, columns, ANSWER_COLUMNS)
    if answer is None and CODE_COLUMNS & set(columns):
        raise RecipeError(
            f"{table.source}: programming problems, judged by running tests, are not read yet. "
            f"Found: {', '.join(columns.values())}. Accepted: an answer as text in one of {', '.join(ANSWER_COLUMNS)}, "
            "or in the column that problems.options.answer names"
        )
    named = _named(table, options.prompt, "prompt", columns)
    prompt = (named,) if named else _first_prompt(table, columns)
    return Shape(prompt=prompt, answer=answer, own_id=_first_present(table.rows, columns, ID_COLUMNS))


def entries(table: Table, shape: Shape) -> tuple[Entry, ...]:
    """Return every row as an entry, in the order of the table.

    Raises:
        RecipeError: for a prompt that is neither text nor a conversation of one user message.
    """
    return tuple(_entry(table, row, shape) for row in table.rows)


def in_words(shape: Shape, found: Sequence[Entry]) -> str:
    """Return what was chosen, for people.

    >>> in_words(Shape(prompt=("question",), answer=None, own_id=None), [])
    "prompt from 'question'; no answer column, so no gold"
    """
    prompt = " and ".join(map(repr, shape.prompt)) + (", one below the other" if len(shape.prompt) > 1 else "")
    if shape.answer is None:
        return f"prompt from {prompt}; no answer column, so no gold"
    forms = Counter(entry.form for entry in found if entry.form not in (None, GoldForm.EMPTY))
    said = ", ".join(
        f"{form} ({counted(count, 'row')})" if len(forms) > 1 else f"{form}" for form, count in forms.items()
    )
    return f"prompt from {prompt}; gold from {shape.answer!r}" + (f", {said}" if said else "")


def counted(count: int, noun: str) -> str:
    """Return the count with its noun.

    >>> counted(1, "row"), counted(1319, "row")
    ('1 row', '1,319 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def value_at(columns: Mapping[str, Any], path: str) -> Any:
    """Return the value of a column, or of a key in the object that a column holds; None where there is none.

    >>> value_at({"reward_model": {"ground_truth": "7"}}, "reward_model.ground_truth")
    '7'
    """
    if path in columns:
        return columns[path]
    outer, dot, inner = path.partition(".")
    value = columns.get(outer) if dot else None
    return value_at(value, inner) if isinstance(value, Mapping) else None


def _entry(table: Table, row: Row, shape: Shape) -> Entry:
    cells = [_prompt_text(table, row, value_at(row.columns, column)) for column in shape.prompt]
    gold = read_gold(value_at(row.columns, shape.answer)) if shape.answer else None
    own_id = value_at(row.columns, shape.own_id) if shape.own_id else None
    return Entry(
        number=row.number,
        problem=make_problem(
            prompt="\n".join(cell for cell in cells if cell.strip()),
            gold=gold and gold.text,
            source=table.source,
            columns={name: value for name, value in row.columns.items() if name not in shape.prompt},
        ),
        own_id=None if own_id is None else plain_text(own_id),
        form=gold and gold.form,
    )


def _prompt_text(table: Table, row: Row, value: Any) -> str:
    if isinstance(value, list):
        return _user_message(table, row, value)
    if isinstance(value, Mapping):
        raise table.fault(row, f"the prompt is an object with the keys {', '.join(value)}, not text")
    return "" if value is None else plain_text(value)


def _user_message(table: Table, row: Row, messages: list[Any]) -> str:
    """Return the text of a conversation that is one user message."""
    roles = [message.get("role", "?") if isinstance(message, Mapping) else "?" for message in messages]
    content = messages[0].get("content") if roles == ["user"] else None
    if not isinstance(content, str):
        found = (
            f"messages of {', '.join(map(str, roles)) or 'nobody'}" if roles != ["user"] else "parts that are not text"
        )
        raise table.fault(
            row,
            f"the prompt is a conversation with {found}. Only one user message with text is read: "
            '[{"role": "user", "content": "..."}]; put what a system message says into its text',
        )
    return content


def _columns(rows: Sequence[Row]) -> dict[str, str]:
    """Return the names of all columns by their lower-case form; of two that differ in case only, the first counts."""
    columns: dict[str, str] = {}
    for name in dict.fromkeys(name for row in rows for name in row.columns):
        columns.setdefault(name.lower(), name)
    return columns


def _first_present(rows: Sequence[Row], columns: Mapping[str, str], wanted: Sequence[str]) -> str | None:
    for path in wanted:
        outer, dot, inner = path.partition(".")
        name = columns.get(outer)
        if name is not None and (not dot or any(value_at(row.columns, f"{name}.{inner}") is not None for row in rows)):
            return name + dot + inner
    return None


def _first_prompt(table: Table, columns: Mapping[str, str]) -> tuple[str, ...]:
    for wanted in PROMPT_COLUMNS:
        if all(name in columns for name in wanted):
            return tuple(columns[name] for name in wanted)
    accepted = ", ".join("+".join(wanted) for wanted in PROMPT_COLUMNS)
    raise RecipeError(
        f"{table.source}: no column is known as a prompt. Found: {', '.join(columns.values())}. Accepted: {accepted}. "
        "Or name yours in problems.options: prompt = ..., answer = ..."
    )


def _named(table: Table, path: str | None, option: str, columns: Mapping[str, str]) -> str | None:
    if path is None or any(value_at(row.columns, path) is not None for row in table.rows):
        return path
    names = list(columns.values())
    raise RecipeError(
        f"problems.options.{option}: {table.source} has no column {path!r}. Found: {', '.join(names)}."
        f"{did_you_mean(path, names)}"
    )
