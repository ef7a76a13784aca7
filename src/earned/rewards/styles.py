"""The ways in which reward functions are written elsewhere, one record each: which names they ask for, what they get.

A style is recognised by the parameter names of the function, in the order of `RECOGNISED_BY`. Beside the names of its
style a function may ask for any further column of the problems. Texts are always plain strings, never messages.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from earned.rewards.answer import answer_of
from earned.vocabulary import Attempt


@dataclass(frozen=True, kw_only=True, slots=True)
class Style:
    """One way of writing a reward function."""

    system: str
    """Whose style it is."""
    batched: bool
    """True when one call judges many completions, with lists of one length; False when a call judges one."""
    names: tuple[str, ...]
    """What a function may ask for."""
    values: Callable[[Attempt], tuple[object, ...]]
    """What is given under these names for one completion."""
    completion_in: tuple[str, ...]
    """The names that carry the completion; a function that takes none of them has not seen what it rewards."""
    missing: tuple[str, ...] = ()
    """Names that the other system gives and this one does not: None where the function has no default for them."""
    result_key: str | None = None
    """Under which key of a returned dict the result is; a result that is no dict is taken as it is."""

    def result(self, returned: object) -> object:
        """Return what was returned without the dict that this style allows around it."""
        if isinstance(returned, dict) and self.result_key in returned:
            return returned[self.result_key]
        return returned


def _known(attempt: Attempt) -> tuple[str, str, str | None]:
    return attempt.text, attempt.problem.prompt, attempt.problem.gold


def _column(attempt: Attempt, name: str, otherwise: object) -> object:
    """Return a column of the problem where it has one of that name, as the other system would."""
    return attempt.problem.columns.get(name, otherwise)


def _columns(attempt: Attempt, name: str) -> object:
    """Return the column `name`, or where there is none all further columns."""
    return _column(attempt, name, dict(attempt.problem.columns))


def _verifiers(attempt: Attempt) -> tuple[object, ...]:
    text, prompt, gold = _known(attempt)
    info = _columns(attempt, "info")
    state = {"completion": text, "prompt": prompt, "answer": gold, "info": info}
    return text, prompt, gold, info, _column(attempt, "state", state)


def _verifiers_group(attempt: Attempt) -> tuple[object, ...]:
    text, prompt, gold, info, state = _verifiers(attempt)
    plural = (("answers", gold), ("infos", info), ("states", state))
    return text, prompt, *(_column(attempt, name, value) for name, value in plural)


def _verl(attempt: Attempt) -> tuple[object, ...]:
    problem = attempt.problem
    source = _column(attempt, "data_source", problem.source)
    return source, attempt.text, problem.gold, _columns(attempt, "extra_info")


def _openrlhf(attempt: Attempt) -> tuple[object, ...]:
    text, prompt, gold = _known(attempt)
    return prompt + text, prompt, gold


def _reasoning_gym(attempt: Attempt) -> tuple[object, ...]:
    _, prompt, gold = _known(attempt)
    return answer_of(attempt).answer, {"question": prompt, "answer": gold, "metadata": _columns(attempt, "metadata")}


TRL = Style(
    system="TRL",
    batched=True,
    names=("completions", "prompts", "answer"),
    values=_known,
    completion_in=("completions",),
    missing=("completion_ids", "trainer_state", "log_extra", "log_metric", "environments"),
)
VERIFIERS = Style(
    system="verifiers",
    batched=False,
    names=("completion", "prompt", "answer", "info", "state"),
    values=_verifiers,
    completion_in=("completion", "state"),
)
VERIFIERS_GROUP = Style(
    system="verifiers, for a group",
    batched=True,
    names=("completions", "prompts", "answers", "infos", "states"),
    values=_verifiers_group,
    completion_in=("completions", "states"),
)
VERL = Style(
    system="verl",
    batched=False,
    names=("data_source", "solution_str", "ground_truth", "extra_info"),
    values=_verl,
    completion_in=("solution_str",),
    result_key="score",
)
OPENRLHF = Style(
    system="OpenRLHF",
    batched=True,
    names=("queries", "prompts", "labels"),
    values=_openrlhf,
    completion_in=("queries",),
    result_key="rewards",
)
REASONING_GYM = Style(
    system="reasoning-gym",
    batched=False,
    names=("answer", "entry"),
    values=_reasoning_gym,
    completion_in=("answer",),
)

RECOGNISED_BY: tuple[tuple[frozenset[str], Style], ...] = (
    (frozenset({"completion"}), VERIFIERS),
    (frozenset({"completions", "answers"}), VERIFIERS_GROUP),
    (frozenset({"completions", "infos"}), VERIFIERS_GROUP),
    (frozenset({"completions", "states"}), VERIFIERS_GROUP),
    (frozenset({"completions"}), TRL),
    (frozenset({"solution_str"}), VERL),
    (frozenset({"queries"}), OPENRLHF),
    (frozenset({"answer", "entry"}), REASONING_GYM),
    (frozenset({"states"}), VERIFIERS_GROUP),
    (frozenset({"state"}), VERIFIERS),
    (frozenset({"prompts"}), TRL),
    (frozenset({"prompt"}), VERIFIERS),
    (frozenset(), TRL),
)
"""The first row whose names a function has all decides. Names that carry the completion come first, because `entry`,
`queries` or `state` may as well be columns of the problems."""


def style_of(named: Collection[str]) -> Style:
    """Return the style of a function by its parameter names.

    >>> style_of(["data_source", "solution_str", "ground_truth", "extra_info"]).system
    'verl'
    >>> style_of(["completion", "answer"]).system, style_of(["completions", "entry", "answer"]).system
    ('verifiers', 'TRL')
    """
    return next(style for marks, style in RECOGNISED_BY if marks <= {*named})


def arguments_of(style: Style, attempt: Attempt, columns: Collection[str]) -> Mapping[str, object]:
    """Return everything a function of this style may ask for about one completion; None where it lacks a column."""
    of_problem = {name: attempt.problem.columns.get(name) for name in columns}
    return of_problem | dict(zip(style.names, style.values(attempt), strict=True))
