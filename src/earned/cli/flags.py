"""Recipe keys as flags: `--algorithm.name rloo` or `--algorithm.name=rloo`."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from earned.errors import RecipeError

Flags = Annotated[str, Parameter(allow_leading_hyphen=True, show=False)]
"""What is left on the command line after a command's own options."""
Json = Annotated[bool, Parameter(negative="")]


def recipe_flags(tokens: Sequence[str]) -> dict[str, str]:
    """Return the values by dotted key.

    Raises:
        RecipeError: a word that belongs to no flag, or a flag without a value.

    >>> recipe_flags(["--steps", "3", "--optim.learning-rate=1e-4"])
    {'steps': '3', 'optim.learning-rate': '1e-4'}
    """
    flags: dict[str, str] = {}
    rest = list(tokens)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise RecipeError(f"{word!r}: not understood here; recipe keys are given as --KEY VALUE")
        key, equals, value = word.removeprefix("--").partition("=")
        if not equals:
            if not rest:
                raise RecipeError(f"--{key}: a value is missing")
            value = rest.pop(0)
        flags[key] = value
    return flags
