"""From checks to one score: gates, the weighted sum of the parts, and what happens when a part cannot judge."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from earned.errors import RecipeError, VerifierError, did_you_mean
from earned.recipe import RewardPart, Rewards
from earned.rewards.checks import CONTROLS, PENALTIES, make_check
from earned.rewards.user_reward import Resources, UserReward
from earned.rewards.verdict import Check, Verdict, broken, failure
from earned.vocabulary import Attempt, PartScore, Rule, Score, ScoreStatus

DECIMALS = 12
"""Of the sum of several parts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One named part of the reward."""

    name: str
    weight: float
    check: Check
    gate: str | None = None
    """The part that has to pay, more than 0, for this one to count."""
    penalty: bool = False
    """True when the check gives at most 0."""

    @property
    def maximum(self) -> float:
        """The most it can add when a check gives 0 to 1, and a penalty -1 to 0."""
        return max(0.0, -self.weight if self.penalty else self.weight)


@dataclass(frozen=True, slots=True)
class Rewarder:
    """The reward of a run."""

    parts: tuple[Part, ...]

    @classmethod
    def from_recipe(cls, rewards: Rewards, resources: Resources | None = None) -> "Rewarder":
        """Return the reward that `[rewards]` describes; functions of the user's own need the resources.

        Raises:
            RecipeError: for an unknown check or option, a function that cannot be used, a gate that there is not or
                that never opens, or a control that `rewards.allow` does not name.
        """
        _require_pay(rewards.parts)
        _require_gates(rewards.parts)
        parts = tuple(
            Part(
                name=name,
                weight=part.weight,
                check=make_check(f"rewards.{name}", part, resources),
                gate=part.gate,
                penalty=part.check in PENALTIES,
            )
            for name, part in rewards.parts.items()
        )
        _require_allowed(rewards)
        return cls(parts)

    @property
    def maximum(self) -> float:
        """The most an attempt can earn, all gates open, when every check gives at most 1 and a penalty at most 0."""
        return math.fsum(part.maximum for part in self.parts)

    @property
    def file_hashes(self) -> dict[str, str]:
        """SHA-256 of the user's file by the name of the part that calls it."""
        checks = {part.name: part.check for part in self.parts}
        return {n: check.sha256 for n, check in checks.items() if isinstance(check, UserReward) and check.sha256}

    def score_all(self, attempts: Mapping[str, Attempt]) -> dict[str, Score]:
        """Return a score for every attempt under the attempt's own id; the parts judge side by side.

        A part pays 0 where its gate pays nothing or less; so does a penalty, but for a truncated attempt, which would
        be better off by failing the gate. The part's value in the score is what it pays.

        A part that does not apply adds nothing, and the weights of the others stay as they are. One part that cannot
        judge, raises, or gives no finite number leaves the whole score unscored: the failure is ours, so it is neither
        paid nor punished. So does a completion to which no part applies.

        Raises:
            VerifierError: a check says that the run cannot go on.
        """
        with ThreadPoolExecutor(len(self.parts)) as threads:
            judged = list(threads.map(lambda part: _part_scores(part, attempts), self.parts))
        gates = {part.name: part.gate for part in self.parts}
        return {
            name: _sum(_gated(gates, attempt, {scores[name].name: scores[name] for scores in judged}))
            for name, attempt in attempts.items()
        }


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
    scores = {name: _part_score(part, verdicts.get(name, silence)) for name in attempts}
    values = [score.value for score in scores.values() if score.value is not None]
    return {name: _blamed(score, values) for name, score in scores.items()}


def _blamed(score: PartScore, values: Sequence[float]) -> PartScore:
    """Return the worst of the step's values, at most 0, for what hangs or ends a check that judges others.

    A completion must not be better off for that than for a wrong answer; where nothing is judged the check is to blame.
    """
    if score.value is not None or score.rule not in (Rule.TIMED_OUT, Rule.UNREADABLE) or not values:
        return score
    return replace(score, value=max(0.0, *values) if score.weight < 0 else min(0.0, *values))


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


def _gated(gates: Mapping[str, str | None], attempt: Attempt, said: Mapping[str, PartScore]) -> list[PartScore]:
    """Return what the parts pay for one attempt."""

    def paid(name: str) -> PartScore:
        score, gate = said[name], gates[name]
        if gate is None or score.value is None or (attempt.truncated and score.weight * score.value < 0):
            return score
        if (paid(gate).value or 0.0) > 0:
            return score
        return replace(score, value=0.0, explanation=f"{score.explanation}; nothing, since {gate} pays nothing")

    return [paid(name) for name in gates]


def _sum(parts: Sequence[PartScore]) -> Score:
    applying = [part for part in parts if part.applies]
    earned = [part.weight * part.value for part in applying if part.value is not None]
    if not earned or len(earned) < len(applying):
        return Score(value=None, status=ScoreStatus.UNSCORED, parts=tuple(parts))
    # Two sums that differ in the last bit alone would be as far apart as right and wrong after the division by the
    # deviation of their group.
    value = earned[0] if len(earned) == 1 else round(math.fsum(earned), DECIMALS)
    return Score(value=value, status=ScoreStatus.SCORED, parts=tuple(parts))


def deciding_checks(parts: Mapping[str, RewardPart]) -> set[str]:
    """Return the checks that the reward depends on: those of the parts with any weight, and of their gates."""
    waiting = [name for name, part in parts.items() if part.weight != 0]
    found: set[str] = set()
    while waiting:
        part = parts[waiting.pop()]
        found.add(part.check)
        waiting += [part.gate] if part.gate is not None else []
    return found


def _require_pay(parts: Mapping[str, RewardPart]) -> None:
    """Refuse a negative weight for a check of form, which gives what is cut off its lowest value."""
    for name, part in parts.items():
        if part.weight < 0 and CONTROLS.get(part.check) == "form_reward":
            raise RecipeError(
                f"rewards.{name}.weight: {part.weight:g} would pay for what {part.check!r} is against, and most for "
                "being cut off. Use a positive weight; penalties have negative values already"
            )


def _require_gates(parts: Mapping[str, RewardPart]) -> None:
    """Refuse a gate that there is not, that never opens, or that waits for the part it is to open."""
    for name in parts:
        way = [name]
        while (gate := parts[way[-1]].gate) is not None:
            where = f"rewards.{way[-1]}.gate"
            if gate not in parts:
                known = ", ".join(repr(other) for other in parts if other != way[-1]) or "none"
                raise RecipeError(
                    f"{where}: there is no part {gate!r}, others are: {known}.{did_you_mean(gate, [*parts])}"
                )
            if parts[gate].check in PENALTIES:
                raise RecipeError(f"{where}: {gate!r} is a penalty, which never pays, so {way[-1]!r} would not either")
            if gate in way:
                raise RecipeError(f"{where}: {' waits for '.join([*way, gate])}, so none of them could ever pay")
            way.append(gate)


def _require_allowed(rewards: Rewards) -> None:
    """Refuse a reward that cannot teach right answers, unless the recipe says that it is meant."""
    weighted = deciding_checks(rewards.parts)
    if not weighted <= set(CONTROLS):
        return
    needed = sorted({CONTROLS[check] for check in weighted}) if weighted else ["constant_reward"]
    missing = [word for word in needed if word not in rewards.allow]
    if missing:
        words = ", ".join(f'"{word}"' for word in needed)
        what = "no part has any weight" if not weighted else f"the only checks are {', '.join(sorted(weighted))}"
        raise RecipeError(
            f"rewards.allow: {what}: such a reward is a control and teaches no right answers. Add a check that "
            f"compares with the right answer, or say that it is meant: rewards.allow = [{words}]"
        )
