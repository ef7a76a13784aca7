"""Writes the record of a run in the background, so that training waits for the disk only when it must."""

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from queue import Full, Queue
from threading import Event, Thread
from types import TracebackType
from typing import Self

from earned.errors import RecordError
from earned.records.metrics import require_declared
from earned.records.process_mark import own_mark
from earned.records.rows import FindingRow, Phase, StepRow
from earned.records.schema import (
    PROCESS,
    SCHEMA,
    STEPPED_TABLES,
    check_schema,
    encode_flags,
    encode_ids,
    encode_numbers,
    storable,
)
from earned.vocabulary import EvaluationResult, PartScore, Problem, Rollout, RolloutGroup, TokenDetail

LOCK_SECONDS = 30.0
"""How long to wait for another process that holds the file."""
CLOSE_TRIES = 100
"""Tries, 0.05 s apart, to leave WAL mode while a reader is looking."""

PART_FIELDS = tuple(field.name for field in fields(PartScore))

Statement = tuple[str, Sequence[Sequence[object]]]
"""SQL and the rows to execute it with."""


class RecordWriter:
    """The only writer of a `run.sqlite`: `with RecordWriter(run_database(folder)) as records: ...`.

    Every method hands its rows to a bounded queue and returns; one background thread commits them in order. A full
    queue makes the caller wait, counted in `queue_waits`; nothing is dropped. Once writing has failed (disk full, file
    locked) every later call raises RecordError.
    """

    def __init__(self, path: Path, *, resume: bool = False, queue_size: int = 64) -> None:
        """Create the file, or with `resume` open the existing one; raises RecordError when it is the other way."""
        self.path = path
        self.queue_waits = 0
        """How often a caller had to wait because the queue was full."""
        self.cpu_seconds = 0.0
        """CPU time the background thread has used so far."""
        self._queue: Queue[Sequence[Statement] | Event | None] = Queue(maxsize=queue_size)
        self._failure: Exception | None = None
        self._closed = False
        self._connection = _open(path, resume)
        self._thread = Thread(target=self._write_all, name="records", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except RecordError:
            # The error that ends the run says more than a failure to record it.
            if error is None:
                raise

    def meta(self, key: str, value: str) -> None:
        """Set one fact about the whole run; a second value replaces the first."""
        replace = "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        self._put(_insert("meta", [{"key": key, "value": value}], replace))

    def problems(self, problems: Sequence[Problem]) -> None:
        """Record problems; one that is recorded already is left as it is."""
        rows = [
            {
                "id": problem.id,
                "split": problem.split,
                "source": problem.source,
                "prompt": problem.prompt,
                "gold": problem.gold,
                "cluster": problem.cluster,
            }
            for problem in problems
        ]
        self._put(_insert("problems", rows, "ON CONFLICT (id) DO NOTHING"))

    def step(self, row: StepRow, metrics: Mapping[str, float]) -> None:
        """Record a finished step; a metric that is not finite becomes NULL, an undeclared one raises RecordError."""
        for key in metrics:
            require_declared(key)
        seconds = {f"{part}_seconds": value for part, value in asdict(row.seconds).items()}
        columns = {"step": row.step, "policy_version": row.policy_version, **seconds}
        values = [{"step": row.step, "key": key, "value": float(value)} for key, value in metrics.items()]
        self._put([*_insert("steps", [columns]), *_insert("metrics", values)])

    def checkpoint_seconds(self, step: int, seconds: float) -> None:
        """Record how long saving took, which is known only after its step was recorded."""
        metrics = _insert("metrics", [{"step": step, "key": "time/checkpoint_seconds", "value": seconds}])
        self._put([("UPDATE steps SET checkpoint_seconds = ? WHERE step = ?", [(seconds, step)]), *metrics])

    def rollouts(
        self,
        step: int,
        phase: Phase,
        groups: Sequence[RolloutGroup],
        advantages: Mapping[str, float] | None,
        details: Sequence[TokenDetail],
        keep_tokens: bool,
    ) -> None:
        """Record every completion of `groups`, and with `keep_tokens` every token.

        `advantages` and `details` are matched by rollout id; a rollout without either was not trained on.
        """
        advantages = advantages or {}
        detail_of = {detail.rollout_id: detail for detail in details}
        pairs = [(group, rollout) for group in groups for rollout in group.rollouts]
        strays = {*advantages, *detail_of} - {rollout.id for _, rollout in pairs}
        assert not strays, f"numbers for rollouts that are not recorded here: {sorted(strays)[:3]}"
        completions = [
            {
                **_completion(rollout),
                "step": step,
                "phase": phase,
                "problem_id": group.prompt.problem.id,
                "advantage": advantages.get(rollout.id),
            }
            for group, rollout in pairs
        ]
        tokens = [_tokens(rollout, detail_of.get(rollout.id)) for _, rollout in pairs] if keep_tokens else []
        self._put([*_insert("completions", completions), *_insert("tokens", tokens)])

    def evaluation(self, result: EvaluationResult) -> None:
        """Record the accuracy of one split at one step."""
        row = asdict(result)
        row["n"] = row.pop("problems")
        self._put(_insert("evaluations", [row]))

    def event(self, step: int, kind: str, text: str, data: Mapping[str, object]) -> None:
        """Record something that happened once; `data` is anything JSON can hold."""
        finite = {key: storable(value) for key, value in data.items()}
        self._put(_insert("events", [{"step": step, "kind": kind, "text": text, "data": _json(finite)}]))

    def finding(self, row: FindingRow) -> None:
        """Record what one check of the audit found."""
        self._put(_insert("findings", [asdict(row)]))

    def truncate_after(self, step: int) -> None:
        """Forget everything recorded for a later step, so that a resumed run equals an uninterrupted one."""
        orphans = "DELETE FROM tokens WHERE completion_id IN (SELECT id FROM completions WHERE step > ?)"
        later = [(f"DELETE FROM {table} WHERE step > ?", [(step,)]) for table in STEPPED_TABLES]
        self._put([(orphans, [(step,)]), *later])
        self.flush()

    def flush(self) -> None:
        """Wait until everything given so far is committed and on disk; raises RecordError when it cannot be."""
        committed = Event()
        self._put(committed)
        committed.wait()
        self._raise_failure()

    def close(self) -> None:
        """Write what is queued and leave exactly one file; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._queue.put([("DELETE FROM meta WHERE key = ?", [(PROCESS,)])])
        self._queue.put(None)
        self._thread.join()
        try:
            if self._failure is None:
                _leave_wal(self._connection)
        finally:
            self._connection.close()
        self._raise_failure()

    def _put(self, item: Sequence[Statement] | Event) -> None:
        if self._closed:
            raise RecordError(f"{self.path}: the records are closed")
        self._raise_failure()
        try:
            self._queue.put_nowait(item)
        except Full:
            self.queue_waits += 1
            self._queue.put(item)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise RecordError(f"{self.path}: the run could not be recorded: {self._failure}") from self._failure

    def _write_all(self) -> None:
        """Commit what is queued, one transaction for all that waits; None ends it.

        After a failure the queue is still emptied, so that no caller waits for ever.
        """
        ended = False
        while not ended:
            items = [self._queue.get() for _ in range(max(1, self._queue.qsize()))]
            flushes = [item for item in items if isinstance(item, Event)]
            if self._failure is None:
                batches = [item for item in items if item is not None and not isinstance(item, Event)]
                self._commit([statement for batch in batches for statement in batch], to_disk=bool(flushes))
            self.cpu_seconds = time.thread_time()
            for committed in flushes:
                committed.set()
            ended = None in items

    def _commit(self, statements: Iterable[Statement], to_disk: bool) -> None:
        try:
            with self._connection:
                for sql, rows in statements:
                    self._connection.executemany(sql, rows)
            if to_disk:
                # In WAL mode a commit survives the process, but only a checkpoint survives the loss of power.
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except Exception as failure:
            self._failure = failure


def _open(path: Path, resume: bool) -> sqlite3.Connection:
    if path.exists() and not resume:
        raise RecordError(f"{path}: a run is recorded here already; --resume continues it, --overwrite starts again")
    if resume and not path.is_file():
        raise RecordError(f"{path}: there is no record of a run to resume")
    try:
        connection = sqlite3.connect(path, timeout=LOCK_SECONDS, check_same_thread=False)
    except sqlite3.Error as error:
        raise RecordError(f"{path}: the record of the run cannot be opened: {error}") from error
    try:
        if resume:
            check_schema(connection, path)
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        connection.execute("PRAGMA synchronous=NORMAL")
        if not resume:
            connection.executescript(SCHEMA)
        with connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (PROCESS, own_mark()))
    except sqlite3.Error as error:
        connection.close()
        raise RecordError(f"{path}: the record of the run cannot be written: {error}") from error
    except RecordError:
        connection.close()
        raise
    return connection


def _leave_wal(connection: sqlite3.Connection) -> None:
    """Fold the write-ahead log into the file; while a reader keeps it open the log stays, and nothing is lost."""
    for _ in range(CLOSE_TRIES):
        try:
            connection.execute("PRAGMA journal_mode=DELETE").fetchall()
            return
        except sqlite3.OperationalError:
            time.sleep(0.05)


def _insert(table: str, rows: Sequence[Mapping[str, object]], on_conflict: str = "") -> list[Statement]:
    """Return what adds `rows`, which name the same columns in the same order: nothing when there are none."""
    if not rows:
        return []
    columns = ", ".join(f'"{name}"' for name in rows[0])
    places = ", ".join("?" for _ in rows[0])
    sql = f"INSERT INTO {table} ({columns}) VALUES ({places}) {on_conflict}"
    return [(sql, [[storable(value) for value in row.values()] for row in rows])]


def _completion(rollout: Rollout) -> dict[str, object]:
    completion, score = rollout.completion, rollout.score
    return {
        "id": rollout.id,
        "attempt": rollout.attempt,
        "policy_version": completion.policy_version,
        "text": completion.text,
        "tokens": completion.length,
        "stop_reason": completion.stop_reason,
        "truncated": completion.truncated,
        "status": score.status,
        "reward": score.value,
        "parts": _json([_part(part) for part in score.parts]),
        "extracted": score.extracted,
        "explanation": score.explanation,
    }


def _part(part: PartScore) -> dict[str, object]:
    # Not by `asdict`, whose deep copies made this half of the time of a row.
    return {field: storable(getattr(part, field)) for field in PART_FIELDS}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _tokens(rollout: Rollout, detail: TokenDetail | None) -> dict[str, object]:
    ids = rollout.completion.token_ids
    row: dict[str, object] = {
        "completion_id": rollout.id,
        "ids": encode_ids(ids),
        "sampler_logprobs": encode_numbers(rollout.completion.sampler_logprobs),
    }
    if detail is None:
        return {**row, **dict.fromkeys(("old_logprobs", "entropy", "ratio", "clipped", "after_logprobs"))}
    after = detail.after_logprobs
    for values in (detail.old_logprobs, detail.entropy, detail.ratio, detail.clipped, after or ids):
        assert len(values) == len(ids), f"{rollout.id}: {len(values)} numbers for {len(ids)} tokens"
    return {
        **row,
        "old_logprobs": encode_numbers(detail.old_logprobs),
        "entropy": encode_numbers(detail.entropy),
        "ratio": encode_numbers(detail.ratio),
        "clipped": encode_flags(detail.clipped),
        "after_logprobs": None if after is None else encode_numbers(after),
    }
