"""The rules against labelled sentences, gold answers that show none of it, and texts made to be slow.

`behaviours.jsonl` was written before the rules, with as many look-alikes as examples. The sentences of
`behaviours_in_traces.jsonl` are worded after sentences of public reasoning traces, each labelled for all four rules.
"""

import json
import re
import time
from itertools import product
from pathlib import Path

import pytest
from tests.diagnostics.rollouts_test import PROBLEM, RIGHT, UNSCORED, WRONG
from tests.shared_data import shared

from earned.diagnostics.behaviours import BEHAVIOURS, behaviour_metrics
from earned.records.metrics import require_declared
from earned.vocabulary import Completion, Prompt, Rollout, RolloutGroup, Segment, StopReason

HERE = Path(__file__).parent
RULES = {behaviour.name: behaviour for behaviour in BEHAVIOURS}
KNOWN_WRONG = {
    ("backtracking", "Wait, but before I go on, I need to check if this is valid."),
    ("verifying", "Let's check the answer choices: (B) has two novels."),
}


def rows(name):
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def group(*texts, lengths=None, scores=None):
    rollouts = []
    for attempt, text in enumerate(texts):
        length = lengths[attempt] if lengths else 2
        completion = Completion(
            segments=(Segment(token_ids=(5,) * length, sampled=True, sampler_logprobs=(-1.0,) * length),),
            text=text,
            stop_reason=StopReason.EOS,
            policy_version=0,
        )
        score = scores[attempt] if scores else WRONG
        rollouts.append(Rollout(id=f"train/1/sums-1/{attempt}", attempt=attempt, completion=completion, score=score))
    return RolloutGroup(prompt=Prompt(problem=PROBLEM, token_ids=(1,)), rollouts=tuple(rollouts))


def test_every_rule_has_examples_of_both_kinds():
    labelled = [(row["behaviour"], row["shows"]) for row in rows("behaviours.jsonl")]
    assert all(labelled.count(kind) >= 12 for kind in product(RULES, (True, False)))


@pytest.mark.parametrize("row", rows("behaviours.jsonl"), ids=lambda row: row["text"][:40])
def test_sentences_written_before_the_rules(row):
    assert RULES[row["behaviour"]].shown_by(row["text"]) is row["shows"]


def test_sentences_of_reasoning_traces_with_what_is_known_to_be_wrong():
    labelled = rows("behaviours_in_traces.jsonl")
    wrong = {
        (name, row["text"])
        for name, row in product(RULES, labelled)
        if RULES[name].shown_by(row["text"]) is not (name in row["shows"])
    }
    assert wrong == KNOWN_WRONG


@pytest.mark.parametrize("name", RULES)
def test_the_examples_that_document_a_rule_are_true(name):
    rule = RULES[name]
    assert len(rule.counts) == len(rule.does_not_count) == 3
    assert all(map(rule.shown_by, rule.counts)) and not any(map(rule.shown_by, rule.does_not_count))


@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_always_or_never_counts_would_be_found(name):
    """What a rule does beats both of them on sentences that were not written for it."""
    labelled = rows("behaviours_in_traces.jsonl")
    shown = sum(name in row["shows"] for row in labelled)
    assert 8 <= shown < len(labelled) / 2


def test_case_and_the_apostrophe_of_printers_are_the_same():
    assert RULES["verifying"].shown_by("LET’S VERIFY THIS.") and RULES["backtracking"].shown_by("that’s wrong.")


def test_gold_answers_of_gsm8k_neither_check_nor_doubt():
    """Written out by people, forward only: whatever is counted there would be a false alarm."""
    answers = [json.loads(line)["answer"] for line in shared("data/gsm8k_train.jsonl").read_text().splitlines()]
    counts = {name: sum(map(rule.shown_by, answers)) for name, rule in RULES.items()}
    assert (counts["verifying"], counts["backtracking"], counts["restarting"]) == (0, 0, 0)
    assert 0.05 < counts["subgoals"] / len(answers) < 0.15, "these do say what comes first"


UNITS = ["\n", " ", "*", "so ", "so.", "let me ", "i will now ", "wait ", "wait, no ", "first, we a ", "that is ", "hm"]
UNITS += ["substitute ", "let me start it ", "another ", "a more a ", "step ", "x" * 50, "first, we a b c "]


def seconds(search, text):
    start = time.process_time()
    search(text)
    return time.process_time() - start


@pytest.mark.parametrize("unit", UNITS)
def test_the_time_is_in_proportion_to_the_text(unit):
    short, long = (unit * (size // len(unit)) for size in (25_000, 200_000))
    for rule in BEHAVIOURS:
        assert seconds(rule.shown_by, long) < 30 * max(seconds(rule.shown_by, short), 0.002), rule.name


def test_a_rule_that_takes_quadratic_time_would_be_found():
    slow = re.compile(r"(?:^|(?<=\n))\s*x").search
    assert seconds(slow, "\n" * 20_000) > 30 * max(seconds(slow, "\n" * 2_500), 0.002)


def test_metrics_by_hand():
    groups = [
        group("Let me check: 4.", "Wait, that's wrong. Let me check: 5.", lengths=[50, 51], scores=[RIGHT, UNSCORED]),
        group("4", "First, find x. Let me start over.", lengths=[100, 2]),
    ]
    metrics = behaviour_metrics(groups, max_new_tokens=100)
    assert metrics == {
        "behaviour/verifying_share": 0.5,
        "behaviour/backtracking_share": 0.25,
        "behaviour/restarting_share": 0.25,
        "behaviour/subgoals_share": 0.25,
        "behaviour/long_share": 0.5,
    }
    assert all(require_declared(key).unit == "share" for key in metrics)
    assert behaviour_metrics([], max_new_tokens=100) == {}
