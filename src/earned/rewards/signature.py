"""Calling a reward function by its parameter names: the convention of TRL, and one row at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from earned.errors import RecipeError
from earned.recipe import did_you_mean
from earned.vocabulary import Attempt

BATCH_NAMES = ("completions", "prompts", "answer")
ROW_NAMES = ("completion", "prompt", "answer")
"""What every function may ask for beside the columns of the problems; `answer` is the gold answer."""

Arguments = Mapping[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """Which keywords a function takes."""

    named: tuple[str, ...]
    required: tuple[str, ...]
    """The named ones without a default."""
    takes_any: bool
    """True when it takes `**kwargs`, and so is given everything there is."""

    @property
    def per_row(self) -> bool:
        """True when it speaks of `completion` or `prompt` and not of `completions` or `prompts`.

        >>> Signature(named=("completion", "answer"), required=(), takes_any=False).per_row
        True
        """
        return bool({*ROW_NAMES[:2]} & {*self.named}) and not {*BATCH_NAMES[:2]} & {*self.named}

    def row(self, attempt: Attempt, columns: Sequence[str]) -> Arguments:
        """Return the arguments of a call for one attempt: single values, or for a batch function lists of one."""
        if not self.per_row:
            return self.batch([attempt], columns)
        known = (attempt.text, attempt.problem.prompt, attempt.problem.gold)
        rest = {name: attempt.problem.columns.get(name) for name in columns}
        return self._asked(rest | dict(zip(ROW_NAMES, known, strict=True)))

    def batch(self, attempts: Sequence[Attempt], columns: Sequence[str]) -> Arguments:
        """Return the arguments of a call for all attempts: lists of one length; None where a row lacks a column."""
        known = (
            [attempt.text for attempt in attempts],
            [attempt.problem.prompt for attempt in attempts],
            [attempt.problem.gold for attempt in attempts],
        )
        rest = {name: [attempt.problem.columns.get(name) for attempt in attempts] for name in columns}
        return self._asked(rest | dict(zip(BATCH_NAMES, known, strict=True)))

    def require(self, columns: Sequence[str], where: str, function: str) -> None:
        """Return if the function can be called with what there is.

        Raises:
            RecipeError: when it asks for something else, or for no completion at all; `where` is the recipe's key.
        """
        names = ROW_NAMES if self.per_row else BATCH_NAMES
        known = [*names, *(column for column in columns if column not in names)]
        missing = [name for name in self.required if name not in known]
        free = [name for name in known if name not in self.named]
        if missing:
            raise RecipeError(
                f"{where}: {function} asks for {', '.join(map(repr, self.named))}, but there is no "
                f"{', '.join(map(repr, missing))}. It may ask for {', '.join(map(repr, names))} and the columns of the "
                f"problems: {', '.join(map(repr, columns)) or 'none'}.{did_you_mean(missing[0], free)}"
            )
        if not self.takes_any and names[0] not in self.named:
            raise RecipeError(
                f"{where}: {function} takes neither 'completions' nor 'completion', so it would reward what it has not "
                "seen. Write for example: def reward(completions, answer, **kwargs)"
            )

    def _asked(self, everything: Arguments) -> Arguments:
        return {name: value for name, value in everything.items() if self.takes_any or name in self.named}
