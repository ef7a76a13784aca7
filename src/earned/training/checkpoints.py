"""Checkpoints: an ordinary model folder plus `trainer_state/`, written aside, synced, then renamed into place.

Randomness is a function of (seed, step, ...), so weights, optimiser states and the progress are all there is to save.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from earned.errors import RecordError
from earned.optimization.optimizer import Optimizer
from earned.policy.load import Policy, save_policy
from earned.training.critic import Critic
from earned.training.progress import Progress, from_json, to_json
from earned.vocabulary import Prompt

STATE = "trainer_state"


@dataclass(frozen=True, kw_only=True)
class Learners:
    """What training changes."""

    policy: Policy
    optimizer: Optimizer
    critic: Critic | None


def save_checkpoint(
    folder: Path,
    learners: Learners,
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
        save_policy(learners.policy, aside)
        save_file(learners.optimizer.state(), aside / STATE / "optimizer.safetensors")
        if learners.critic is not None:
            learners.critic.model.save(aside / STATE / "critic.safetensors")
            save_file(learners.critic.optimizer.state(), aside / STATE / "critic_optimizer.safetensors")
        (aside / STATE / "progress.json").write_text(to_json(progress), encoding="utf-8")
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


def load_progress(checkpoint: Path, learners: Learners, prompts: Mapping[str, Prompt]) -> Progress:
    """Restore the states of the optimisers and the value model, and return where the run was.

    The policy's weights are loaded as any model folder is. `prompts` are those of the training problems, by their id.
    """
    state = checkpoint / STATE
    learners.optimizer.load_state(load_file(state / "optimizer.safetensors"))
    if learners.critic is not None:
        learners.critic.model.restore(state / "critic.safetensors")
        learners.critic.optimizer.load_state(load_file(state / "critic_optimizer.safetensors"))
    return from_json((state / "progress.json").read_text(encoding="utf-8"), prompts)


def saved_step(folder: Path) -> int:
    """Return the step of the newest finished checkpoint, 0 where there is none."""
    saved = checkpoints(folder)
    return int(json.loads((saved[-1] / STATE / "progress.json").read_text(encoding="utf-8"))["step"]) if saved else 0


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
