"""What a sampling engine must do. Every engine passes the same tests."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from earned.errors import RecipeError
from earned.vocabulary import Completion, Prompt

if TYPE_CHECKING:
    # Settings are checked before torch is loaded.
    from earned.policy.load import Policy


@dataclass(frozen=True, kw_only=True, slots=True)
class Draw:
    """Addresses the random numbers of one call: sample `attempt` of a problem gets those of (seed, step, purpose)."""

    seed: int
    step: int
    purpose: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingSettings:
    """How completions are drawn; raises RecipeError for a number that cannot be.

    With `top_k` or `top_p` the sampler's log-probabilities are those of what is left. Training uses neither: what is
    trained on is the whole distribution.

    >>> SamplingSettings(group_size=8, temperature=1.0, max_new_tokens=96, top_p=1.5)
    Traceback (most recent call last):
    earned.errors.RecipeError: top_p: 1.5 cannot be; give a share above 0 and at most 1
    """

    group_size: int
    """Completions per prompt, G."""
    temperature: float
    """Logits are divided by it; 0 takes the most likely token, whose log-probability is then that at temperature 1."""
    max_new_tokens: int
    top_p: float = 1.0
    """Only the fewest most likely tokens that together have this probability are drawn; 1 leaves out none."""
    top_k: int = 0
    """Only so many most likely tokens are drawn, chosen before `top_p`; 0 leaves out none."""

    def __post_init__(self) -> None:
        for name, fits, allowed in (
            ("group_size", self.group_size >= 1, "1 or more attempts"),
            ("temperature", 0 <= self.temperature < math.inf, "0 or more, 1 is usual"),
            ("max_new_tokens", self.max_new_tokens >= 1, "1 or more tokens"),
            ("top_p", 0 < self.top_p <= 1, "a share above 0 and at most 1"),
            ("top_k", self.top_k >= 0, "a number of tokens, or 0 for all"),
        ):
            if not fits:
                raise RecipeError(f"{name}: {getattr(self, name)!r} cannot be; give {allowed}")


class Engine(Protocol):
    """Three methods, no more."""

    def generate(
        self, prompts: Sequence[Prompt], settings: SamplingSettings, draw: Draw
    ) -> list[tuple[Completion, ...]]:
        """Return G completions for every prompt, in order. The same call gives the same ids."""
        ...

    def load_weights(self, policy: "Policy", version: int) -> None:
        """Sample from these weights from now on, and stamp completions with `version`."""
        ...

    def close(self) -> None:
        """Free what the engine holds."""
        ...
