"""From checks to one score: the weighted sum of the parts, and what happens when a part cannot judge."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from earned.errors import RecipeError, VerifierError
from earned.recipe import Rewards
from earned.rewards.checks import CONTROLS, make_check
from earned.rewards.verdict import Check
from earned.vocabulary import Attempt, PartScore, Score, ScoreStatus


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One named part of the reward."""

    name: str
    weight: float
    check: Check


@dataclass(frozen=True, slots=True)
class Rewarder:
    """The reward of a run."""

    parts: tuple[Part, ...]

    @classmethod
    def from_recipe(cls, rewards: Rewards) -> "Rewarder":
        """Return the reward that `[rewards]` describes.

        Raises:
            RecipeError: for an unknown check or option, or a control that `rewards.allow` does not name.
        """
        parts = tuple(
            Part(name=name, weight=part.weight, check=make_check(name, part)) for name, part in rewards.parts.items()
        )
        _require_allowed(rewards)
        return cls(parts)

    @property
    def maximum(self) -> float:
        """The sum of the positive weights: the most an attempt can earn when every check gives at most 1."""
        return math.fsum(part.weight for part in self.parts if part.weight > 0)

    def score(self, attempt: Attempt) -> Score:
        """Return the score of one attempt.

        One part that cannot judge, raises, or gives no finite number leaves the whole score unscored: the failure is
        ours, so it is neither paid nor punished.
        """
        parts = tuple(_part_score(part, attempt) for part in self.parts)
        earned = [part.weight * part.value for part in parts if part.value is not None]
        if len(earned) < len(parts):
            return Score(value=None, status=ScoreStatus.UNSCORED, parts=parts)
        return Score(value=math.fsum(earned), status=ScoreStatus.SCORED, parts=parts)

    def score_all(self, attempts: Mapping[str, Attempt]) -> dict[str, Score]:
        """Return a score for every attempt under the attempt's own id."""
        return {name: self.score(attempt) for name, attempt in attempts.items()}


def require_scored(scores: Mapping[str, Score], limit: float) -> None:
    """Return if at most the share `limit` of the scores is unscored (0 of 0 is none).

    Raises:
        VerifierError: otherwise, showing three of them.
    """
    unscored = {name: score for name, score in scores.items() if score.status is ScoreStatus.UNSCORED}
    if len(unscored) <= limit * len(scores):
        return
    examples = "".join(f"\n  {name}: {score.explanation}" for name, score in list(unscored.items())[:3])
    raise VerifierError(
        f"{len(unscored)} of {len(scores)} completions could not be scored, more than the allowed share {limit:g} "
        f"(rewards.max_unscored_share). Examples:{examples}"
    )


def _part_score(part: Part, attempt: Attempt) -> PartScore:
    # Whatever a check raises is the checker's failure, so every exception becomes "unscored" with its name.
    try:
        verdict = part.check(attempt)
        value, extracted, explanation = verdict.value, verdict.extracted, verdict.explanation
        if value is not None and not math.isfinite(part.weight * value):
            value, explanation = None, f"the check gave {value}, which is no usable number ({explanation})"
    except Exception as error:
        value, extracted, explanation = None, None, f"the check failed: {type(error).__name__}: {error}"
    return PartScore(name=part.name, weight=part.weight, value=value, extracted=extracted, explanation=explanation)


def _require_allowed(rewards: Rewards) -> None:
    """Refuse a reward that cannot teach anything, unless the recipe says that it is meant."""
    weighted = {part.check for part in rewards.parts.values() if part.weight != 0}
    if not weighted <= set(CONTROLS):
        return
    needed = sorted(CONTROLS[check] for check in weighted) if weighted else ["constant_reward"]
    missing = [word for word in needed if word not in rewards.allow]
    if missing:
        words = ", ".join(f'"{word}"' for word in needed)
        what = "no part has any weight" if not weighted else f"the only checks are {', '.join(sorted(weighted))}"
        raise RecipeError(
            f"rewards.allow: {what}: such a reward is a control and teaches nothing. Add a check that reads the "
            f"answer, or say that it is meant: rewards.allow = [{words}]"
        )
