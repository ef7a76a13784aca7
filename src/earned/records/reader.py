"""Reads the record of a run, finished or still being written."""

import json
import math
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from earned.errors import RecordError
from earned.records.process_mark import has_ended
from earned.records.rows import (
    CompletionRow,
    EventRow,
    FindingRow,
    Phase,
    StepRow,
    StepSeconds,
    TokenRow,
)
from earned.records.run_folder import run_database
from earned.records.schema import PROCESS, check_schema, decode_flags, decode_ids, decode_numbers
from earned.vocabulary import EvaluationResult, PartScore, Problem, Rule, ScoreStatus, Split, StopReason

BUSY_SECONDS = 10.0
"""How long a question waits while the writer closes the file."""

ORDERS = {
    "attempt": "step, phase, problem_id, attempt",
    "reward": "reward IS NULL, reward DESC, step, phase, problem_id, attempt",
}

T = TypeVar("T")


class RunReader:
    """A run's record, read-only; `path` is a run folder or its `run.sqlite`.

    Each question opens its own connection, so a reader can be asked from any thread and never keeps the writer from
    closing the file. Every method raises RecordError when the file is missing, foreign or of another version.
    """

    def __init__(self, path: Path) -> None:
        self.path = run_database(path) if path.is_dir() else path
        self._ask("SELECT 1")

    def meta(self) -> dict[str, str]:
        """Return the facts about the whole run, `schema_version` among them."""
        return {row["key"]: row["value"] for row in self._ask("SELECT key, value FROM meta")}

    def status(self) -> str:
        """Return what became of the run, as it recorded it itself; `unknown` when it recorded nothing.

        `interrupted` is a run that says it is running while its process is known to have ended: it was killed.
        """
        meta = self.meta()
        status = meta.get("status", "unknown")
        return "interrupted" if status == "running" and has_ended(meta.get(PROCESS, "")) else status

    def steps(self) -> list[StepRow]:
        """Return the finished steps in order."""
        return [_step(row) for row in self._ask("SELECT * FROM steps ORDER BY step")]

    def metric(self, key: str) -> list[tuple[int, float]]:
        """Return (step, value) in order; steps where the value was not finite are left out."""
        rows = self._ask("SELECT step, value FROM metrics WHERE key = ? AND value IS NOT NULL ORDER BY step", key)
        return [(row["step"], row["value"]) for row in rows]

    def metrics_at(self, step: int) -> dict[str, float]:
        """Return the finite metrics of one step by key."""
        rows = self._ask("SELECT key, value FROM metrics WHERE step = ? AND value IS NOT NULL ORDER BY key", step)
        return {row["key"]: row["value"] for row in rows}

    def evaluations(self, split: Split | None = None) -> list[EvaluationResult]:
        """Return the evaluations in the order of their steps, of one split or of all; NaN where there was no number."""
        where, values = _where(split=split)
        return [
            _evaluation(row) for row in self._ask(f"SELECT * FROM evaluations {where} ORDER BY step, split", *values)
        ]

    def completions(
        self,
        step: int | None = None,
        phase: Phase | None = None,
        problem_id: str | None = None,
        limit: int | None = None,
        order: Literal["attempt", "reward"] = "attempt",
    ) -> list[CompletionRow]:
        """Return the completions that match, by step, problem and attempt, or best reward first with unscored last."""
        where, values = _where(step=step, phase=phase, problem_id=problem_id)
        sql = f"SELECT * FROM completions {where} ORDER BY {ORDERS[order]} LIMIT ?"
        return [_completion(row) for row in self._ask(sql, *values, -1 if limit is None else limit)]

    def completion_steps(self, phase: Phase) -> list[int]:
        """Return the steps that have completions of a phase, in order."""
        rows = self._ask("SELECT DISTINCT step FROM completions WHERE phase = ? ORDER BY step", phase)
        return [row["step"] for row in rows]

    def token_detail(self, completion_id: str) -> TokenRow | None:
        """Return the per-token numbers of a completion, None when they were not kept."""
        rows = self._ask("SELECT * FROM tokens WHERE completion_id = ?", completion_id)
        return _tokens(rows[0]) if rows else None

    def events(self) -> list[EventRow]:
        """Return the events in the order of their steps."""
        rows = self._ask("SELECT * FROM events ORDER BY step, rowid")
        return [EventRow(**{**row, "data": json.loads(row["data"])}) for row in map(dict, rows)]

    def findings(self) -> list[FindingRow]:
        """Return what the audit found in the order of its steps."""
        return [FindingRow(**dict(row)) for row in self._ask("SELECT * FROM findings ORDER BY step, rowid")]

    def problems(self, split: Split | None = None) -> list[Problem]:
        """Return the problems in the order they were recorded, without their further columns."""
        where, values = _where(split=split)
        rows = self._ask(f"SELECT * FROM problems {where} ORDER BY rowid", *values)
        return [Problem(**{**row, "split": Split(row["split"])}) for row in map(dict, rows)]

    def _ask(self, sql: str, *values: object) -> list[sqlite3.Row]:
        if not self.path.is_file():
            raise RecordError(f"{self.path}: there is no record of a run here")
        try:
            with closing(_connect(self.path)) as connection:
                check_schema(connection, self.path)
                return connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise RecordError(f"{self.path}: the record of the run cannot be read: {error}") from error


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSummary:
    """One line about a run."""

    name: str
    path: Path
    """The run folder."""
    status: str
    """As `RunReader.status` says; `unreadable` when the file cannot be read."""
    steps: int
    """The last finished step."""
    first_held_out: float | None
    last_held_out: float | None
    """Mean accuracy on the held-out problems at the first and the last evaluation."""


def find_runs(folder: Path) -> list[RunSummary]:
    """Return the runs in `folder`, by name; a run folder itself counts as one. Raises RecordError without a folder."""
    if not folder.is_dir():
        raise RecordError(f"{folder}: there is no such folder of runs")
    candidates = [folder, *sorted(folder.iterdir())]
    return [_summary(path) for path in candidates if run_database(path).is_file()]


def _summary(folder: Path) -> RunSummary:
    try:
        reader = RunReader(folder)
        status, steps = reader.status(), reader.steps()
        means = [evaluation.mean for evaluation in reader.evaluations(Split.HELD_OUT)]
    except RecordError:
        status, steps, means = "unreadable", [], []
    return RunSummary(
        name=folder.resolve().name,
        path=folder,
        status=status,
        steps=steps[-1].step if steps else 0,
        first_held_out=means[0] if means else None,
        last_held_out=means[-1] if means else None,
    )


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
    connection.row_factory = sqlite3.Row
    return connection


def _where(**wanted: object) -> tuple[str, list[object]]:
    """Return the WHERE clause for the columns that are not None, and its values."""
    given = {column: value for column, value in wanted.items() if value is not None}
    clause = " AND ".join(f"{column} = ?" for column in given)
    return (f"WHERE {clause}" if clause else ""), list(given.values())


def _step(row: sqlite3.Row) -> StepRow:
    seconds = StepSeconds(**{part.name: row[f"{part.name}_seconds"] for part in fields(StepSeconds)})
    return StepRow(step=row["step"], policy_version=row["policy_version"], seconds=seconds)


def _evaluation(row: sqlite3.Row) -> EvaluationResult:
    numbers = ("mean", "low", "high", "greedy", "pass_at_k", "maj_at_k", "length_mean", "truncated_share")
    return EvaluationResult(
        step=row["step"],
        split=Split(row["split"]),
        problems=row["n"],
        units=row["units"],
        samples=row["samples"],
        **{name: math.nan if row[name] is None else row[name] for name in numbers},
    )


def _completion(row: sqlite3.Row) -> CompletionRow:
    typed = {
        "stop_reason": StopReason(row["stop_reason"]),
        "truncated": bool(row["truncated"]),
        "status": ScoreStatus(row["status"]),
        "parts": tuple(_part(part) for part in json.loads(row["parts"])),
    }
    return CompletionRow(**{**dict(row), **typed})


def _part(part: dict[str, Any]) -> PartScore:
    return PartScore(**{**part, "rule": Rule(part["rule"])})


def _tokens(row: sqlite3.Row) -> TokenRow:
    return TokenRow(
        completion_id=row["completion_id"],
        ids=decode_ids(row["ids"]),
        sampler_logprobs=decode_numbers(row["sampler_logprobs"]),
        old_logprobs=_maybe(decode_numbers, row["old_logprobs"]),
        entropy=_maybe(decode_numbers, row["entropy"]),
        ratio=_maybe(decode_numbers, row["ratio"]),
        clipped=_maybe(decode_flags, row["clipped"]),
        after_logprobs=_maybe(decode_numbers, row["after_logprobs"]),
    )


def _maybe(decode: Callable[[bytes], Sequence[T]], blob: bytes | None) -> tuple[T, ...] | None:
    return None if blob is None else tuple(decode(blob))
