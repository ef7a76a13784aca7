"""The tables of `run.sqlite` and how numbers of a token are packed into them."""

import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from earned.errors import RecordError

SCHEMA_VERSION = 3
PROCESS = "process"
"""Key in `meta` of the mark of the process that is writing; a record that was closed has none."""

STEPPED_TABLES = ("steps", "metrics", "completions", "evaluations", "events", "findings")
"""Tables whose rows belong to a step."""

SCHEMA = f"""
BEGIN;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE steps (
    step INTEGER PRIMARY KEY,
    policy_version INTEGER NOT NULL,
    sample_seconds REAL NOT NULL,
    score_seconds REAL NOT NULL,
    update_seconds REAL NOT NULL,
    evaluate_seconds REAL NOT NULL,
    record_seconds REAL NOT NULL,
    checkpoint_seconds REAL NOT NULL,
    total_seconds REAL NOT NULL
);
CREATE TABLE metrics (step INTEGER NOT NULL, key TEXT NOT NULL, value REAL, PRIMARY KEY (key, step)) WITHOUT ROWID;
CREATE TABLE problems (
    id TEXT PRIMARY KEY, split TEXT NOT NULL, source TEXT NOT NULL, prompt TEXT NOT NULL, gold TEXT,
    cluster TEXT
);
CREATE TABLE completions (
    id TEXT PRIMARY KEY,
    step INTEGER NOT NULL,
    phase TEXT NOT NULL CHECK (phase IN ('train', 'validation', 'held_out', 'watched', 'audit')),
    problem_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    policy_version INTEGER NOT NULL,
    text TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    stop_reason TEXT NOT NULL,
    truncated INTEGER NOT NULL,
    status TEXT NOT NULL,
    reward REAL,
    parts TEXT NOT NULL,
    extracted TEXT,
    explanation TEXT NOT NULL,
    advantage REAL
);
CREATE INDEX completions_by_step ON completions (step, phase);
CREATE INDEX completions_by_problem ON completions (problem_id, step);
CREATE TABLE tokens (
    completion_id TEXT PRIMARY KEY,
    ids BLOB NOT NULL,
    sampler_logprobs BLOB NOT NULL,
    old_logprobs BLOB,
    entropy BLOB,
    ratio BLOB,
    clipped BLOB,
    after_logprobs BLOB
);
CREATE TABLE evaluations (
    step INTEGER NOT NULL,
    split TEXT NOT NULL,
    n INTEGER NOT NULL,
    units INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    mean REAL,
    low REAL,
    high REAL,
    greedy REAL,
    pass_at_k REAL,
    maj_at_k REAL,
    length_mean REAL,
    truncated_share REAL,
    PRIMARY KEY (step, split)
);
CREATE TABLE events (step INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE findings (
    step INTEGER NOT NULL,
    source TEXT NOT NULL,
    "check" TEXT NOT NULL,
    result TEXT NOT NULL,
    number REAL,
    low REAL,
    high REAL,
    text TEXT NOT NULL,
    change TEXT NOT NULL
);
INSERT INTO meta VALUES ('schema_version', '{SCHEMA_VERSION}');
COMMIT;
"""

IDS = np.dtype("<i4")
NUMBERS = np.dtype("<f4")
FLAGS = np.dtype("u1")


def encode_ids(values: Sequence[int]) -> bytes:
    """Pack token ids [T] as little-endian int32.

    >>> decode_ids(encode_ids([7, 1, 2]))
    (7, 1, 2)
    """
    return np.asarray(values, dtype=IDS).tobytes()


def decode_ids(blob: bytes) -> tuple[int, ...]:
    """Return the token ids [T] of `encode_ids`."""
    return tuple(np.frombuffer(blob, dtype=IDS).tolist())


def encode_numbers(values: Sequence[float]) -> bytes:
    """Pack log-probs, entropies or ratios [T] as little-endian float32.

    >>> decode_numbers(encode_numbers([-0.5, 0.25]))
    (-0.5, 0.25)
    """
    return np.asarray(values, dtype=NUMBERS).tobytes()


def decode_numbers(blob: bytes) -> tuple[float, ...]:
    """Return the numbers [T] of `encode_numbers`, rounded to float32."""
    return tuple(np.frombuffer(blob, dtype=NUMBERS).tolist())


def encode_flags(values: Sequence[bool]) -> bytes:
    """Pack one byte for each token [T].

    >>> decode_flags(encode_flags([True, False]))
    (True, False)
    """
    return np.asarray(values, dtype=FLAGS).tobytes()


def decode_flags(blob: bytes) -> tuple[bool, ...]:
    """Return the flags [T] of `encode_flags`."""
    return tuple(np.frombuffer(blob, dtype=FLAGS).astype(bool).tolist())


def storable(value: object) -> object:
    r"""Return what SQLite can hold: None for a number that is not finite, lone surrogates of a text written out.

    >>> storable(float("nan")), storable(0.5), storable("a\ud800")
    (None, 0.5, 'a\\ud800')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str) and not value.isascii():
        return value.encode(errors="backslashreplace").decode()
    return value


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raise RecordError unless `connection` is the record of a run in a version this code reads."""
    try:
        found = connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    except sqlite3.DatabaseError as error:
        raise RecordError(f"{path}: cannot be read as the record of a run: {error}") from None
    if found is None:
        raise RecordError(f"{path}: is a database, but not the record of a run")
    if found[0] != str(SCHEMA_VERSION):
        raise RecordError(
            f"{path}: has record version {found[0]}, this earned reads version {SCHEMA_VERSION}; "
            "open it with the earned that wrote it, or update"
        )
