"""Measures a check on labelled answers: what it pays wrongly, what it refuses wrongly, and where it takes too long."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from earned.evaluation.per_problem import RIGHT
from earned.evaluation.statistics import Interval, wilson_interval
from earned.problems.files import Table, read_file
from earned.problems.golds import plain_text
from earned.recipe import RewardPart
from earned.recipe_file import PositiveFloat, validate
from earned.rewards.checks import make_check
from earned.rewards.compose import Part, Rewarder
from earned.rewards.user_reward import Resources
from earned.sandbox.workers import WorkerPool
from earned.vocabulary import Attempt, PartScore, Problem, Rule, Split

WHERE = "verify"
WARM_UP = r"\boxed{x}"
"""The place of the checker in error messages, as a part of a reward has one in the recipe."""


class Case(BaseModel):
    """One labelled answer: a row of the file. All further keys are columns of the problem, such as `numbers`."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    __pydantic_extra__: dict[str, Any]  # pyright: ignore[reportIncompatibleVariableOverride]

    id: str
    gold: str | int | float | None = None
    response: str | None
    """What the model wrote; None for nothing at all, which is judged as an empty text."""
    accept: bool
    """Whether the answer has to be paid."""
    contested: bool = False
    """Both verdicts have defenders: reported apart, and left out of the rates."""
    max_seconds: PositiveFloat | None = None
    """Within which a verdict has to be there, wall clock."""
    prompt: str = ""
    """What the model was shown: never graded, but an answer may only repeat it."""
    truncated: bool = False
    """True when the length limit ended the response."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedCase:
    """A case with what the check said about it."""

    case: Case
    verdict: PartScore
    seconds: float
    """Wall clock of this verdict alone."""

    @property
    def accepted(self) -> bool:
        """Whether the answer was paid in full; one that could not be judged was not."""
        return self.verdict.value is not None and self.verdict.value >= RIGHT

    @property
    def wrong(self) -> bool:
        """Whether the verdict is not the label's; never so where that is contested."""
        return self.accepted is not self.case.accept and not self.case.contested

    @property
    def timed_out(self) -> bool:
        """Whether it took longer than `max_seconds`; without one, whether the check itself gave up for its time.

        A check that gives up within `max_seconds`, and so refuses the answer, has done what it should.
        """
        if self.case.max_seconds is None:
            return self.verdict.rule is Rule.TIMED_OUT
        return self.seconds > self.case.max_seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """What came of all cases, in the order of the file."""

    checker: str
    judged: tuple[JudgedCase, ...]

    @property
    def false_accepts(self) -> tuple[JudgedCase, ...]:
        """Wrong answers that were paid."""
        return tuple(one for one in self.judged if one.wrong and one.accepted)

    @property
    def false_rejects(self) -> tuple[JudgedCase, ...]:
        """Right answers that were not paid, those that could not be judged among them."""
        return tuple(one for one in self.judged if one.wrong and not one.accepted)

    @property
    def contested(self) -> tuple[JudgedCase, ...]:
        """The contested cases, whatever came of them."""
        return tuple(one for one in self.judged if one.case.contested)

    @property
    def timeouts(self) -> tuple[JudgedCase, ...]:
        """Cases that took too long, contested ones too."""
        return tuple(one for one in self.judged if one.timed_out)

    @property
    def unscored(self) -> tuple[JudgedCase, ...]:
        """Cases that the check could not judge, contested ones too; where the label is "accept" also a false reject."""
        return tuple(one for one in self.judged if one.verdict.value is None)

    @property
    def seconds(self) -> float:
        """Wall clock of all verdicts; starting processes and loading files is not in it."""
        return math.fsum(one.seconds for one in self.judged)

    @property
    def false_accept_rate(self) -> Interval:
        """Of the uncontested wrong answers; NaN where there are none."""
        return _rate(len(self.false_accepts), self._labelled(accept=False))

    @property
    def false_reject_rate(self) -> Interval:
        """Of the uncontested right answers; NaN where there are none."""
        return _rate(len(self.false_rejects), self._labelled(accept=True))

    @property
    def passed(self) -> bool:
        """Whether there were cases, no verdict was wrong or late, and the check itself never failed."""
        failed = any(one.verdict.rule is Rule.FAILED and not one.case.contested for one in self.judged)
        return bool(self.judged) and not (self.false_accepts or self.false_rejects or self.timeouts or failed)

    def _labelled(self, *, accept: bool) -> int:
        return sum(one.case.accept is accept and not one.case.contested for one in self.judged)


def verify(checker: str, cases: str | Path, options: Mapping[str, object] | None = None) -> Verification:
    """Return the verdicts of a check on a file of labelled answers, each judged alone and timed.

    Args:
        checker: A built-in check, or a function of the user's, `"FILE.py:function"`.
        cases: One JSON object a line: see `Case`.
        options: Of the check.

    Raises:
        RecipeError: the check or an option is unknown, or the file or a row of it cannot be read.
    """
    found = read_cases(str(cases))
    part = RewardPart(check=checker, options=dict(options or {}))
    columns = tuple(dict.fromkeys(column for case in found for column in case.__pydantic_extra__))
    with WorkerPool(1) as pool:
        check = make_check(WHERE, part, Resources(pool=pool, columns=columns))
        rewarder = Rewarder((Part(name=checker, weight=1.0, check=check),))
        return Verification(checker=checker, judged=tuple(_judged(rewarder, found)))


def read_cases(name: str) -> tuple[Case, ...]:
    """Return the cases of a file, which may be empty.

    Raises:
        RecipeError: for a file or a row that cannot be read, or an id that occurs twice; it names the line.
    """
    path = Path(name)
    if path.is_file() and not path.read_bytes().strip():
        return ()
    table = read_file(name)
    cases = tuple(validate(Case, row.columns, f"{name}, {table.unit} {row.number}") for row in table.rows)
    _require_different_ids(table, cases)
    return cases


def _require_different_ids(table: Table, cases: tuple[Case, ...]) -> None:
    seen: set[str] = set()
    for row, case in zip(table.rows, cases, strict=True):
        if case.id in seen:
            raise table.fault(row, f"the id {case.id!r} occurs twice")
        seen.add(case.id)


def _judged(rewarder: Rewarder, cases: tuple[Case, ...]) -> Iterator[JudgedCase]:
    ready = False
    for case in cases:
        attempt = _attempt(case)
        if not ready:
            # A process has to start and load its file before the clock does, which plain numbers do not need.
            _verdict(rewarder, _attempt(case.model_copy(update={"response": WARM_UP})))
        start = time.perf_counter()
        verdict = _verdict(rewarder, attempt)
        yield JudgedCase(case=case, verdict=verdict, seconds=time.perf_counter() - start)
        ready = verdict.rule not in (Rule.TIMED_OUT, Rule.FAILED)


def _verdict(rewarder: Rewarder, attempt: Attempt) -> PartScore:
    return rewarder.score_all({attempt.rollout_id: attempt})[attempt.rollout_id].parts[0]


def _attempt(case: Case) -> Attempt:
    problem = Problem(
        id=case.id,
        prompt=case.prompt,
        gold=None if case.gold is None else plain_text(case.gold),
        source=WHERE,
        split=Split.HELD_OUT,
        columns=case.__pydantic_extra__,
    )
    return Attempt(
        problem=problem,
        text=case.response or "",
        truncated=case.truncated,
        seed=0,
        step=0,
        rollout_id=f"{WHERE}/{case.id}",
    )


def _rate(count: int, size: int) -> Interval:
    return wilson_interval(count / size, size) if size else Interval(math.nan, math.nan, math.nan)
