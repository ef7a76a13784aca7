"""What a check is asked and what it answers."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from earned.recipe import Section
from earned.vocabulary import Attempt


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What one check says about an attempt."""

    value: float | None
    """0 wrong, 1 right for the built-in checks; None when the check could not judge (unscored)."""
    extracted: str | None
    """The answer that was read, None when none was found."""
    explanation: str
    """The rule that decided, in words."""


Check = Callable[[Attempt], Verdict]
"""A pure function of the attempt. It may raise: that leaves the attempt unscored, never wrong."""


class BuiltInCheck(Section):
    """A check that is its own options: the fields are the keys of `[rewards.NAME] options`."""

    @abstractmethod
    def __call__(self, attempt: Attempt) -> Verdict:
        """Judge one attempt."""
