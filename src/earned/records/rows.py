"""The rows of a run's database as records: what the writer takes and the reader gives back.

Field names are the column names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from earned.vocabulary import PartScore, ScoreStatus, StopReason

Phase = Literal["train", "validation", "held_out", "watched", "audit"]
"""Why a completion was sampled; `watched` are the few problems shown changing from evaluation to evaluation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepSeconds:
    """Wall-clock seconds of one step by what they were spent on."""

    sample: float = 0.0
    score: float = 0.0
    update: float = 0.0
    evaluate: float = 0.0
    record: float = 0.0
    checkpoint: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRow:
    """One finished step of training."""

    step: int
    policy_version: int
    """Number of updates the weights have seen at the end of the step."""
    seconds: StepSeconds


@dataclass(frozen=True, kw_only=True, slots=True)
class CompletionRow:
    """One completion with its score."""

    id: str
    """Of its rollout: `phase/step/problem/attempt`."""
    step: int
    phase: Phase
    problem_id: str
    attempt: int
    policy_version: int
    text: str
    tokens: int
    """Length, end-of-sequence included."""
    stop_reason: StopReason
    truncated: bool
    status: ScoreStatus
    reward: float | None
    """None exactly when status is unscored."""
    parts: tuple[PartScore, ...]
    extracted: str | None
    explanation: str
    advantage: float | None
    """None where nothing is trained on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenRow:
    """Per-token numbers of one completion, each [tokens]; None where the completion was not trained on."""

    completion_id: str
    ids: tuple[int, ...]
    sampler_logprobs: tuple[float, ...]
    old_logprobs: tuple[float, ...] | None
    entropy: tuple[float, ...] | None
    ratio: tuple[float, ...] | None
    clipped: tuple[bool, ...] | None
    after_logprobs: tuple[float, ...] | None
    """After the update; kept for one group a step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EventRow:
    """Something that happened once, such as a skipped update."""

    step: int
    kind: str
    text: str
    data: Mapping[str, object] = field(default_factory=dict)
    """What the sentence is based on; anything JSON can hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FindingRow:
    """What one check of the audit found."""

    step: int
    source: str
    """What was looked at."""
    check: str
    """Name of the check."""
    result: str
    number: float | None = None
    low: float | None = None
    high: float | None = None
    """95 % interval of the number."""
    text: str
    change: str
    """What to change about it."""
