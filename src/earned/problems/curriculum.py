"""Which problems a step trains on, by how often the policy got each of them right: a curriculum by measured pass rate.

What is known of a problem is a tally, and its standing follows from the tally. The state changes only by `updated`, and
`chosen` is a function of (seed, step, state): with the state saved in its checkpoints, a run resumes exactly.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum

import numpy as np

from earned.errors import RecordError
from earned.randomness import generator
from earned.recipe import Curriculum
from earned.vocabulary import Problem

KEPT = 0.5
"""What is left of the weight of earlier attempts whenever a problem is measured again: the policy has changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """The attempts at one problem so far. Only attempts that could be scored are counted."""

    attempts: int = 0
    right: int = 0
    recent_attempts: float = 0.0
    """Attempts by weight: those of the last time it was measured count 1, of the time before that 1/2, then 1/4."""
    recent_right: float = 0.0
    step: int
    """When it was last tried, whether or not anything could be scored then."""

    @property
    def rate(self) -> float | None:
        """The pass rate, of which half or more comes from the last time; None before anything was scored."""
        return self.recent_right / self.recent_attempts if self.recent_attempts else None


@dataclass(frozen=True, kw_only=True, slots=True)
class CurriculumState:
    """All that a curriculum knows; problems that were never tried are not in it."""

    tallies: Mapping[str, Tally] = field(default_factory=dict)
    """By problem id."""

    def to_json(self) -> str:
        """Return the state as a line of text that `from_json` reads back to an equal state."""
        return json.dumps({name: asdict(tally) for name, tally in self.tallies.items()})

    @classmethod
    def from_json(cls, text: str) -> "CurriculumState":
        """Return the state that `to_json` wrote.

        Raises:
            RecordError: the text is none.

        >>> state = updated(CurriculumState(), {"sums-1": [True, False]}, step=1)
        >>> CurriculumState.from_json(state.to_json()) == state
        True
        """
        try:
            return cls(tallies={name: Tally(**numbers) for name, numbers in json.loads(text).items()})
        except (ValueError, TypeError, AttributeError) as error:
            raise RecordError(f"the state of the curriculum in the checkpoint cannot be read: {error}") from None


class Standing(StrEnum):
    """What a curriculum makes of a problem."""

    PREFERRED = "preferred"
    """Measured, with a pass rate within `prefer`."""
    UNTRIED = "untried"
    OUTSIDE = "outside"
    """Tried, and in none of the others: a rate outside `prefer` that is no reason to give up, or nothing scored yet."""
    RETIRED = "retired"
    """A pass rate of `retire` or more."""
    PARKED = "parked"
    """Not once right in `park_after` attempts or more, over the whole run."""


SHARES: Mapping[Standing, float] = {Standing.PREFERRED: 1.0, Standing.UNTRIED: 1.0, Standing.OUTSIDE: 0.25}
"""How the slots that re-check nothing are shared among the standings, in proportion. Preferred problems get as many as
untried ones, so that a set too large to be tried once is not tried to its end before anything is preferred."""


def standing(tally: Tally | None, settings: Curriculum) -> Standing:
    """Return the standing of a problem; None for one that was never tried.

    >>> standing(Tally(attempts=8, right=8, recent_attempts=8, recent_right=8, step=1), Curriculum()).value
    'retired'
    """
    if tally is None:
        return Standing.UNTRIED
    if tally.rate is None:
        return Standing.OUTSIDE
    if tally.rate >= settings.retire:
        return Standing.RETIRED
    if tally.right == 0 and tally.attempts >= settings.park_after:
        return Standing.PARKED
    low, high = settings.prefer
    return Standing.PREFERRED if low <= tally.rate <= high else Standing.OUTSIDE


def updated(state: CurriculumState, outcomes: Mapping[str, Sequence[bool]], step: int) -> CurriculumState:
    """Return the state after a step.

    Args:
        state: The state before it.
        outcomes: Of every problem tried in the step by id, whether each attempt that could be scored was right.
        step: When that was.
    """
    tallies = {name: _added(state.tallies.get(name), verdicts, step) for name, verdicts in outcomes.items()}
    return CurriculumState(tallies={**state.tallies, **tallies})


def chosen(
    problems: Sequence[Problem], state: CurriculumState, seed: int, step: int, count: int, settings: Curriculum
) -> tuple[Problem, ...]:
    """Return the `count` different training problems of a step, in random order.

    First a share of the slots, `recheck_share` on average over steps, goes to retired and parked problems, those tried
    longest ago first. The rest is drawn at random from the others as `SHARES` says; what a standing lacks, the others
    give. When all of these are taken, further retired and parked ones fill the step.

    Args:
        problems: All training problems; the same ones in the same order at every step.
        state: What the steps before have measured.
        seed: Of the run.
        step: Counts from 1.
        count: How many, at most as many as there are problems.
        settings: Where the bounds lie.
    """
    assert step >= 1, "steps count from 1"
    assert 1 <= count <= len(problems), "a step cannot hold more problems than there are"
    standings = [standing(state.tallies.get(problem.id), settings) for problem in problems]
    random = generator(seed, step, "curriculum")
    waits_N = random.exponential(size=len(problems))
    given_up = [index for index, each in enumerate(standings) if each not in SHARES]
    given_up.sort(key=lambda index: (state.tallies[problems[index].id].step, waits_N[index]))
    rechecks = _whole_slots(settings.recheck_share * count, step)
    order = [*given_up[:rechecks], *_drawn(standings, waits_N), *given_up[rechecks:]]
    return tuple(problems[order[place]] for place in random.permutation(count))


def standing_metrics(problems: Sequence[Problem], state: CurriculumState, settings: Curriculum) -> dict[str, float]:
    """Return `curriculum/*`: the share of the training problems in every standing; together they are 1."""
    standings = [standing(state.tallies.get(problem.id), settings) for problem in problems]
    return {f"curriculum/{each.value}_share": standings.count(each) / len(problems) for each in Standing}


def _added(tally: Tally | None, verdicts: Sequence[bool], step: int) -> Tally:
    before = tally or Tally(step=step)
    kept = KEPT if verdicts else 1.0
    return Tally(
        attempts=before.attempts + len(verdicts),
        right=before.right + sum(verdicts),
        recent_attempts=kept * before.recent_attempts + len(verdicts),
        recent_right=kept * before.recent_right + sum(verdicts),
        step=step,
    )


def _whole_slots(slots: float, step: int) -> int:
    """Return a whole number of slots that comes to `slots` on average over steps."""
    return math.floor(step * slots) - math.floor((step - 1) * slots)


def _drawn(standings: Sequence[Standing], waits_N: np.ndarray) -> list[int]:
    """Return the problems that are not given up in the order of a weighted draw without replacement.

    Those of a standing share its weight alike. Waiting times divided by weights put them into the order in which
    drawing one by one with these weights would (Efraimidis and Spirakis 2006).
    """
    weights = {each: share / max(1, standings.count(each)) for each, share in SHARES.items()}
    candidates = [index for index, each in enumerate(standings) if each in SHARES]
    return sorted(candidates, key=lambda index: waits_N[index] / weights[standings[index]])
