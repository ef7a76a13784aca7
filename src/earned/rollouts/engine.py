"""What a sampling engine must do. Every engine passes the same tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from earned.policy.load import Policy
from earned.vocabulary import Completion, Prompt


@dataclass(frozen=True, kw_only=True, slots=True)
class Draw:
    """Addresses the random numbers of one call: sample `attempt` of a problem gets those of (seed, step, purpose)."""

    seed: int
    step: int
    purpose: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingSettings:
    """How completions are drawn."""

    group_size: int
    """Completions per prompt, G."""
    temperature: float
    """Logits are divided by it; 0 takes the most likely token, whose log-probability is then that at temperature 1."""
    max_new_tokens: int


class Engine(Protocol):
    """Three methods, no more."""

    def generate(
        self, prompts: Sequence[Prompt], settings: SamplingSettings, draw: Draw
    ) -> list[tuple[Completion, ...]]:
        """Return G completions for every prompt, in order. The same call gives the same ids."""
        ...

    def load_weights(self, policy: Policy, version: int) -> None:
        """Sample from these weights from now on, and stamp completions with `version`."""
        ...

    def close(self) -> None:
        """Free what the engine holds."""
        ...
