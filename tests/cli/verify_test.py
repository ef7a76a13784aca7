"""`earned verify`: its line of JSON, its report and its exit codes."""

import json

import pytest

ROWS = [
    {"id": "a", "gold": "5", "response": "#### 5", "accept": True},
    {"id": "b", "gold": "5", "response": "#### 6", "accept": False},
    {"id": "c", "gold": "7", "response": "seven\u202e [bold]", "accept": True, "contested": True},
]
WORDS = ("--checker", "number", "--cases", "cases.jsonl")
WRONG = {"id": "d", "gold": "5", "response": "so five", "accept": True}


@pytest.fixture
def cases(workplace):
    def write(*rows):
        (workplace / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return "verify", *WORDS

    return write


def test_the_line_of_json_has_these_keys_and_no_others(earned, cases):
    ended = earned(*cases(*ROWS), "--json")
    row = json.loads(ended.out)
    assert (ended.code, ended.err) == (0, "")
    assert row.pop("seconds") >= 0
    rate = {"value": 0.0, "low": 0.0, "high": pytest.approx(0.793, abs=1e-3)}
    assert row == {
        "n": 3,
        "false_accepts": [],
        "false_rejects": [],
        "contested": [{"id": "c", "expected": True, "given": False}],
        "timeouts": [],
        "unscored": [],
        "false_accept_rate": rate,
        "false_reject_rate": rate,
    }


def test_a_wrong_verdict_exits_1_and_is_shown_with_its_reason(earned, cases):
    ended = earned(*cases(*ROWS, WRONG))
    assert (ended.code, ended.err) == (1, "")
    assert "number on 4 cases of cases.jsonl" in ended.out
    assert "false rejects     1  50.0% [9.5%, 90.5%] of the right answers" in ended.out
    assert (
        "d: false reject\n  gold      5\n  response  so five\n  read      no answer\n  because   no_answer: "
        in ended.out
    )
    assert "c: contested, not as labelled" in ended.out and r"seven\u202e [bold]" in ended.out


def test_no_cases_exit_1(earned, cases):
    ended = earned(*cases())
    assert ended.code == 1 and "no cases: nothing was measured" in ended.out
    row = json.loads(earned(*cases(), "--json").out)
    assert row["n"] == 0 and row["false_accept_rate"] == {"value": None, "low": None, "high": None}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--checker", "number", "--cases", "none.jsonl"), "none.jsonl: no such file"),
        (("--checker", "numbr", "--cases", "cases.jsonl"), "verify.check: unknown check 'numbr'"),
        ((*WORDS, "--options.digits", "3"), "verify.options.digits: unknown key"),
        ((*WORDS, "--weight", "3"), "--weight: no such flag here"),
    ],
)
def test_a_mistake_exits_2(earned, cases, words, message):
    cases(*ROWS)
    ended = earned("verify", *words)
    assert (ended.code, ended.out) == (2, "") and message in " ".join(ended.err.split())
