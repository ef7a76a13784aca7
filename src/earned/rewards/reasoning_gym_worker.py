"""What a worker runs for the check `reasoning_gym`: the library's own scorer, and a guard beside it.

Some scorers hand the answer to `eval`, others to sympy's parser, which evaluates it too. While a scorer runs, the guard
refuses to execute any text but a plain expression: literals, operations, and calls of a few mathematical names.
"""

import ast
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from types import CodeType
from typing import Any

from reasoning_gym import create_dataset

NAMES = frozenset(
    [
        *("Integer", "Float", "Rational", "Symbol", "Function", "Integral", "sympy"),
        *("exp", "log", "ln", "sqrt", "Abs", "factorial", "pi", "oo", "erf"),
        *("sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "acot", "sinh", "cosh", "tanh"),
    ]
)
"""Beside names of one letter. `sympy` is in what its parser runs first, `from sympy import *`."""

_guarded: ContextVar[bool] = ContextVar("guarded", default=False)


class Refused(Exception):
    """A scorer was about to run an answer as a program."""


NEUTRAL = "0"
"""An answer that no scorer should fail on."""


def score(dataset: str, options: Mapping[str, Any], entry: str, answer: str) -> dict[str, object]:
    """Return `{"score": number}`, or `{"refused": why}` where the answer makes the scorer fail.

    Args:
        dataset: Name in the library.
        options: Of the data set.
        entry: The entry as a Python literal, since some scorers tell tuples from lists.
        answer: The answer that was read.

    Raises:
        Exception: what the library raises, where it does so for its own answer too, or for NEUTRAL where it has none.
    """
    scorer, truth = _data_set(dataset, json.dumps(options)), ast.literal_eval(entry)
    try:
        with only_expressions():
            return {"score": float(scorer.score_answer(answer, truth))}
    except Exception as error:
        scorer.score_answer(truth["answer"] or NEUTRAL, truth)
        return {"refused": f"{type(error).__name__}: {error}"}


@contextmanager
def only_expressions() -> Iterator[None]:
    """Raise Refused inside where a text is executed that is more than an expression.

    >>> with only_expressions():
    ...     eval("[1, 2 + 3]"), eval("open('a')")
    Traceback (most recent call last):
    earned.rewards.reasoning_gym_worker.Refused: open
    """
    _install_guard()
    before = _guarded.set(True)
    try:
        yield
    finally:
        _guarded.reset(before)


@cache
def _install_guard() -> None:
    sys.addaudithook(_guard)


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "exec" or not _guarded.get():
        return
    code: CodeType = arguments[0]
    # The code of a module that is imported only now has a file.
    if code.co_filename != "<string>":
        return
    strange = [name for name in code.co_names if len(name) > 1 and name not in NAMES]
    if strange or any(isinstance(constant, CodeType) for constant in code.co_consts):
        raise Refused(", ".join(strange) or "code inside an expression")


@lru_cache(maxsize=8)
def _data_set(name: str, options: str) -> Any:
    return create_dataset(name, seed=0, **json.loads(options))
