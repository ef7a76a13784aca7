"""From checks to one score: the weighted sum of the parts, and what happens when a part cannot judge."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from earned.errors import RecipeError, VerifierError
from earned.recipe import Rewards
from earned.rewards.checks import CONTROLS, make_check
from earned.rewards.user_reward import Resources, UserReward
from earned.rewards.verdict import Check, Verdict, broken, failure
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
    def from_recipe(cls, rewards: Rewards, resources: Resources | None = None) -> "Rewarder":
        """Return the reward that `[rewards]` describes; functions of the user's own need the resources.

        Raises:
            RecipeError: for an unknown check or option, a function that cannot be used, or a control that
                `rewards.allow` does not name.
        """
        parts = tuple(
            Part(name=name, weight=part.weight, check=make_check(f"rewards.{name}", part, resources))
            for name, part in rewards.parts.items()
        )
        _require_allowed(rewards)
        return cls(parts)

    @property
    def maximum(self) -> float:
        """The sum of the positive weights: the most an attempt can earn when every check gives at most 1."""
        return math.fsum(part.weight for part in self.parts if part.weight > 0)

    @property
    def file_hashes(self) -> dict[str, str]:
        """SHA-256 of the user's file by the name of the part that calls it."""
        checks = {part.name: part.check for part in self.parts}
        return {n: check.sha256 for n, check in checks.items() if isinstance(check, UserReward) and check.sha256}

    def score_all(self, attempts: Mapping[str, Attempt]) -> dict[str, Score]:
        """Return a score for every attempt under the attempt's own id; the parts judge side by side.

        A part that does not apply adds nothing, and the weights of the others stay as they are. One part that cannot
        judge, raises, or gives no finite number leaves the whole score unscored: the failure is ours, so it is neither
        paid nor punished. So does a completion to which no part applies.

        Raises:
            VerifierError: a check says that the run cannot go on.
        """
        with ThreadPoolExecutor(len(self.parts)) as threads:
            judged = list(threads.map(lambda part: _part_scores(part, attempts), self.parts))
        return {name: _sum([scores[name] for scores in judged]) for name in attempts}


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


def _part_scores(part: Part, attempts: Mapping[str, Attempt]) -> dict[str, PartScore]:
    try:
        verdicts = part.check.judge(attempts)
    except VerifierError:
        raise
    except Exception as error:
        verdicts = dict.fromkeys(attempts, broken(error))
    silence = failure("the check said nothing about it")
    return {name: _part_score(part, verdicts.get(name, silence)) for name in attempts}


def _part_score(part: Part, verdict: Verdict) -> PartScore:
    try:
        value, explanation = verdict.value, verdict.explanation
        if value is not None and not math.isfinite(part.weight * value):
            verdict = failure(f"the check gave {value}, which is no usable number ({explanation})")
    except Exception as error:
        verdict = broken(error)
    return PartScore(
        name=part.name,
        weight=part.weight,
        value=verdict.value,
        extracted=verdict.extracted,
        explanation=verdict.explanation,
        rule=verdict.rule,
        applies=verdict.applies,
    )


def _sum(parts: Sequence[PartScore]) -> Score:
    applying = [part for part in parts if part.applies]
    earned = [part.weight * part.value for part in applying if part.value is not None]
    if not earned or len(earned) < len(applying):
        return Score(value=None, status=ScoreStatus.UNSCORED, parts=tuple(parts))
    return Score(value=math.fsum(earned), status=ScoreStatus.SCORED, parts=tuple(parts))


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
