"""Errors that say whose fault it is and what to do.

Anything a user can mend is an `EarnedError`: the command line prints its sentence without a traceback and exits with
its `exit_code`. A broken promise of our own code is an `assert`.
"""

import difflib
from collections.abc import Collection


class EarnedError(Exception):
    """Base of every error that ends a command with a sentence instead of a traceback."""

    exit_code = 1


class RecipeError(EarnedError, ValueError):
    """The recipe, a flag, or what they point to is wrong: the user's to mend, nothing was started."""

    exit_code = 2


class PolicyError(EarnedError, ValueError):
    """A model folder or its tokeniser cannot be used as it is."""

    exit_code = 2


class VerifierError(EarnedError, RuntimeError):
    """Checking answers failed on our side too often for the rewards to be trusted."""


class EngineError(EarnedError, RuntimeError):
    """The sampling engine or an update produced something that must not be trained on."""


class PreflightError(EarnedError, RuntimeError):
    """The first attempts taught nothing: training was not started and nothing was written."""


class RecordError(EarnedError, RuntimeError):
    """A run folder or its records cannot be written or read."""

    exit_code = 2


class Stopped(EarnedError):
    """The run was asked to stop by a signal, has saved itself, and can be resumed."""

    exit_code = 75


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Return ` Did you mean 'x'?` for the nearest known word, or an empty string.

    Letters that only changed places are nearer than a letter that is another one.

    >>> did_you_mean("gpro", ["gspo", "grpo"])
    " Did you mean 'grpo'?"
    """
    near = sorted(difflib.get_close_matches(word, known), key=lambda other: sorted(other) != sorted(word))
    return f" Did you mean {near[0]!r}?" if near else ""
