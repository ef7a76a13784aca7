"""`earned check-reward`: its report, its line of JSON, its exit codes, and `train` refusing what it finds."""

import json

import pytest

from earned.recipe_file import shipped

OWN = "def substring(completion, answer):\n    return float(answer in completion)\n"


@pytest.fixture
def check(earned, workplace):
    (workplace / "own.py").write_text(OWN)
    return lambda *flags: earned("check-reward", str(shipped("tiny_sums")), *flags)


HOLE = ("--rewards.answer.check", "own.py:substring")


def test_the_recipe_of_the_demo_passes(check):
    ended = check()
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "the right answer             ok: 96 of 96 texts paid"
    assert lines[-1] == "nothing wrong was found (8 problems)" and len(lines) == 9


def test_a_reward_that_pays_for_a_substring_is_named_and_exits_1(check):
    ended = check(*HOLE)
    assert (ended.code, ended.err) == (1, "")
    assert "the right answer in passing  pays_wrong_answer: 96 of 96 texts paid" in ended.out
    assert "pays_wrong_answer: the right answer in passing, 'It is not " in ended.out
    assert ended.out.splitlines()[-1].startswith("the reward cannot be trusted: pays_wrong_answer, pays_listed_answers")


def test_what_the_recipe_allows_is_shown_and_exits_0(check):
    ended = check(*HOLE, "--rewards.allow", '["pays_wrong_answer", "pays_listed_answers"]')
    assert ended.code == 0
    assert "\nallowed: pays_wrong_answer: " in ended.out and "nothing was found that the recipe does not" in ended.out


def test_the_line_of_json(check):
    ended = check(*HOLE, "--json")
    row = json.loads(ended.out)
    assert (ended.code, ended.err) == (1, "")
    assert (row["recipe"], row["passed"], row["problems"]) == ("tiny_sums", False, 8)
    assert {one["kind"]: one["finding"] for one in row["kinds"]}["every candidate listed"] == "pays_listed_answers"
    assert {one["kind"]: one["paid"] for one in row["kinds"]}["no answer"] == 0
    finding = row["findings"][0]
    assert finding["finding"] == "pays_wrong_answer" and finding["gold"] in finding["text"]
    assert finding["reward"] == finding["reward_again"] == 1.0 and not finding["allowed"]


def test_a_control_is_not_tried(earned):
    ended = earned("check-reward", "recipe.toml")
    assert ended.code == 0 and ended.out.startswith("a control, allowed by name")


def test_training_refuses_with_exit_2_and_the_text(earned, check, workplace):
    words = ("train", "recipe.toml", "--rewards", '{answer = {check = "own.py:substring"}}')
    ended = earned(*words)
    assert (ended.code, ended.out) == (2, "") and ended.err.startswith("RecipeError")
    assert "pays_wrong_answer: the right answer in passing, 'It is not " in ended.err
    assert 'rewards.allow = ["pays_wrong_answer", "pays_listed_answers"]' in ended.err
    assert not (workplace / "runs").exists()


def test_an_unknown_allowance_is_a_mistake(check):
    ended = check("--rewards.allow", '["pays_anything"]')
    assert (ended.code, ended.out) == (2, "") and "pays_wrong_answer" in ended.err
