"""Tables of rows from files: JSONL, JSON, CSV (each also with `.gz`) and Parquet; every row knows its place."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

from earned.errors import RecipeError, did_you_mean

NEEDS_DATA_EXTRA = 'is not installed; it comes with the extra `data`: pip install "earned[data]"'


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row: `Row(number=7, columns={"question": "2+2?", "answer": "4"})`."""

    number: int
    """Line or row of the table it came from, counted from 1 (a header line counts)."""
    columns: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """All rows of a source, at least one."""

    source: str
    """Path or hub id, as the user wrote it."""
    unit: Literal["line", "row"]
    """What `Row.number` counts."""
    rows: tuple[Row, ...]

    def fault(self, row: Row, text: str) -> RecipeError:
        """Return the error that says what is wrong with a row, and where it is."""
        return RecipeError(f"{self.source}, {self.unit} {row.number}: {text}")


def is_file_name(name: str) -> bool:
    """Return whether a name ends like a file that can be read here.

    >>> [is_file_name(name) for name in ("data/my.jsonl", "my.csv.gz", "openai/gsm8k")]
    [True, True, False]
    """
    return _ending(PurePath(name)) in READERS


def read_file(name: str) -> Table:
    """Return the rows of a file; a relative path is relative to the current folder.

    Raises:
        RecipeError: the file is absent, empty, of no known kind, or broken; it names the line where there is one.
    """
    path = Path(name).expanduser()
    if not path.is_file():
        raise _absent(name, path)
    if _ending(path) not in READERS:
        raise RecipeError(f"{name}: not a kind of file that can be read. Accepted: {', '.join(READERS)}")
    try:
        table = READERS[_ending(path)](name, path)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecipeError(f"{name}: cannot be read: {reason}") from None
    if not table.rows:
        raise RecipeError(f"{name}: the file holds no rows")
    return table


def _json_lines(name: str, path: Path) -> Table:
    return _table_of_lines(name, _bytes(path))


def _table_of_lines(name: str, data: bytes) -> Table:
    # Only a line feed ends a line: JSON strings may hold the other separators that `splitlines` knows.
    rows = [
        Row(number=number, columns=_object(_json(name, line, number), f"{name}, line {number}"))
        for number, line in enumerate(data.split(b"\n"), start=1)
        if line.strip()
    ]
    return Table(source=name, unit="line", rows=tuple(rows))


def _json_document(name: str, path: Path) -> Table:
    data = _bytes(path)
    lines = data.split(b"\n")
    if len(lines) > 1 and _is_json_object(lines[0]):
        return _table_of_lines(name, data)
    if not data.strip():
        raise RecipeError(f"{name}: the file is empty")
    document = _json(name, data, first_line=1)
    rows = document.get("data") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        found = f"an object with the keys {', '.join(document)}" if isinstance(document, dict) else f"{document!r:.40}"
        raise RecipeError(f'{name}: {found}. Accepted: a list of objects, {{"data": [...]}}, or one object a line')
    numbered = enumerate(rows, start=1)
    return Table(
        source=name,
        unit="row",
        rows=tuple(Row(number=number, columns=_object(row, f"{name}, row {number}")) for number, row in numbered),
    )


def _csv(name: str, path: Path) -> Table:
    reader = csv.reader(io.StringIO(_decoded(name, _bytes(path), first_line=1), newline=""), strict=True)
    rows: list[Row] = []
    try:
        header = next(reader, [])
        if len(set(header)) < len(header):
            raise RecipeError(f"{name}, line 1: two columns of the header have the same name: {', '.join(header)}")
        number = reader.line_num + 1
        for record in reader:
            if len(record) > len(header):
                raise RecipeError(f"{name}, line {number}: {len(record)} fields, but the header names {len(header)}")
            if record:
                padded = record + [""] * (len(header) - len(record))
                rows.append(Row(number=number, columns=dict(zip(header, padded, strict=True))))
            number = reader.line_num + 1
    except csv.Error as error:
        raise RecipeError(f"{name}, line {reader.line_num}: not CSV: {error}") from None
    return Table(source=name, unit="line", rows=tuple(rows))


def _parquet(name: str, path: Path) -> Table:
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise RecipeError(f"{name}: reading Parquet needs pyarrow, which {NEEDS_DATA_EXTRA}") from None
    try:
        rows = pyarrow.parquet.ParquetFile(path).read().to_pylist()
    except pyarrow.ArrowException as error:
        raise RecipeError(f"{name}: not a Parquet file: {error}") from None
    return table_of_objects(name, rows)


READERS: Mapping[str, Callable[[str, Path], Table]] = {
    ".jsonl": _json_lines,
    ".json": _json_document,
    ".csv": _csv,
    ".parquet": _parquet,
    ".jsonl.gz": _json_lines,
    ".json.gz": _json_document,
    ".csv.gz": _csv,
}
"""From the end of a file's name to what reads it."""


def table_of_objects(source: str, objects: list[dict[str, Any]]) -> Table:
    """Return a table whose rows are counted, for sources that have no lines."""
    rows = tuple(Row(number=number, columns=columns) for number, columns in enumerate(objects, start=1))
    return Table(source=source, unit="row", rows=rows)


def _ending(path: PurePath) -> str:
    """Return the end of the name that tells the kind of file: `.jsonl` or `.jsonl.gz`."""
    name = path.name.lower()
    inner = PurePath(name.removesuffix(".gz")).suffix
    return inner + ".gz" if name.endswith(".gz") else inner


def _absent(name: str, path: Path) -> RecipeError:
    if path.is_dir():
        return RecipeError(f"{name}: is a folder; name one file in it ({', '.join(READERS)})")
    siblings = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    return RecipeError(f"{name}: no such file (seen from {Path.cwd()}).{did_you_mean(path.name, siblings)}")


def _bytes(path: Path) -> bytes:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.name.lower().endswith(".gz") else data).removeprefix(b"\xef\xbb\xbf")


def _decoded(name: str, data: bytes, first_line: int) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise RecipeError(f"{name}, line {line}: not UTF-8 text ({error.reason})") from None


def _json(name: str, data: bytes, first_line: int) -> Any:
    """Return the parsed text, which starts at line `first_line` of the file."""
    text = _decoded(name, data, first_line)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise RecipeError(f"{name}, line {line}: not JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{name}, line {first_line}: not readable JSON: {error}") from None


def _is_json_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RecipeError(
            f'{place}: a row is a JSON object such as {{"question": "...", "answer": "..."}}, not {value!r:.40}'
        )
    return value
