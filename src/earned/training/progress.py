"""Where a run is: with the weights and the optimiser states, everything it needs to go on."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter

from earned.problems.curriculum import CurriculumState
from earned.vocabulary import Prompt, Rollout, RolloutGroup

ROLLOUTS = TypeAdapter(tuple[Rollout, ...])


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """The scored attempts of one step."""

    step: int
    groups: tuple[RolloutGroup, ...]
    """What is trained on."""
    discarded: tuple[RolloutGroup, ...] = ()
    """Attempts at problems without signal, in whose place others were tried; kept for the record."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Counters and whatever else a run carries from step to step."""

    step: int = 0
    policy_version: int = 0
    """Updates the weights have seen."""
    empty_steps: int = 0
    """Steps in a row, up to now, in which nothing could be learned."""
    divergence_weight: float = 0.0
    """Reward units a nat; changes only where the algorithm has a target for the divergence."""
    curriculum: CurriculumState = field(default_factory=CurriculumState)
    """How every problem went so far; empty without a curriculum."""
    pending: tuple[Batch, ...] = ()
    """Batches sampled ahead of the update that trains on them, in order; empty without a policy lag."""


def to_json(progress: Progress) -> str:
    """Return the progress as one line; prompts are named by their problem's id, numbers come back to the bit."""
    pending = [
        {"step": batch.step, "groups": _groups(batch.groups), "discarded": _groups(batch.discarded)}
        for batch in progress.pending
    ]
    counters = {name: getattr(progress, name) for name in Progress.__slots__}
    return json.dumps(counters | {"pending": pending, "curriculum": progress.curriculum.to_json()}) + "\n"


def from_json(text: str, prompts: Mapping[str, Prompt]) -> Progress:
    """Return what `to_json` wrote; `prompts` are those of the training problems, by the problem's id."""
    stored = json.loads(text)
    pending = tuple(
        Batch(
            step=batch["step"],
            groups=_read_groups(batch["groups"], prompts),
            discarded=_read_groups(batch["discarded"], prompts),
        )
        for batch in stored.pop("pending")
    )
    return Progress(**stored | {"curriculum": CurriculumState.from_json(stored["curriculum"])}, pending=pending)


def _groups(groups: tuple[RolloutGroup, ...]) -> list[dict[str, Any]]:
    return [
        {"problem": group.prompt.problem.id, "rollouts": [asdict(rollout) for rollout in group.rollouts]}
        for group in groups
    ]


def _read_groups(stored: list[dict[str, Any]], prompts: Mapping[str, Prompt]) -> tuple[RolloutGroup, ...]:
    return tuple(
        RolloutGroup(prompt=prompts[group["problem"]], rollouts=ROLLOUTS.validate_python(group["rollouts"]))
        for group in stored
    )
