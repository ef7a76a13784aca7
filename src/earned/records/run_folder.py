"""Where a run keeps its record, recipe, environment and checkpoints."""

import errno
import os
import shutil
from collections.abc import Iterator
from datetime import datetime
from itertools import count
from pathlib import Path

from earned.errors import RecordError


def run_database(folder: Path) -> Path:
    """Return the path of the run's record inside its folder."""
    return folder / "run.sqlite"


def run_of_checkpoint(folder: Path) -> Path | None:
    """Return the run that saved a model folder as `RUN/checkpoints/step_000120`, or None where no run did."""
    folder = folder.resolve()
    run = folder.parent.parent
    ours = folder.is_dir() and folder.parent.name == "checkpoints" and run_database(run).is_file()
    return run if ours else None


def require_free(root: Path, name: str | None, *, overwrite: bool) -> None:
    """Raise RecordError for what `create_run_folder` would refuse, before compute is spent; nothing is touched."""
    nearest = next(path for path in (root, *root.parents) if path.exists())
    if not nearest.is_dir():
        raise RecordError(f"{root}: a run folder cannot be made here: {os.strerror(errno.ENOTDIR)}")
    if name is None:
        return
    if name in ("", "..") or Path(name).name != name:
        raise RecordError(f"run name {name!r}: give a plain name; the folder of all runs is {root}")
    folder = root / name
    if not _holds_something(folder):
        return
    if not overwrite:
        raise RecordError(
            f"{folder}: this run exists already; --resume continues it, --overwrite deletes it and starts again"
        )
    if not run_database(folder).is_file():
        raise RecordError(f"{folder}: --overwrite deletes only runs, and there is no run.sqlite in this folder")


def create_run_folder(root: Path, name: str | None, recipe_name: str, *, overwrite: bool) -> Path:
    """Return a new, empty folder `root/name`, or `root/RECIPE-YYYYmmdd-HHMMSS` when no name is given.

    Raises RecordError when the name is taken by a folder with something in it and `overwrite` is not set, when what
    would be overwritten is not a run, and when the folder cannot be made.
    """
    require_free(root, name, overwrite=overwrite)
    try:
        root.mkdir(parents=True, exist_ok=True)
        if name is None:
            return _create_first_free(root, _automatic_names(recipe_name))
        folder = root / name
        if _holds_something(folder):
            shutil.rmtree(folder)
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise RecordError(f"{root}: a run folder cannot be made here: {error.strerror or error}") from error
    return folder


def automatic_name(recipe_name: str) -> str:
    """Return `RECIPE-YYYYmmdd-HHMMSS`, the name of a run that was given none."""
    return f"{recipe_name}-{datetime.now():%Y%m%d-%H%M%S}"


def _automatic_names(recipe_name: str) -> Iterator[str]:
    name = automatic_name(recipe_name)
    yield name
    for number in count(2):
        yield f"{name}-{number}"


def _create_first_free(root: Path, names: Iterator[str]) -> Path:
    """Try rather than look first, so that two runs started in the same second get two folders."""
    for name in names:
        try:
            (root / name).mkdir()
        except FileExistsError:
            continue
        return root / name
    raise AssertionError("names never end")


def _holds_something(folder: Path) -> bool:
    try:
        return folder.is_dir() and any(folder.iterdir())
    except OSError as error:
        raise RecordError(f"{folder}: cannot be read: {error.strerror or error}") from error
