"""`countdown`: the answer is an expression that makes the target out of the given numbers, computed exactly."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

from earned.rewards.answer import Extraction, answer_of, trim
from earned.rewards.arithmetic import NotArithmetic, read_expression
from earned.rewards.verdict import BuiltInCheck, Verdict, no_answer, unreadable_gold
from earned.vocabulary import Attempt, Rule

SHOWN_CHARACTERS = 80

_BARE = re.compile(r"[0-9()+\-*/×·⋅÷−=.\s]*+")


class CountdownCheck(BuiltInCheck):
    """1 when the answer makes the `target` of the problem's columns from their `numbers`, else 0.

    Unscored where the problem has no such columns. The gold answer plays no part. What an expression is, and that no
    text is ever evaluated: `arithmetic.py`.
    """

    use_all: bool = True
    """Every number exactly as often as it is given; false: at most as often."""
    symbols: bool = True
    r"""Also ×, · and ÷, the minus sign of typesetting, and LaTeX's times, cdot and div with a backslash."""
    trailing_target: bool = True
    """`3*4+5 = 17` is the expression `3*4+5` where 17 is the target."""

    def __call__(self, attempt: Attempt) -> Verdict:
        """Judge one attempt; of a completion that is nothing but an expression the whole text is the answer."""
        numbers, target = (attempt.problem.columns.get(column) for column in ("numbers", "target"))
        if not (_are_whole(numbers) and min(numbers, default=-1) >= 0 and _is_whole(target)):
            reason = (
                "the problem's columns 'numbers' and 'target' have to hold a list of whole numbers from 0 up and a "
                f"whole number, not {_shown(numbers)} and {_shown(target)}"
            )
            return unreadable_gold(reason)
        extraction = _answer(attempt)
        if extraction.answer is None:
            return no_answer(extraction.reason)
        rule, reason = self._decided(extraction.answer, numbers, target)
        reason = f"{_shown(extraction.answer)}: {reason}"
        return Verdict(value=float(rule is Rule.EQUAL), extracted=extraction.answer, explanation=reason, rule=rule)

    def _decided(self, answer: str, numbers: Sequence[int], target: int) -> tuple[Rule, str]:
        try:
            expression = read_expression(self._without_target(answer, target), symbols=self.symbols)
        except NotArithmetic as refusal:
            return Rule.UNREADABLE, str(refusal)
        used, given = Counter(expression.numbers), Counter(numbers)
        if used - given:
            return Rule.DIFFERENT, f"it uses {_listed((used - given).elements())} beyond the given {_listed(numbers)}"
        if self.use_all and given - used:
            return (
                Rule.DIFFERENT,
                f"it leaves {_listed((given - used).elements())} of the given {_listed(numbers)} unused",
            )
        rule = Rule.EQUAL if expression.value == target else Rule.DIFFERENT
        return rule, f"it makes {expression.value}" + ("" if rule is Rule.EQUAL else f", not {target}")

    def _without_target(self, answer: str, target: int) -> str:
        expression, equals, result = answer.partition("=")
        if equals and not self.trailing_target:
            raise NotArithmetic("'=' is no part of an expression")
        if equals and result.strip() != str(target):
            raise NotArithmetic(f"{_shown(result.strip())} follows '=', where only the target {target} may stand")
        return expression


def _answer(attempt: Attempt) -> Extraction:
    if not attempt.truncated and attempt.text.strip() and _BARE.fullmatch(attempt.text):
        return Extraction(trim(attempt.text), "the whole completion")
    extraction = answer_of(attempt)
    # A space ends a word but not an expression: `3*4 ` may have been on the way to `3*4 + 5`.
    if attempt.truncated and extraction.answer and attempt.text.rstrip(" \t").endswith(extraction.answer):
        return Extraction(None, "the length limit cut the completion off before an expression was over")
    return extraction


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_whole(value: Any) -> TypeGuard[Sequence[int]]:
    return isinstance(value, list | tuple) and all(map(_is_whole, value))


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 3]}..."
