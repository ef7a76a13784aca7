"""`exact`: the answer is the same text as the gold answer."""

import unicodedata

from earned.rewards.answer import answer_of, extract_answer, trim
from earned.rewards.verdict import BuiltInCheck, Verdict, no_answer, unreadable_gold
from earned.vocabulary import Attempt, Rule


def read_gold_text(gold: str) -> str | None:
    """Return the text that an answer is compared with (NFC), or None when the rule that reads answers never gives it.

    The gold answer must not be empty, hold one line, and no answer mark of its own.
    """
    readable = extract_answer(f"#### {gold}").answer == trim(gold)
    return unicodedata.normalize("NFC", trim(gold)) if readable else None


class ExactCheck(BuiltInCheck):
    """1 when the answer is the gold text, else 0; unscored when no completion could ever give that text."""

    def __call__(self, attempt: Attempt) -> Verdict:
        """Judge one attempt; both texts are trimmed and brought to the same Unicode form (NFC), letter case counts."""
        gold = attempt.problem.gold
        wanted = None if gold is None else read_gold_text(gold)
        if wanted is None:
            shown = None if gold is None else gold[:80]
            reason = f"the gold answer {shown!r} cannot be compared"
            return unreadable_gold(reason)
        extraction = answer_of(attempt)
        if extraction.answer is None:
            return no_answer(extraction.reason)
        right = unicodedata.normalize("NFC", extraction.answer) == wanted
        reason = f"{extraction.answer!r} is {'' if right else 'not '}{gold!r}"
        rule = Rule.EQUAL if right else Rule.DIFFERENT
        return Verdict(value=float(right), extracted=extraction.answer, explanation=reason, rule=rule)
