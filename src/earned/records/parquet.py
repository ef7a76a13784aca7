"""Records of one kind as a Parquet file, for the tools that read tables."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args, get_type_hints

from earned.errors import RecipeError, RecordError
from earned.problems.files import NEEDS_DATA_EXTRA
from earned.records.schema import storable

ENDING = ".parquet"


def require_parquet(path: Path) -> None:
    """Return if a new Parquet file can be written to `path`, so that nothing is computed for a file that cannot be.

    Raises:
        RecipeError: another ending, something there already, no such folder or none to write in, or pyarrow is absent.
    """
    if path.suffix != ENDING:
        raise RecipeError(f"{path}: tables are written as Parquet, so the name has to end in {ENDING}")
    if path.exists():
        raise RecipeError(f"{path}: exists already; choose another name for the table")
    if not path.parent.is_dir():
        raise RecipeError(f"{path}: there is no folder {path.parent} to write the table into")
    if not os.access(path.parent, os.W_OK):
        raise RecipeError(f"{path}: the folder {path.parent} cannot be written into")
    _pyarrow(path)


def write_parquet(path: Path, kind: type[Any], rows: Sequence[Any]) -> None:
    """Write a row for each record; columns are the fields of `kind`, a dataclass of texts, counts, numbers or None.

    Raises:
        RecipeError: pyarrow is absent.
        RecordError: the disk refuses.
    """
    pyarrow = _pyarrow(path)
    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    fields = [(name, types[next(iter(get_args(hint)), hint)]) for name, hint in get_type_hints(kind).items()]
    cells = [{name: storable(value) for name, value in asdict(row).items()} for row in rows]
    try:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(cells, schema=pyarrow.schema(fields)), path)
    except OSError as error:
        raise RecordError(f"{path}: the table cannot be written: {error.strerror or error}") from error


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise RecipeError(f"{path}: writing Parquet needs pyarrow, which {NEEDS_DATA_EXTRA}") from None
    return pyarrow
