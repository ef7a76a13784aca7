r"""`math`: the answer means the same as the gold answer, as mathematics and not as text.

Numbers in any writing are compared exactly, expressions by their value (see `maths/equality.py`), lists, intervals,
sets, equations and matrices part by part. What our grammar does not know, math-verify may still compare. Plain numbers
are compared here, everything else in a process that can be killed: an answer that takes too long is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import cast

from earned.recipe import RewardPart
from earned.recipe_file import Positive, PositiveFloat, validate
from earned.rewards import maths
from earned.rewards.answer import Extraction, answer_of
from earned.rewards.maths.gold import gold_text, read_gold_expression
from earned.rewards.maths.policy import Policy
from earned.rewards.maths.tokens import ANALYSIS
from earned.rewards.number import parse_number
from earned.rewards.user_reward import Resources
from earned.rewards.verdict import Verdict, failure, no_answer, unreadable_gold
from earned.sandbox.workers import Code, Ending, Function, Outcome, WorkerPool
from earned.vocabulary import Attempt, Rule

Pair = tuple[str, str]
"""Gold and answer."""


class MathOptions(Policy):
    """Options of the check."""

    limit_seconds: PositiveFloat = 1.0
    """Of one comparison, from the moment it runs."""
    memory_mb: Positive = 1024
    """Address space of the process that compares, in MiB."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MathCheck:
    """1 when the answer means what the gold means, else 0; unscored when the gold is nothing that can be compared."""

    pool: WorkerPool
    options: MathOptions
    ours: Function
    second_opinion: Function

    def judge(self, attempts: Mapping[str, Attempt]) -> dict[str, Verdict]:
        """Judge all attempts; equal answers to equal golds are compared once."""
        read = {name: answer_of(attempt) for name, attempt in attempts.items()}
        pairs = {
            name: (gold, extraction.answer)
            for name, extraction in read.items()
            if (gold := _readable(attempts[name].problem.gold)) is not None and extraction.answer is not None
        }
        verdicts = self._compared(list(dict.fromkeys(pairs.values())))
        return {
            name: verdicts[pairs[name]] if name in pairs else _without_comparison(attempts[name], extraction)
            for name, extraction in read.items()
        }

    def _compared(self, pairs: list[Pair]) -> dict[Pair, Verdict]:
        plain = {pair: verdict for pair in pairs if (verdict := self._plain_verdict(pair)) is not None}
        rest = [pair for pair in pairs if pair not in plain]
        policy = self.options.model_dump(include=set(Policy.model_fields))
        first = self._asked(self.ours, rest, {"policy": policy})
        unread = [p for p in rest if first[p].rule is Rule.UNREADABLE and any(name in p[1] for name in ANALYSIS)]
        return plain | first | self._asked(self.second_opinion, unread, {})

    def _plain_verdict(self, pair: Pair) -> Verdict | None:
        """Compare two plain numbers; None when one of them is anything else, or an option may make them equal."""
        wanted, given = (parse_number(text) for text in pair)
        if wanted is None or given is None:
            return None
        if wanted == given:
            return _said(pair, Rule.EQUAL, f"is {pair[0]}")
        lenient = self.options.tolerance > 0 or self.options.decimal_comma
        return None if lenient else _said(pair, Rule.DIFFERENT, f"is not {pair[0]}")

    def _asked(self, function: Function, pairs: list[Pair], more: Mapping[str, object]) -> dict[Pair, Verdict]:
        """Ask the pool; a pair at which the process dies is asked again, since it may not have been its doing."""
        requests = {(gold, answer): {"gold": gold, "answer": answer, **more} for gold, answer in pairs}
        outcomes = self.pool.call_all(function, requests)
        died = {pair: requests[pair] for pair, outcome in outcomes.items() if outcome.ending is Ending.DIED}
        outcomes |= self.pool.call_all(function, died)
        return {pair: _verdict(pair, outcome) for pair, outcome in outcomes.items()}


def math_check(where: str, part: RewardPart, resources: Resources) -> MathCheck:
    """Return the check that a part describes; `where` is its table in the recipe, such as `rewards.answer`.

    Raises:
        RecipeError: for an unknown or refused option.
    """
    options = validate(MathOptions, part.options, f"{where}.options")
    return MathCheck(
        pool=resources.pool,
        options=options,
        ours=_function("worker.py", options),
        second_opinion=_function("second_opinion.py", options),
    )


def _function(file: str, options: MathOptions) -> Function:
    code = Code.read(str(Path(maths.__path__[0]) / file))
    return Function(code=code, name="compare", seconds=options.limit_seconds, memory_mb=options.memory_mb)


@lru_cache(maxsize=4096)
def _readable(gold: str | None) -> str | None:
    """Return the text of a gold that an answer can be compared with, None for any other."""
    if gold is None or (parse_number(gold) is None and read_gold_expression(gold) is None):
        return None
    return gold_text(gold)


def _without_comparison(attempt: Attempt, extraction: Extraction) -> Verdict:
    gold = attempt.problem.gold
    if _readable(gold) is not None:
        return no_answer(extraction.reason)
    shown = None if gold is None else gold[:80]
    return unreadable_gold(f"the gold answer {shown!r} is nothing that can be compared")


def _verdict(pair: Pair, outcome: Outcome) -> Verdict:
    if outcome.ending is Ending.RETURNED:
        rule, reason = cast(list[str], outcome.value)
        return _said(pair, Rule(rule), f"{reason} (gold: {pair[0][:80]})")
    if outcome.ending is Ending.TIMED_OUT:
        return _said(pair, Rule.TIMED_OUT, f"took too long to compare: it {outcome.detail.partition(',')[0]}")
    if outcome.ending is Ending.DIED or outcome.detail.startswith(MemoryError.__name__):
        return _said(pair, Rule.UNREADABLE, f"ends the process that compares it: {outcome.detail}")
    return failure(f"comparing {pair[1]!r} with {pair[0]!r} failed: {outcome.detail}")


def _said(pair: Pair, rule: Rule, reason: str) -> Verdict:
    answer = pair[1]
    shown = answer if len(answer) <= 80 else answer[:77] + "..."
    return Verdict(value=float(rule is Rule.EQUAL), extracted=answer, explanation=f"{shown!r} {reason}", rule=rule)
