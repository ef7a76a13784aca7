"""Checkpoints: an ordinary model folder plus `trainer_state/`, written aside, synced, then renamed into place.

Randomness is a function of (seed, step, ...), so weights, optimiser states and a few counters are all there is to save.
"""

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from earned.errors import RecordError
from earned.optimization.optimizer import Optimizer
from earned.policy.load import Policy, save_policy

STATE = "trainer_state"


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Where a run is; with the weights and the optimiser states, everything it needs to go on."""

    step: int = 0
    policy_version: int = 0
    """Updates the weights have seen."""
    empty_steps: int = 0
    """Steps in a row, up to now, in which no group carried signal."""


def save_checkpoint(
    folder: Path,
    policy: Policy,
    optimizer: Optimizer,
    progress: Progress,
    *,
    keep_last: int,
    keep_step: int | None = None,
    card: str | None = None,
) -> Path:
    """Write `folder/step_000120`, with `card` as its README; a half-written one is never visible.

    All but the newest `keep_last` and that of `keep_step`, the best by validation, are removed.

    Raises:
        RecordError: when the disk refuses.
    """
    final = folder / checkpoint_name(progress.step)
    aside = folder / f".{final.name}.writing"
    try:
        shutil.rmtree(aside, ignore_errors=True)
        (aside / STATE).mkdir(parents=True)
        save_policy(policy, aside)
        save_file(optimizer.state(), aside / STATE / "optimizer.safetensors")
        (aside / STATE / "progress.json").write_text(json.dumps(asdict(progress)) + "\n")
        if card is not None:
            (aside / "README.md").write_text(card, encoding="utf-8")
        for path in [*aside.rglob("*"), aside]:
            _sync(path)
        shutil.rmtree(final, ignore_errors=True)
        aside.rename(final)
        _sync(folder)
    except (OSError, SafetensorError) as error:
        raise RecordError(f"{final}: the checkpoint could not be written: {error}") from error
    for old in checkpoints(folder)[:-keep_last]:
        if keep_step is None or old.name != checkpoint_name(keep_step):
            shutil.rmtree(old)
    return final


def checkpoint_name(step: int) -> str:
    """Return the folder's name: `step_000120`."""
    return f"step_{step:06d}"


def checkpoints(folder: Path) -> list[Path]:
    """Return the finished checkpoints, oldest first."""
    return sorted(path for path in folder.glob("step_*") if (path / STATE / "progress.json").is_file())


def load_progress(checkpoint: Path, optimizer: Optimizer) -> Progress:
    """Restore the optimiser's states and return where the run was; the weights are loaded as any model folder is."""
    optimizer.load_state(load_file(checkpoint / STATE / "optimizer.safetensors"))
    return _read_progress(checkpoint)


def saved_step(folder: Path) -> int:
    """Return the step of the newest finished checkpoint, 0 where there is none."""
    saved = checkpoints(folder)
    return _read_progress(saved[-1]).step if saved else 0


def _read_progress(checkpoint: Path) -> Progress:
    return Progress(**json.loads((checkpoint / STATE / "progress.json").read_text()))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
