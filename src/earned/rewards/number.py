"""`number`: the answer is the same decimal number as the gold answer, compared exactly."""

import re
from decimal import Decimal

from earned.rewards.answer import answer_of, trim
from earned.rewards.verdict import BuiltInCheck, Verdict, no_answer, unreadable_gold
from earned.vocabulary import Attempt, Rule

MAX_DIGITS = 100

_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})++|[0-9]++)(?:\.[0-9]++)?+")


def parse_number(text: str) -> Decimal | None:
    r"""Return the exact value of a plain decimal number, or None for anything else.

    A number is an optional sign, digits 0-9 with or without commas before every third, and an optional decimal
    fraction; at most 100 digits. No exponent, fraction, percentage, infinity, NaN, or digits of other scripts.

    >>> parse_number("1,024") == parse_number("1024.0") == parse_number("+01024")
    True
    >>> [parse_number(text) for text in ("10,24", "1e3", "1/2", ".5", "NaN", "\u0661")]
    [None, None, None, None, None, None]
    """
    if len(text) > 2 * MAX_DIGITS or not _NUMBER.fullmatch(text):
        return None
    if sum(character.isdigit() for character in text) > MAX_DIGITS:
        return None
    return Decimal(text.replace(",", ""))


def read_gold_number(gold: str) -> Decimal | None:
    """Return the number that a gold answer is, or None when no answer could be compared with it."""
    return parse_number(trim(gold))


class NumberCheck(BuiltInCheck):
    """1 when the answer equals the gold number, else 0; unscored when the gold answer is no number."""

    def __call__(self, attempt: Attempt) -> Verdict:
        """Judge one attempt; `1,024`, `1024` and `1024.0` are equal, nothing is rounded."""
        gold_text = attempt.problem.gold
        gold = None if gold_text is None else read_gold_number(gold_text)
        if gold is None:
            shown = None if gold_text is None else gold_text[:80]
            reason = f"the gold answer {shown!r} is not a number"
            return unreadable_gold(reason)
        extraction = answer_of(attempt)
        if extraction.answer is None:
            return no_answer(extraction.reason)
        number = parse_number(extraction.answer)
        if number is None:
            rule, reason = Rule.UNREADABLE, f"{extraction.answer!r} is not a plain decimal number"
        elif number == gold:
            rule, reason = Rule.EQUAL, f"equals {gold_text}, {extraction.reason}"
        else:
            rule, reason = Rule.DIFFERENT, f"{extraction.answer} is not {gold_text}"
        return Verdict(value=float(rule is Rule.EQUAL), extracted=extraction.answer, explanation=reason, rule=rule)
