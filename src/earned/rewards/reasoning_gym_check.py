"""`reasoning_gym`: the answer is judged by the scorer of the library that made the problem, in a process of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from earned.errors import RecipeError
from earned.recipe import RewardPart
from earned.recipe_file import Positive, PositiveFloat, Section, validate
from earned.rewards.answer import Extraction, answer_of
from earned.rewards.user_reward import Resources, finite
from earned.rewards.verdict import Check, Verdict, failure, no_answer
from earned.sandbox.workers import Code, Ending, Function, Outcome, WorkerPool
from earned.vocabulary import Attempt, Problem, Rule

WORKER = Path(__file__).with_name("reasoning_gym_worker.py")
COLUMNS = {"dataset": str, "options": dict, "entry": dict}
"""What a problem of `source = "reasoning_gym:NAME"` carries, and of which type."""


class ReasoningGymOptions(Section):
    """How the library's scores are paid, and what its scorers may use."""

    partial: bool = False
    """Pay the library's score as it is, such as .1 for the right list in another form. Some scorers give something to
    any answer; without this only the full score counts, and it counts 1."""
    limit_seconds: PositiveFloat = 5.0
    """Of one answer; one that takes longer is wrong."""
    memory_mb: Positive | None = 4096
    """Address space of the process, in MiB, where the system has such a limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReasoningGymCheck:
    """Asks `score_answer` of the library about every answer."""

    pool: WorkerPool
    function: Function
    partial: bool

    def judge(self, attempts: Mapping[str, Attempt]) -> dict[str, Verdict]:
        """Judge all attempts side by side."""
        read = {name: answer_of(attempt) for name, attempt in attempts.items()}
        requests = {
            name: _request(attempt.problem, answer)
            for name, attempt in attempts.items()
            if (answer := read[name].answer) is not None and _has_entry(attempt.problem)
        }
        outcomes = self.pool.call_all(self.function, requests)
        return {
            name: self._verdict(read[name].answer, outcomes[name])
            if name in outcomes
            else _unasked(attempt.problem, read[name])
            for name, attempt in attempts.items()
        }

    def _verdict(self, answer: str | None, outcome: Outcome) -> Verdict:
        rule, value, reason = self._decided(outcome)
        if rule is Rule.FAILED:
            return failure(f"the scorer of reasoning-gym {reason}")
        return Verdict(value=value, extracted=answer, explanation=f"the scorer of reasoning-gym {reason}", rule=rule)

    def _decided(self, outcome: Outcome) -> tuple[Rule, float | None, str]:
        if outcome.ending is Ending.TIMED_OUT:
            return Rule.TIMED_OUT, 0.0, f"{outcome.detail}: too long for an answer"
        if outcome.ending is Ending.DIED:
            return Rule.UNREADABLE, 0.0, f"ends with its process: {outcome.detail}"
        if outcome.ending is not Ending.RETURNED:
            return Rule.FAILED, None, f"{outcome.ending.value}: {' | '.join(outcome.detail.splitlines())}"
        assert isinstance(outcome.value, dict)
        if "refused" in outcome.value:
            return Rule.UNREADABLE, 0.0, f"cannot read this answer: {outcome.value['refused']}"
        score = finite(outcome.value["score"])
        if score is None:
            return Rule.UNREADABLE, 0.0, f"gives {outcome.value['score']}, which is no finite number"
        value = score if self.partial else float(score >= 1)
        return Rule.EQUAL if score >= 1 else Rule.DIFFERENT, value, f"gives {score:g}"


def reasoning_gym_check(where: str, part: RewardPart, resources: Resources) -> Check:
    """Return the check; `where` is its table in the recipe, such as `rewards.answer`.

    Raises:
        RecipeError: an unknown or refused option, or the library cannot be loaded.
    """
    options = validate(ReasoningGymOptions, part.options, f"{where}.options")
    function = Function(
        code=Code.read(str(WORKER)), name="score", seconds=options.limit_seconds, memory_mb=options.memory_mb
    )
    outcome = resources.pool.describe(function)
    if outcome.ending is not Ending.RETURNED:
        raise RecipeError(
            f"{where}.check: 'reasoning_gym' cannot load the library of this name, which comes with the extra "
            f'`puzzles`: pip install "earned[puzzles]" ({outcome.detail})'
        )
    return ReasoningGymCheck(pool=resources.pool, function=function, partial=options.partial)


def _has_entry(problem: Problem) -> bool:
    return all(isinstance(problem.columns.get(name), kind) for name, kind in COLUMNS.items())


def _request(problem: Problem, answer: str) -> dict[str, object]:
    columns = problem.columns
    # A full stop at the end is no part of an answer that was read, but of some that the library shows.
    if (problem.gold or "").endswith(".") and not answer.endswith("."):
        answer += "."
    return {
        "dataset": columns["dataset"],
        "options": columns["options"],
        "entry": repr(columns["entry"]),
        "answer": answer,
    }


def _unasked(problem: Problem, read: Extraction) -> Verdict:
    if _has_entry(problem):
        return no_answer(read.reason)
    reason = (
        f"the problem has no columns {', '.join(map(repr, COLUMNS))} to go by, "
        'as those of source = "reasoning_gym:NAME" have'
    )
    return Verdict(value=None, extracted=read.answer, explanation=reason, rule=Rule.UNREADABLE_GOLD)
