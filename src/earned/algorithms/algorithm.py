"""What an algorithm consists of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from earned.algorithms.parts import (
    CLIPS,
    GROUP_ADVANTAGES,
    AdvantageFunction,
    AggregationFunction,
    CorrectionFunction,
    DivergenceFunction,
    SurrogateFunction,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Critic:
    """How a value model is trained, and how it turns rewards into advantages."""

    gamma: float = 1.0
    """Discount a token."""
    gae_lambda: float = 1.0
    """Weight of later rewards against the value model's own forecast of them, a token."""
    learning_rate: float = 1e-5
    updates: int = 4
    """Optimiser steps of the value model a batch."""
    warmup_steps: int = 5
    """First steps of a run in which only the value model is trained."""
    value_clip: float | None = None
    """Farthest that a value may move in one batch and still be trained; None for no bound."""
    whiten: bool = False
    """Whether advantages are centred and divided by their deviation over the batch, which can flip signs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Algorithm:
    """A complete choice of parts and their numbers."""

    name: str
    advantage: AdvantageFunction
    """From rewards to advantages; with a critic, of which its forecasts are still taken off."""
    surrogate: SurrogateFunction
    aggregation: AggregationFunction
    divergence: DivergenceFunction | None = None
    """From the reference; None for none."""
    clip_low: float = 0.2
    """How far a token is followed when it is pushed down; in the unit that the surrogate names, if it reads it."""
    clip_high: float = 0.2
    """How far a token is followed when it is pushed up, likewise."""
    divergence_weight: float = 0.0
    """Reward units per nat."""
    divergence_in: Literal["loss", "reward"] = "loss"
    """Whether the divergence is differentiated, or taken off the reward of its token."""
    divergence_target: float | None = None
    """Nats a completion that the weight is steered towards after every step; None leaves the weight as it is."""
    sampler_correction: CorrectionFunction | None = None
    """How a token is weighed whose trainer and sampler disagree; None for no correction."""
    sampler_correction_cap: float = 2.0
    """Most that a token or completion weighs for being likelier in the trainer than in the sampler."""
    epochs: int = 1
    """Passes over a batch."""
    mini_batches: int = 1
    """Parts that a batch is cut into in each pass; every part is one update."""
    refill_rounds: int = 0
    """Times that groups without signal are replaced by attempts at other problems before the update."""
    mask_truncated: bool = False
    """Whether completions that the length limit ended are left out of the loss; they stay in the baseline."""
    missing_eos_penalty: float = 0.0
    """Taken off the reward of a completion that the length limit ended."""
    critic: Critic | None = None
    """The learned value model that is the baseline of every token; None for a baseline from the siblings or none."""
    source: str
    summary: str

    @property
    def clips(self) -> Mapping[str, float]:
        """The clips by name, those that the surrogate reads."""
        return {field: getattr(self, field) for field in CLIPS[self.surrogate]}

    @property
    def group_relative(self) -> bool:
        """True when an attempt is compared with its siblings: G >= 2, and a group of equal rewards gives exactly 0."""
        return self.advantage in GROUP_ADVANTAGES
