"""How many completions show a way of working that long chains of thought are known for, by stated rules.

Gandhi et al. 2025 (arXiv 2503.01307) had a language model count four cognitive behaviours: verification, backtracking,
subgoal setting and backward chaining. Here phrases are counted, so that the number is the same for everybody and costs
nothing. What differs: restarting is apart from backtracking; backward chaining is left out, because it has no phrases
of its own; what is done without being said is not seen; and a phrase may be said without being meant. So these numbers
show a trend against a control, not a truth about one completion. English only; where no words are written they are 0.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from earned.vocabulary import RolloutGroup

LONG = 0.5
"""A completion is long when it takes more than this part of the tokens it may have. A bound that moved with the run,
such as twice the median of its first step, would need a state, and mean another thing in every run."""

# Every repetition is bounded, so a search takes time in proportion to the text, whatever the text is.
_OPENERS = (
    r"(?:(?:so|but|no|hm{1,9}|ok(?:ay)?|and|now|then|oh|yes|well|wait|next|maybe|also|actually)\b[,.!]{0,3}\s{0,3})"
)
_SENTENCE = rf"(?:^|(?<=[.!?:;\n*]))\s{{0,3}}{_OPENERS}{{0,3}}"
_CLAUSE = rf"(?:^|(?<=[.!?:;\n*,—–]))\s{{0,3}}{_OPENERS}{{0,3}}"
_MUST = r"(?:'ll|\swill|\sshould|\sneed\sto|\smust|\scan|\scould|\swant\sto|\shave\sto)"
_LET_US = rf"\b(?:let(?:'s|\sus|\sme)|(?:i|we){_MUST})"
_LET_US_NOW = rf"{_LET_US}(?:\s(?:now|also|just|quickly|first|then|try\sto)){{0,2}}\s"
_RESULT = r"(?:answer|result|solution|sum|work|calculation|arithmetic|equation)s?"
_SOLVE = (
    r"(?:find|calculate|compute|determine|figure\sout|work\sout|solve|add|subtract|multiply|divide|count|convert|"
    r"simplify|evaluate|express|list|write|identify|estimate)\b"
)
_ORDER = r"(?:first|second|third|next|then|final|last)(?:ly)?"
_WAY = r"(?:approach|way|method|strategy|idea|route)\b"
_OTHER = r"(?:an?\s)?(?:\w{1,12}ly\s)?(?:different|other|another|new|alternative|better|simpler|more\s\w{1,15})"
_ONCE_MORE = r"(?:over|again|afresh|anew|from\sscratch|from\sthe\s(?:start|beginning))\b"
_THING = r"(?:this|that|it|which)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Behaviour:
    """A rule that says which texts show a behaviour."""

    name: str
    meaning: str
    """What the rule is after, in words."""
    pattern: re.Pattern[str]
    counts: tuple[str, ...]
    """Examples that count."""
    does_not_count: tuple[str, ...]
    """Examples that look alike and do not."""

    def shown_by(self, text: str) -> bool:
        """Return whether the text shows the behaviour; upper and lower case are the same."""
        return self.pattern.search(text.lower().replace("’", "'")) is not None


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


def _after(head: str, *tails: str) -> str:
    return f"{head}(?:{'|'.join(tails)})"


BEHAVIOURS = (
    Behaviour(
        name="verifying",
        meaning="The writer says that a result is now checked, or asks whether it is right.",
        pattern=_any_of(
            _after(
                _LET_US_NOW,
                r"(?:double[-\s]?check|re-?check|verify|validate|confirm|make\ssure(?!\s(?:not\s)?to\b))\b",
                r"check(?:\s?[:.,;!?\n]|$)",
                rf"check\s(?:this|that|these|it|if|whether|my|our|again|with|by|the\s{_RESULT})\b",
            ),
            rf"{_SENTENCE}(?:(?:to|quick|final)\s)?(?:(?:double[-\s]?|re-?)?check(?:ing)?|verify(?:ing)?|verification)"
            r"(?:\s(?:this|that|it|(?:our|my|the)\s(?:answer|work|result)))?\*{0,2}\s?[:,]",
            r"\b(?:is|was)\s(?:this|that|it)\s(?:right|correct)\s?\?",
            r"\bdoes\s(?:this|that|it)\s(?:make\ssense|add\sup|hold|work(?:\sout)?|check\sout)\s?\?",
            r"\b(?:plug(?:ging)?|substitut(?:e|ing))\b[^.!?\n]{0,40}\bback\s(?:in\b|into\sthe\soriginal\b)",
            r"\bsanity[-\s]check",
        ),
        counts=("Let me check: 6 * 7 = 42.", "To verify, 2 * 5 + 1 = 11.", "Is that right?"),
        does_not_count=("Anna wrote a check for $5.", "The teacher will check 30 papers.", "Let's check each option."),
    ),
    Behaviour(
        name="backtracking",
        meaning="The writer takes back something that was just written.",
        pattern=_any_of(
            _after(
                r"(?:^|[.!?;:,\n—–(]\s{0,3})(?:(?:no|oh|hm{1,9})\b[,.]?\s)?",
                r"wait(?:[,!…]|\.{2,3}|\s[—–-]|\s(?:no|that|this|i|but|actually)\b)(?!\s(?:let|that\sworks|another)\b)",
                r"hold\son[,.!…]",
            ),
            r"\b(?:oops|whoops|scratch\sthat|actually,?\s(?:no|wait)|my\smistake|backtrack(?:ing)?)\b",
            _after(
                rf"{_CLAUSE}{_THING}",
                r"(?:'s|\sis|\swas)\s(?:not\s(?:right|correct|possible|helpful)|wrong|incorrect|impossible)(?![-\w])",
                r"(?:'s|\sis|\swas)\s(?:a\smistake|an\serror)\b",
                r"\s(?:can't|cannot|couldn't)\sbe\s(?:right|correct|true)(?![-\w])",
                r"\s(?:doesn't|does\snot|didn't|did\snot|won't|will\snot|can't|cannot)\s"
                r"(?:work|make\ssense|add\sup|match|fit|hold|(?:seem|look|sound)\s(?:right|correct))\b",
            ),
            _after(
                r"\bi",
                r"(?:'ve|\shave)?\smade\san?\s(?:\w{1,15}\s)?(?:mistake|error)\b",
                r"(?:'ve|\shave)?\s(?:misread|miscounted|miscalculated|misunderstood|misinterpreted|forgot)\b",
                r"(?:'ve|\shave)?\s(?:overlooked|was\swrong|mixed\sup)\b",
                r"(?:'m|\sam|\smay\sbe|\smight\sbe)\s(?:over-?complicating|over-?thinking|mistaken)\b",
                r"(?:'m|\sam|\smay\sbe|\smight\sbe)\s(?:misunderstanding|misreading|confusing)\b",
            ),
            r"\bleads?\sto\sa\scontradiction\b",
            _after(
                _LET_US_NOW,
                r"(?:correct|fix|undo|revise)\s(?:that|this|it|my|the\s(?:mistake|error|last|previous))\b",
                r"(?:go|step)\sback\sto\s(?:the\s)?(?:step|previous|last|line|equation|point|part|where)\b",
            ),
        ),
        counts=("Wait, that's not right.", "I made a mistake in line 2.", "But that doesn't work."),
        does_not_count=("They wait 5 minutes.", "Tom forgot his lunch.", "That's not right-angled."),
    ),
    Behaviour(
        name="restarting",
        meaning="The writer begins the whole solution again, or takes up another way to it.",
        pattern=_any_of(
            _after(
                _LET_US_NOW,
                r"(?:start|begin|try|do|think)(?:\s(?:it|this|that|everything|the\sproblem))?(?:\sall)?\s" + _ONCE_MORE,
                r"(?:redo|rethink|reconsider|re-?read|restart)\b",
                rf"(?:try|use|take|consider|look\sfor|find)\s{_OTHER}\s{_WAY}",
                r"try\ssomething\s(?:else|different|new)\b",
            ),
            _after(
                _SENTENCE,
                rf"(?:starting|beginning)\s(?:all\s)?{_ONCE_MORE}",
                rf"(?:try|trying|using|(?:i|we)\sneed)\s{_OTHER}\s{_WAY}",
                rf"alternatively\b|maybe\sanother\b|another\s{_WAY}\s?[:,.?]",
                r"back\sto\s(?:the\s(?:start|beginning|drawing\sboard)|square\sone)\b",
            ),
        ),
        counts=("Let me start over.", "Let's try a different approach.", "Let me re-read the problem."),
        does_not_count=("The game starts over every hour.", "Let's start with 5.", "He tried a different approach."),
    ),
    Behaviour(
        name="subgoals",
        meaning="The writer announces a part of the work before doing it.",
        pattern=_any_of(
            _after(
                _SENTENCE,
                rf"{_ORDER},?\s(?:maybe\s)?{_LET_US}\b",
                rf"(?:{_ORDER}|now),?\s(?:(?:we|i|you|let's|let\sus|let\sme)\s(?:[\w']{{1,10}}\s){{0,3}})?{_SOLVE}",
                r"\#{0,4}\s?(?:step|part)\s\d{1,2}\s?[:.)*]",
            ),
            r"\b(?:first|now|next|then),?\s(?:we|i)\sneed\b|\b(?:we|i)\s(?:first|now|next|then)\sneed\b",
            rf"{_LET_US}\s(?:first|next)\s{_SOLVE}",
            rf"{_LET_US_NOW}(?:break|split|divide)\s(?:this|that|it|the\s(?:problem|question|task|work|calculation))\b",
            r"\b(?:the|our|my)\s(?:first|second|third|next|last|final)\s(?:step|goal|task)\sis\b",
            r"\bsub-?(?:goal|problem)s?\b",
        ),
        counts=("First, find the price of one.", "Step 2: add the tens.", "Let me break this down."),
        does_not_count=("The first bus leaves at 9.", "First, Tom buys 5 apples.", "He walks 5000 steps."),
    ),
)


def behaviour_metrics(groups: Sequence[RolloutGroup], max_new_tokens: int) -> dict[str, float]:
    """Return `behaviour/*`: the share of completions that show each behaviour, and of long ones.

    All completions count, scored or not; without any the result is empty. `max_new_tokens` is the most a completion may
    have: a long one has more than half of it.
    """
    completions = [rollout.completion for group in groups for rollout in group.rollouts]
    if not completions:
        return {}
    shares = {
        f"behaviour/{behaviour.name}_share": fmean(behaviour.shown_by(each.text) for each in completions)
        for behaviour in BEHAVIOURS
    }
    return shares | {"behaviour/long_share": fmean(each.length > LONG * max_new_tokens for each in completions)}
