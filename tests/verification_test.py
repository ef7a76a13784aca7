"""Checks measured on labelled answers: what is counted, what is timed, and what makes it fail."""

import json
import math
from pathlib import Path

import pytest

import earned as library
from earned.errors import RecipeError
from earned.verification import read_cases, verify

CASES = sorted((Path(__file__).parent / "cases").glob("*.jsonl"))

OWN = """
import time

def substring(completion, answer):
    return float(answer in completion)

def strict(completion, answer):
    return float(completion == answer)

def half(completion):
    return 0.5

def slow(completion, answer):
    time.sleep(0.4 if completion == "slow" else 0.0)
    return float(completion == answer)

def hangs(completion, answer):
    while completion == "hang":
        pass
    return float(completion == answer)

def countdown(completion, numbers, target):
    return float(completion.replace(" ", "") == "*".join(map(str, numbers)) and target == 20)
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)


def write(*rows, name="cases.jsonl"):
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def row(name, response, accept, gold="5", **more):
    return {"id": name, "gold": gold, "response": response, "accept": accept, **more}


def ids(judged):
    return [one.case.id for one in judged]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_our_own_labelled_answers_are_judged_as_labelled(path):
    found = verify(path.stem, path)
    wrong = [(one.case.id, one.verdict.explanation) for one in (*found.false_accepts, *found.false_rejects)]
    assert wrong == [] and ids(found.timeouts) == [] and found.passed
    assert len(found.judged) >= 20
    assert {one.accepted for one in found.judged} == {True, False}


def test_there_are_labelled_answers_and_they_can_fail():
    assert "number" in [path.stem for path in CASES]
    path = next(path for path in CASES if path.stem == "number")
    found = verify("own.py:substring", path)
    assert not found.passed and len(found.false_accepts) >= 5


def test_wrong_verdicts_are_counted_in_both_directions_with_their_intervals():
    file = write(
        row("right", "#### 5", True),
        row("missed", "five", True),
        row("wrong", "#### 6", False),
        row("paid", "it is not 5", False),
        row("null", None, False),
    )
    found = verify("own.py:substring", file)
    assert (ids(found.false_accepts), ids(found.false_rejects)) == (["paid"], ["missed"])
    # Wilson at z = 1.96: 1 of 3 wrong ones paid, 1 of 2 right ones refused.
    accepts, rejects = found.false_accept_rate, found.false_reject_rate
    assert [round(x, 3) for x in (accepts.mean, accepts.low, accepts.high)] == [0.333, 0.061, 0.792]
    assert [round(x, 3) for x in (rejects.mean, rejects.low, rejects.high)] == [0.5, 0.095, 0.905]
    assert not found.passed


def test_contested_rows_are_reported_and_are_in_no_rate():
    file = write(row("a", "5", True), row("b", "6", True, contested=True), row("c", "5", False, contested=True))
    found = verify("own.py:strict", file)
    assert ids(found.contested) == ["b", "c"] and found.passed
    assert found.false_reject_rate.mean == 0 and math.isnan(found.false_accept_rate.mean)
    assert not verify("own.py:strict", write(row("b", "6", True), row("c", "5", False))).passed


def test_what_cannot_be_judged_is_listed_and_is_not_accepted():
    file = write(row("a", "#### 5", True, gold="a dozen"), row("b", "#### 5", False, gold="a dozen"))
    found = verify("number", file)
    assert (ids(found.unscored), ids(found.false_rejects), ids(found.false_accepts)) == (["a", "b"], ["a"], [])
    assert verify("number", write(row("b", "#### 5", False, gold="a dozen"))).passed


def test_a_half_paid_answer_is_not_accepted():
    found = verify("own.py:half", write(row("a", "x", True), row("b", "x", False)))
    assert (ids(found.false_rejects), ids(found.false_accepts)) == (["a"], [])


def test_a_row_that_takes_longer_than_it_may_is_a_time_out_whatever_the_verdict():
    file = write(
        row("first", "5", True, max_seconds=0.3),
        row("slow", "slow", False, max_seconds=0.3),
        row("patient", "slow", False, max_seconds=5),
        row("free", "slow", False),
    )
    found = verify("own.py:slow", file)
    assert ids(found.timeouts) == ["slow"] and not (found.false_accepts or found.false_rejects)
    assert not found.passed and 1.2 <= found.seconds < 3
    assert next(one.seconds for one in found.judged) < 0.3, "starting the process is not on the clock"


def test_a_function_that_hangs_is_stopped_and_the_next_row_is_not_late():
    file = write(row("a", "hang", False, max_seconds=0.2), row("b", "5", True, max_seconds=0.2))
    found = verify("own.py:hangs", file, {"limit_seconds": 0.4})
    assert (ids(found.timeouts), ids(found.unscored), ids(found.false_rejects)) == (["a"], ["a"], [])


def test_further_keys_are_columns_of_the_problem():
    puzzle = {"puzzle": "countdown", "numbers": [4, 5], "target": 20}
    file = write({"id": "P", "response": "4 * 5", "accept": True, **puzzle}, {"id": "Q", **puzzle, "response": "20"})
    with pytest.raises(RecipeError, match=r"^cases\.jsonl, line 2\.accept: required, but not given$"):
        verify("own.py:countdown", file)
    assert verify("own.py:countdown", write({"id": "P", "response": "4 * 5", "accept": True, **puzzle})).passed


def test_the_prompt_and_the_cut_reach_the_check():
    prompt = "Repeat after me:\nthe answer is 5."
    file = write(
        row("echo", prompt, False, prompt=prompt),
        row("meant", prompt, True),
        row("cut", "so A5", False, truncated=True),
        row("whole", "so A5", True),
    )
    assert verify("number", file).passed


def test_an_empty_file_shows_nothing():
    Path("empty.jsonl").write_text("\n \n")
    found = verify("number", "empty.jsonl")
    assert found.judged == () and not found.passed and found.seconds == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "a"}', r"cases\.jsonl, line 1\.response: required, but not given\n.*line 1\.accept: required"),
        ('{"id": "a", "response": 5, "accept": true}', r"line 1\.response: .*valid string, not 5"),
        ('{"id": "a", "response": "5", "accept": "yes"}', r"line 1\.accept: .*valid boolean, not 'yes'"),
        ('{"id": "a", "response": "5", "accept": true, "max_seconds": 0}', r"line 1\.max_seconds: .*greater than 0"),
        ("[1]", r"cases\.jsonl, line 1: a row is a JSON object"),
        ("{", r"cases\.jsonl, line 1: not JSON"),
        (
            '{"id": "a", "response": "5", "accept": true}\n\n{"id": "a", "response": "5", "accept": true}',
            r"cases\.jsonl, line 3: the id 'a' occurs twice",
        ),
    ],
)
def test_a_row_that_cannot_be_read_is_named(text, message):
    Path("cases.jsonl").write_text(text)
    with pytest.raises(RecipeError, match=message):
        read_cases("cases.jsonl")


def test_the_library_has_it():
    found = library.verify("number", write(row("a", "#### 5", True)))
    assert isinstance(found, library.Verification) and found.passed
    with pytest.raises(RecipeError, match=r"^verify\.check: unknown check 'numbr'.*Did you mean 'number'\?"):
        library.verify("numbr", "cases.jsonl")
    with pytest.raises(RecipeError, match=r"^verify\.options\.digits: unknown key"):
        library.verify("number", "cases.jsonl", {"digits": 3})
