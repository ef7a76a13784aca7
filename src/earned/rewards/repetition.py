"""`repetition`: a penalty for saying the same again and again."""

import re
from collections.abc import Sequence

from earned.recipe_file import Decay, Positive
from earned.rewards.verdict import BuiltInCheck, Verdict
from earned.vocabulary import Attempt

# A long word counts as several: a loop without any space is made of equal pieces too.
_WORD = re.compile(r"\w{1,20}|[^\w\s]")


class RepetitionCheck(BuiltInCheck):
    """0 for a text that repeats little, down to -1 for one that only repeats itself.

    With R the share of its n-grams of words that have come before: 0 up to R = threshold, then
    -(R - threshold) / (1 - threshold). Words are runs of letters and digits, of 20 characters at most, and every other
    character that is no space; letter case does not count. A text of at most n words gets 0, a truncated one -1: cut
    off, it may have gone on repeating itself. Time and memory are linear in the text.

    Source: share of repeated n-grams as in open-r1's repetition penalty, after Demystifying Long Chain-of-Thought,
    arXiv 2502.03373, which penalises the repeated tokens themselves; the threshold is ours.
    """

    n: Positive = 4
    """Words that have to come again in the same order."""
    threshold: Decay = 0.2
    """Share of repeated n-grams that costs nothing: ordinary derivations repeat themselves a little."""

    def __call__(self, attempt: Attempt) -> Verdict:
        """Judge one attempt by its text."""
        if attempt.truncated:
            return Verdict(value=-1.0, extracted=None, explanation="cut off by the length limit")
        share = repeated_share(_WORD.findall(attempt.text.casefold()), self.n)
        value = min(0.0, (self.threshold - share) / (1 - self.threshold))
        repeats = f"{share:.0%} of its {self.n}-grams of words have come before"
        return Verdict(value=value, extracted=None, explanation=repeats)


def repeated_share(words: Sequence[str], n: int) -> float:
    """Return the share of n-grams that have come before, in [0, 1); 0 when there is none.

    >>> repeated_share("a b a b a b".split(), n=2)
    0.6
    """
    grams = list(zip(*(words[start:] for start in range(n)), strict=False))
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
