"""Rewards of the user's own: a function of a file, or one handed over in Python.

The function is called by keyword with `completions`, `prompts`, `answer` (the gold answers) and every further column of
the problems, each a list with one entry a completion, and returns a list of as many numbers (booleans, scalars and
arrays of numpy or torch too). It may be asynchronous, and need not name what it does not use. A function of
`completion`, `prompt`, `answer` is called once for every completion, with single values, and returns one number. The
styles of other systems are recognised by their parameter names: see `styles.py`.

None says that the completion is none of this part's business: the part leaves the sum. What is no finite number
leaves the completion unscored, and only that one. When a call for the whole batch raises, crashes or exceeds its time,
every completion is tried alone, so that only the bad one is lost; one that alone exceeds the time or ends the process,
while others are judged, gets the worst of their values. A list of the wrong length, or no list, is not tried again:
such a function would be wrong about any batch, and nobody could say which number belongs to whom.
"""

import math
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from earned.errors import RecipeError, VerifierError
from earned.recipe import RewardPart
from earned.recipe_file import Positive, PositiveFloat, Section, validate
from earned.rewards.signature import Arguments, Signature
from earned.rewards.verdict import Verdict, failure
from earned.sandbox.worker_main import as_json, call, described, replied
from earned.sandbox.workers import Code, Ending, Function, Outcome, WorkerPool
from earned.vocabulary import Attempt, Rule

FILE_MARK = ".py:"
HANDED_OVER = "python"
"""The check whose function is an argument of `train`, not a file."""

ENDED_BY = {Ending.TIMED_OUT: Rule.TIMED_OUT, Ending.DIED: Rule.UNREADABLE}
"""What a completion does to a function that can judge others: `compose.py` scores it."""

RewardFunction = Callable[..., object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """What a check may need that is not written in the recipe."""

    pool: WorkerPool
    columns: tuple[str, ...] = ()
    """Further columns of the problems, those that any problem has."""
    function: RewardFunction | None = None
    """Handed over in Python."""


class HandedOverOptions(Section):
    """Options of a function handed over in Python."""

    limit_seconds: PositiveFloat = 10.0
    """Of one call, for a batch or for one row."""


class FileOptions(HandedOverOptions):
    """Options of a function of a file."""

    memory_mb: Positive | None = None
    """Address space of the process, in MiB."""


class Caller(Protocol):
    """Calls one function."""

    def call(self, requests: Mapping[str, Arguments]) -> Mapping[str, Outcome]:
        """Return the outcome of each call; one that was not worth making any more is left out."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class UserReward:
    """A check that is a function of the user's."""

    name: str
    """As the user knows it: `my.py:reward`."""
    signature: Signature
    caller: Caller
    columns: tuple[str, ...]
    sha256: str | None
    """Of the file; None for a function handed over in Python."""

    def judge(self, attempts: Mapping[str, Attempt]) -> Mapping[str, Verdict]:
        """Ask for all attempts at once, and after a failure for each alone.

        Raises:
            VerifierError: a function in this process exceeds its limit.
        """
        if not self.signature.style.batched:
            return self._each(attempts)
        whole = self.signature.batch(list(attempts.values()), self.columns)
        outcome = self.caller.call({"batch": whole})["batch"]
        if outcome.ending is Ending.RETURNED:
            return self._of_batch(self.signature.style.result(outcome.value), attempts)
        return self._each(attempts)

    def _each(self, attempts: Mapping[str, Attempt]) -> dict[str, Verdict]:
        rows = {name: self.signature.row(attempt, self.columns) for name, attempt in attempts.items()}
        outcomes = self.caller.call(rows)
        return {name: self._of_row(outcomes.get(name)) for name in attempts}

    def _of_batch(self, value: object, attempts: Mapping[str, Attempt]) -> dict[str, Verdict]:
        if not isinstance(value, list):
            wrong = f"returned {shown(value)} for {len(attempts)} completions, where a list of numbers is needed"
        elif len(value) != len(attempts):
            wrong = f"returned {len(value)} values for {len(attempts)} completions"
        else:
            return {name: self._of_value(item) for name, item in zip(attempts, value, strict=True)}
        return dict.fromkeys(attempts, failure(f"{self.name} {wrong}"))

    def _of_row(self, outcome: Outcome | None) -> Verdict:
        if outcome is None:
            return failure(f"{self.name} was not tried on it: it had timed out on every one that was")
        if outcome.ending is not Ending.RETURNED:
            what = outcome.ending.value.replace("_", " ")
            failed = failure(f"{self.name} {what}: {' | '.join(outcome.detail.splitlines())}")
            return replace(failed, rule=ENDED_BY.get(outcome.ending, failed.rule))
        value = self.signature.style.result(outcome.value)
        if not self.signature.style.batched:
            return self._of_value(value)
        if isinstance(value, list) and len(value) == 1:
            return self._of_value(value[0])
        return failure(f"{self.name} returned {shown(value)} for 1 completion, where a list of one number is needed")

    def _of_value(self, value: object) -> Verdict:
        if value is None:
            text = f"{self.name} returned None: not applicable"
            return Verdict(value=None, extracted=None, explanation=text, applies=False)
        number = finite(value)
        if number is None:
            return failure(f"{self.name} returned {shown(value)}, which is no finite number")
        return Verdict(value=number, extracted=None, explanation=f"{self.name} gave {number:g}")


@dataclass(frozen=True, slots=True)
class InWorkers:
    """Calls a function of a file in the pool."""

    pool: WorkerPool
    function: Function

    def call(self, requests: Mapping[str, Arguments]) -> dict[str, Outcome]:
        """Make the calls side by side; give up when the first ones, one for every worker, all exceed their time."""
        order = from_both_ends(list(requests))
        first, rest = order[: self.pool.size], order[self.pool.size :]
        outcomes = self.pool.call_all(self.function, {name: requests[name] for name in first})
        if all(outcome.ending is Ending.TIMED_OUT for outcome in outcomes.values()):
            return outcomes
        return outcomes | self.pool.call_all(self.function, {name: requests[name] for name in rest})


@dataclass(frozen=True, slots=True)
class InThisProcess:
    """Calls a function handed over in Python, which may be a closure and so cannot go to a worker."""

    name: str
    function: RewardFunction
    limit_seconds: float

    def call(self, requests: Mapping[str, Arguments]) -> dict[str, Outcome]:
        """Make one call after the other.

        Raises:
            VerifierError: a call exceeds the limit.
        """
        return {name: self._watched(as_json(arguments)) for name, arguments in requests.items()}

    def _watched(self, arguments: Arguments) -> Outcome:
        path = getattr(getattr(self.function, "__code__", None), "co_filename", None)
        replies: list[Mapping[str, object]] = []
        thread = threading.Thread(
            target=lambda: replies.append(replied(lambda: call(self.function, arguments), path)), daemon=True
        )
        thread.start()
        thread.join(self.limit_seconds)
        if not replies:
            raise VerifierError(
                f"{self.name}: the reward function ran longer than {self.limit_seconds:g} s, in {_place(thread)}. A "
                "thread of this process cannot be killed, so the run ends; the function may go on until Python exits. "
                f'From a file ("FILE.py:function") only the slow completions would be lost. Or raise limit_seconds'
            )
        reply = replies[0]
        if "returned" in reply:
            return Outcome(ending=Ending.RETURNED, value=reply["returned"])
        return Outcome(ending=Ending.RAISED, detail=str(reply["raised"]))


def file_reward(where: str, part: RewardPart, resources: Resources) -> UserReward:
    """Return the check that `"FILE.py:function"` names; `where` is its table in the recipe, such as `rewards.answer`.

    Raises:
        RecipeError: no such file or function, it cannot be loaded, or it asks for a column that there is not.
    """
    options = validate(FileOptions, part.options, f"{where}.options")
    path, _, name = part.check.rpartition(":")
    try:
        code = Code.read(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = f"no such file in {os.getcwd()}" if isinstance(error, FileNotFoundError) else str(error)
        raise RecipeError(f"{where}.check: {part.check!r}: {path}: {reason}") from None
    function = Function(code=code, name=name, seconds=options.limit_seconds, memory_mb=options.memory_mb)
    outcome = resources.pool.describe(function)
    if outcome.ending is not Ending.RETURNED:
        raise RecipeError(f"{where}.check: {part.check!r} cannot be used: {outcome.detail}")
    return _reward(where, part.check, outcome.value, InWorkers(resources.pool, function), resources, code.sha256)


def handed_over_reward(where: str, part: RewardPart, resources: Resources) -> UserReward:
    """Return the check that is the function handed over in Python.

    Raises:
        RecipeError: none was, or it asks for a column that there is not.
    """
    options = validate(HandedOverOptions, part.options, f"{where}.options")
    function = resources.function
    if function is None:
        raise RecipeError(
            f"{where}.check: {part.check!r} is a function handed over in Python, and there is none here: "
            'earned.api.train(recipe, reward=my_function). Or put it in a file: check = "FILE.py:function"'
        )
    name = getattr(function, "__name__", type(function).__name__)
    caller = InThisProcess(name, function, options.limit_seconds)
    return _reward(where, name, described(function), caller, resources, None)


def from_both_ends(names: list[str]) -> list[str]:
    """Return the first, the last, the second, the last but one, and so on: bad rows that lie together come apart.

    >>> from_both_ends(["a", "b", "c", "d", "e"])
    ['a', 'e', 'b', 'd', 'c']
    """
    return [names[index // 2] if index % 2 == 0 else names[-1 - index // 2] for index in range(len(names))]


def finite(value: object) -> float | None:
    """Return a number as a float, a boolean as 0 or 1, and None for anything else.

    >>> [finite(value) for value in (2, True, float("inf"), 10**400, "1")]
    [2.0, 1.0, None, None, None]
    """
    if not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def shown(value: object) -> str:
    """Return a value as an error message shows it.

    >>> shown("a text"), shown(float("nan"))
    ("'a text' (str)", 'nan (float)')
    """
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def _reward(
    where: str, name: str, description: object, caller: Caller, resources: Resources, sha256: str | None
) -> UserReward:
    assert isinstance(description, dict)
    signature = Signature(
        named=tuple(description["named"]),
        required=tuple(description["required"]),
        takes_any=description["takes_any"],
    )
    signature.require(resources.columns, f"{where}.check", name)
    return UserReward(name=name, signature=signature, caller=caller, columns=resources.columns, sha256=sha256)


def _place(thread: threading.Thread) -> str:
    """Return the line a thread is at."""
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return "a place it could not tell"
    last = traceback.extract_stack(frame)[-1]
    return f"{os.path.basename(last.filename)}:{last.lineno} in {last.name}"
