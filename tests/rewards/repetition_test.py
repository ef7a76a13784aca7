"""The penalty for repetition."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earned.problems.sums import SumsOptions, long_answer, stream
from earned.rewards.repetition import RepetitionCheck
from earned.vocabulary import Attempt, Problem, Split

STRICT = RepetitionCheck(threshold=0.0)


def attempt(text, truncated=False):
    problem = Problem(id="p", prompt="47+58=", gold="105", source="sums", split=Split.TRAIN)
    return Attempt(problem=problem, text=text, truncated=truncated, seed=0, step=1, rollout_id="train/1/p/0")


def test_by_hand():
    check = RepetitionCheck(n=2, threshold=0.0)
    assert check(attempt("a b c d")).value == 0
    assert check(attempt("a b a b a b")).value == pytest.approx(-3 / 5), "five pairs, of which ab and ba come again"
    assert RepetitionCheck(n=2, threshold=0.2)(attempt("a b a b a b")).value == pytest.approx(-(0.6 - 0.2) / 0.8)
    assert RepetitionCheck(n=2, threshold=0.6)(attempt("a b a b a b")).value == 0
    assert check(attempt("A b. a B.")).value == check(attempt("a b . a b .")).value == pytest.approx(-2 / 5)


@pytest.mark.parametrize("text", ["", " ", "a", "a a", "a a a a"])
def test_what_is_too_short_to_repeat_itself_costs_nothing(text):
    assert STRICT(attempt(text)).value == 0


LOOPS = ["so ", "wait, ", "!", "7+7=14;", "abc", "x", "\n#### 7", "\u4f60\u597d", "0", "The answer is 7. "]


@pytest.mark.parametrize("unit", LOOPS)
def test_a_loop_costs_nearly_all_also_without_spaces(unit):
    assert RepetitionCheck()(attempt(unit * 400)).value < -0.8


def test_derivations_of_sums_cost_nothing():
    problems = [problem for problem, _ in zip(stream(SumsOptions(), seed=0), range(300), strict=False)]
    assert {RepetitionCheck()(attempt(long_answer(problem.prompt))).value for problem in problems} == {0.0}


@given(st.text(alphabet="ab1 .;\n", max_size=80), st.integers(1, 5), st.sampled_from([0.0, 0.2, 0.9]))
def test_it_is_a_penalty_of_at_most_one(text, n, threshold):
    value = RepetitionCheck(n=n, threshold=threshold)(attempt(text)).value
    assert value is not None and -1 <= value <= 0


@given(st.text(alphabet="ab ", min_size=10, max_size=60))
def test_saying_it_all_again_never_costs_less(text):
    assert STRICT(attempt(f"{text} {text}")).value <= STRICT(attempt(text)).value


def test_a_truncated_completion_pays_all_of_it():
    assert STRICT(attempt("a b c d e")).value == 0
    assert STRICT(attempt("a b c d e", truncated=True)).value == -1


@pytest.mark.parametrize("unit", ["a", "a ", "!", "ab cd ", " "])
def test_a_million_characters_take_less_than_two_seconds(unit):
    start = time.process_time()
    STRICT(attempt(unit * (1_000_000 // len(unit))))
    assert time.process_time() - start < 2
