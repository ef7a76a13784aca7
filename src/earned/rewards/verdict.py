"""What a check is asked and what it answers."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from earned.recipe_file import Section
from earned.vocabulary import Attempt, Rule


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What one check says about an attempt."""

    value: float | None
    """0 wrong, 1 right for the built-in checks; None when the check could not judge (unscored) or does not apply."""
    extracted: str | None
    """The answer that was read, None when none was found."""
    explanation: str
    """The rule that decided, in words."""
    rule: Rule = Rule.MEASURED
    applies: bool = True
    """False when the attempt is none of the check's business: the part leaves the sum, and nothing has failed."""


class Check(Protocol):
    """Judges the attempts of a step."""

    def judge(self, attempts: Mapping[str, Attempt]) -> Mapping[str, Verdict]:
        """Return a verdict for every attempt under its id; what it cannot judge has the value None."""
        ...


class BuiltInCheck(Section):
    """A check that is its own options: the fields are the keys of `[rewards.NAME] options`."""

    @abstractmethod
    def __call__(self, attempt: Attempt) -> Verdict:
        """Judge one attempt."""


@dataclass(frozen=True, slots=True)
class PerAttempt:
    """The check that a function of a single attempt makes; where it raises, that attempt alone is not judged."""

    function: Callable[[Attempt], Verdict]

    def judge(self, attempts: Mapping[str, Attempt]) -> dict[str, Verdict]:
        """Judge one attempt after the other."""
        return {name: self._verdict(attempt) for name, attempt in attempts.items()}

    def _verdict(self, attempt: Attempt) -> Verdict:
        try:
            return self.function(attempt)
        except Exception as error:
            return broken(error)


def no_answer(reason: str) -> Verdict:
    """Return the verdict on a completion that gives no answer: it is wrong."""
    return Verdict(value=0.0, extracted=None, explanation=reason, rule=Rule.NO_ANSWER)


def unreadable_gold(reason: str) -> Verdict:
    """Return the verdict where the problem holds nothing to compare with: unscored."""
    return Verdict(value=None, extracted=None, explanation=reason, rule=Rule.UNREADABLE_GOLD)


def failure(explanation: str) -> Verdict:
    """Return the verdict of a check that could not judge: the failure is ours, whatever the attempt says."""
    return Verdict(value=None, extracted=None, explanation=explanation, rule=Rule.FAILED)


def broken(error: Exception) -> Verdict:
    """Return the verdict of a check that raised."""
    return failure(f"the check failed: {type(error).__name__}: {error}")
