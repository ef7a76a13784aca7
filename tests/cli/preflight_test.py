"""What is out of reach is said by the command line before training begins."""

import json

import pytest

from earned.records.reader import RunReader

HOPELESS = ("train", "recipe.toml", "--rewards.luck.check", "number", "--preflight-tries", "32", "--run", "a")
OWN = """
def short(completions, **kwargs):
    return [-float(len(text)) for text in completions]
"""


@pytest.fixture
def without_gold(workplace):
    (workplace / "my.jsonl").write_text("".join(f'{{"question": "Be kind to {n}."}}\n' for n in range(40)))
    (workplace / "own.py").write_text(OWN)
    return ("train", "recipe.toml", "--problems", '{source = "my.jsonl", train = 16}', "--run", "a")


def test_problems_without_gold_and_no_judge_exit_2(earned, workplace, without_gold):
    ended = earned(*without_gold, "--rewards.luck.check", "number")
    assert (ended.code, ended.out) == (2, "") and "Traceback" not in ended.err
    assert "my.jsonl: not one of its 16 training problems has an answer that the check 'number'" in ended.err
    assert "RLHF: preferences -> reward model -> training against it" in ended.err
    assert not (workplace / "runs").exists()


def test_a_reward_of_ones_own_needs_no_gold_and_is_shown_instead_of_accuracy(earned, workplace, without_gold):
    ended = earned(*without_gold, "--rewards.luck.check", "own.py:short", "--json")
    assert ended.code == 0
    row = json.loads(ended.out)
    assert row["accuracy_before"] is None and row["accuracy_after"] is None
    (_, first), (_, last) = RunReader(workplace / "runs" / "a").metric("reward/mean")
    said = " ".join(ended.err.split())
    assert "no accuracy for the validation and held-out problems" in said
    assert "the held-out problems have no answer that the evaluation's check can read" in said
    assert f"training reward {first:.3f} at step 1, {last:.3f} at step 2" in said
    assert "the most likely completion of the same problems" in said and "wrong" not in said


def test_a_hopeless_start_exits_1_and_says_what_to_change(earned, workplace):
    ended = earned(*HOPELESS)
    assert ended.code == 1 and ended.err.startswith("PreflightError") and "Traceback" not in ended.err
    assert "32 attempts (preflight_tries) at 8 training problems taught nothing" in ended.err
    assert 'rewards.allow = ["no_signal"]' in ended.err
    assert not (workplace / "runs").exists()
    assert earned(*HOPELESS, "--rewards.allow", '["no_signal"]').code == 0


def test_a_run_that_exists_is_refused_before_the_pre_flight(earned, workplace):
    (workplace / "runs" / "a").mkdir(parents=True)
    (workplace / "runs" / "a" / "notes.txt").write_text("")
    ended = earned(*HOPELESS)
    assert ended.code == 2 and "this run exists already" in ended.err


def test_the_estimate_is_one_line_before_the_first_measurement(earned):
    lines = earned("train", "recipe.toml").out.splitlines()
    assert lines[0].startswith("2 steps of 16 completions: about ") and lines[0].endswith(" GB")
    assert lines[1].startswith("step    0  validation")
