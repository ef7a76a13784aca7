"""Calling a reward function by its parameter names, in the style that these names show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from earned.errors import RecipeError, did_you_mean
from earned.rewards.styles import Style, arguments_of, style_of
from earned.vocabulary import Attempt

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
    def style(self) -> Style:
        """The style the function is written in.

        >>> Signature(named=("completion", "answer"), required=(), takes_any=False).style.batched
        False
        """
        return style_of(self.named)

    def row(self, attempt: Attempt, columns: Sequence[str]) -> Arguments:
        """Return the arguments of a call for one attempt: single values, or for a batch function lists of one."""
        if self.style.batched:
            return self.batch([attempt], columns)
        return self._asked(arguments_of(self.style, attempt, columns))

    def batch(self, attempts: Sequence[Attempt], columns: Sequence[str]) -> Arguments:
        """Return the arguments of a call for all attempts: lists of one length; None where a row lacks a column."""
        rows = [arguments_of(self.style, attempt, columns) for attempt in attempts]
        names = dict.fromkeys([*columns, *self.style.names])
        return self._asked({name: [row[name] for row in rows] for name in names})

    def require(self, columns: Sequence[str], where: str, function: str) -> None:
        """Return if the function can be called with what there is.

        Raises:
            RecipeError: when it asks for something else, or for no completion at all; `where` is the recipe's key.
        """
        style = self.style
        known = [*style.names, *(column for column in columns if column not in style.names)]
        missing = [name for name in self.required if name not in known and name not in style.missing]
        free = [name for name in known if name not in self.named]
        if missing:
            raise RecipeError(
                f"{where}: {function} asks for {', '.join(map(repr, self.named))}, but there is no "
                f"{', '.join(map(repr, missing))}. It may ask for {', '.join(map(repr, style.names))} and the columns "
                f"of the problems: {', '.join(map(repr, columns)) or 'none'}.{did_you_mean(missing[0], free)}"
            )
        if not self.takes_any and not {*style.completion_in} & {*self.named}:
            raise RecipeError(
                f"{where}: {function} takes neither 'completions' nor 'completion', so it would reward what it has not "
                "seen. Write for example: def reward(completions, answer, **kwargs)"
            )

    def _asked(self, everything: Arguments) -> Arguments:
        absent = {name: None for name in self.style.missing if name in self.required}
        return absent | {name: value for name, value in everything.items() if self.takes_any or name in self.named}
