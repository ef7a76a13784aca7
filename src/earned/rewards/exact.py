"""`exact`: the answer is the same text as the gold answer."""

import unicodedata

from earned.rewards.answer import extract_answer, trim
from earned.rewards.verdict import BuiltInCheck, Verdict
from earned.vocabulary import Attempt


class ExactCheck(BuiltInCheck):
    """1 when the answer is the gold text, else 0; unscored when no completion could ever give that text."""

    def __call__(self, attempt: Attempt) -> Verdict:
        """Judge one attempt; both texts are trimmed and brought to the same Unicode form (NFC), letter case counts."""
        gold = attempt.problem.gold
        # The gold answer must survive the rule that reads answers: not empty, one line, no answer mark of its own.
        if gold is None or extract_answer(f"#### {gold}").answer != trim(gold):
            shown = None if gold is None else gold[:80]
            return Verdict(value=None, extracted=None, explanation=f"the gold answer {shown!r} cannot be compared")
        extraction = extract_answer(attempt.text)
        if extraction.answer is None:
            return Verdict(value=0.0, extracted=None, explanation=extraction.reason)
        right = unicodedata.normalize("NFC", extraction.answer) == unicodedata.normalize("NFC", trim(gold))
        reason = f"{extraction.answer!r} is {'' if right else 'not '}{gold!r}"
        return Verdict(value=float(right), extracted=extraction.answer, explanation=reason)
