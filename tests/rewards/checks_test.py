import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earned.rewards.controls import ConstantReward, RandomReward
from earned.rewards.exact import ExactCheck
from earned.rewards.number import NumberCheck, parse_number
from earned.vocabulary import Attempt, Problem, Split


def attempt(text, gold="124", rollout_id="train/1/p/0"):
    problem = Problem(id="p", prompt="47+58+19=", gold=gold, source="sums", split=Split.TRAIN)
    return Attempt(problem=problem, text=text, seed=0, step=1, rollout_id=rollout_id)


NOTHING_EARNED = [
    "",
    " ",
    "\n\n",
    "47+58+19=",
    "47+58+19=",
    ":",
    "A",
    "A ",
    "####",
    "Answer:",
    "Answer: A",
    "0123456789",
    "A0123456789",
    "#### 0 1 2 3 4 5 6 7 8 9",
    "NaN",
    "#### NaN",
    "#### inf",
    "#### 1e999",
    "A1e999",
    "#### 1.24e2",
    "#### 248/2",
    "#### 100+24",
    "#### 124%",
    "#### $124",
    "#### 12,4",
    "#### 1,24",
    "#### 124..",
    "#### 124,",
    "#### --124",
    "#### 0x7C",
    "#### 1 24",
    "#### 1_24",
    "#### １２４",
    "#### ١٢٤",
    "#### 12\u200b4",
    "A１２４",
    "".join(f"A{n}" for n in range(200)),
    " ".join(f"A{n}" for n in range(200)),
    "A124 or A125",
    "A124, A125",
    "#### 124 or 125",
    "#### 124\n#### 125",
    "#### [124, 125]",
    "A123.99999999999999999999999999999",
    "124 or 125",
    "124? 125?",
    "it is not 124",
    "47 and 77 make 124",
    "124/1",
    "#### 124 is my answer",
    "#### 124\n" + "and more, 125",
    "#### None",
    "#### gold",
    "#### {gold}",
    "#### *",
    "#### 124\x00",
    "\ud800",
    "#### \ud800124",
]


@pytest.mark.parametrize("check", [NumberCheck(), ExactCheck()], ids=["number", "exact"])
@pytest.mark.parametrize("text", NOTHING_EARNED)
def test_nothing_is_paid_for_nothing(check, text):
    verdict = check(attempt(text))
    assert verdict.value == 0
    assert verdict.explanation


@pytest.mark.parametrize("check", [NumberCheck(), ExactCheck()], ids=["number", "exact"])
@pytest.mark.parametrize("unit", ["A124 ", "####", "9", "A", "124", "#### 124\n", "Answer: 124 or ", "1,", "-", "."])
def test_huge_texts_are_judged_within_a_second(check, unit):
    text = unit * (1_000_000 // len(unit))
    start = time.perf_counter()
    assert check(attempt(text + "?")).value == 0
    assert check(attempt("#### " + text + "?")).value == 0
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("A124", "124"),
        ("47+58=105;105+19=124;A124", "124"),
        ("A125? No. A124.", "124"),
        ("#### 1,024", "1024"),
        ("#### 1024.0", "1,024"),
        ("A007", "7"),
        ("#### -0", "0"),
        ("#### +5", "5.00"),
        ("Answer: -1,234,567.50", "-1234567.5"),
        ("A0.1", ".1".rjust(3, "0")),
        ("#### " + "9" * 100, "9" * 100),
        ("A124", " 124\n"),
    ],
)
def test_number_accepts(text, gold):
    verdict = NumberCheck()(attempt(text, gold))
    assert verdict.value == 1
    assert verdict.extracted is not None


def test_number_compares_exactly():
    nines = "9" * 60
    assert NumberCheck()(attempt(f"#### {nines}", nines)).value == 1
    assert NumberCheck()(attempt(f"#### {nines[:-1]}8", nines)).value == 0
    assert NumberCheck()(attempt("#### 0.30000000000000004", "0.3")).value == 0
    assert float("0.30000000000000004") != 0.3 and float(nines) == float(nines[:-1] + "8"), "floats would be fooled"


@given(st.integers(), st.integers(0, 3))
def test_every_writing_of_a_number_is_that_number(number, zeros):
    writings = [str(number), f"{number:,}", f"{number}.{'0' * zeros}" if zeros else f"{number:+}", f"{number:030}"]
    assert {parse_number(text) for text in writings} == {number}


@given(st.text(alphabet="0123456789,.+-eE_ inf", max_size=12))
def test_what_is_parsed_is_what_float_reads(text):
    number = parse_number(text)
    if number is not None:
        assert float(number) == float(text.replace(",", ""))


def test_digits_are_limited():
    assert parse_number("1" * 100) is not None
    assert parse_number("1" * 101) is None
    assert parse_number("0." + "0" * 100) is None


@pytest.mark.parametrize("gold", [None, "", "a dozen", "1e3", "NaN", "12,4"])
@pytest.mark.parametrize("text", ["A124", "", "#### NaN", "#### a dozen", "#### 1e3"])
def test_number_without_a_gold_number_is_unscored(gold, text):
    assert NumberCheck()(attempt(text, gold)).value is None


@pytest.mark.parametrize(
    ("text", "gold", "value"),
    [
        ("Answer: Paris", "Paris", 1),
        ("#### Paris.", "Paris", 1),
        ("#### Paris", " Paris. ", 1),
        ("#### cafe\u0301", "caf\u00e9", 1),
        ("#### paris", "Paris", 0),
        ("#### Paris, France", "Paris", 0),
        ("#### 124.0", "124", 0),
        ("Paris", "Paris", 0),
    ],
)
def test_exact(text, gold, value):
    assert ExactCheck()(attempt(text, gold)).value == value


@pytest.mark.parametrize("gold", [None, "", " . ", "two\nlines", "A5", "x" * 401, "#### 3"])
def test_exact_is_unscored_when_the_gold_cannot_be_answered(gold):
    assert ExactCheck()(attempt("#### 5", gold)).value is None


def test_random_reward_knows_nothing_of_the_text_and_comes_again():
    keys = [f"train/1/p/{n}" for n in range(2000)]
    check = RandomReward(p=0.3)
    values = [check(attempt("A124", rollout_id=key)).value for key in keys]
    assert values == [check(attempt("wrong", gold=None, rollout_id=key)).value for key in keys]
    assert set(values) == {0.0, 1.0}
    assert abs(sum(values) / len(values) - 0.3) < 0.035
    assert values != [check(replace(attempt("A124", rollout_id=key), step=2)).value for key in keys]
    assert values != [check(replace(attempt("A124", rollout_id=key), seed=1)).value for key in keys]
    assert {RandomReward(p=0)(attempt("", rollout_id=key)).value for key in keys} == {0.0}
    assert {RandomReward(p=1)(attempt("", rollout_id=key)).value for key in keys} == {1.0}


def test_constant_reward():
    assert ConstantReward(value=-0.5)(attempt("anything")).value == -0.5
