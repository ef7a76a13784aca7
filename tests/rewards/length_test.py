"""The penalty for length, with the numbers of the paper."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earned.errors import RecipeError
from earned.recipe import RewardPart
from earned.rewards.checks import make_check
from earned.rewards.length import LengthCheck
from earned.vocabulary import Attempt, Problem, Split


def attempt(tokens, truncated=False):
    problem = Problem(id="p", prompt="47+58=", gold="105", source="sums", split=Split.TRAIN)
    return Attempt(
        problem=problem, text="A105", truncated=truncated, tokens=tokens, seed=0, step=1, rollout_id="train/1/p/0"
    )


def values(check, lengths):
    return [check(attempt(length)).value for length in lengths]


def test_soft_overlong_by_hand():
    check = LengthCheck(max_tokens=20, buffer=4)
    assert values(check, [1, 16, 17, 18, 19, 20, 21, 500]) == [0, 0, -0.25, -0.5, -0.75, -1, -1, -1]


def test_the_buffer_is_a_fifth_of_the_bound_as_in_dapo():
    assert values(LengthCheck(max_tokens=20480), [16384, 18432, 20480]) == [0, -0.5, -1]
    assert values(LengthCheck(max_tokens=20480, buffer=4096), [16384, 18432, 20480]) == [0, -0.5, -1]
    assert values(LengthCheck(max_tokens=3), [1, 2, 3]) == [0, 0, -1]


def test_too_short_by_hand():
    check = LengthCheck(max_tokens=20, buffer=4, min_tokens=8)
    assert values(check, [1, 2, 4, 6, 8, 16, 18]) == [-0.875, -0.75, -0.5, -0.25, 0, 0, -0.5]
    assert values(LengthCheck(max_tokens=20, buffer=4), [1, 2]) == [0, 0]


def test_a_truncated_completion_pays_all_of_it_whatever_its_length():
    check = LengthCheck(max_tokens=1000)
    assert check(attempt(10)).value == 0
    assert check(attempt(10, truncated=True)).value == -1


def test_it_does_not_apply_to_a_text_that_no_model_wrote():
    verdict = LengthCheck(max_tokens=20)(attempt(None))
    assert verdict.value is None and not verdict.applies
    assert LengthCheck(max_tokens=20)(attempt(None, truncated=True)).value == -1


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 400))
def test_longer_is_never_better_and_nothing_is_below_minus_one(most, buffer, length):
    check = LengthCheck(max_tokens=most, buffer=min(buffer, most))
    here, next_one = values(check, [length, length + 1])
    assert -1 <= next_one <= here <= 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"^rewards\.short\.options\.max_tokens: required, but not given$"),
        ({"max_tokens": 20, "buffer": 21}, r"^rewards\.short\.options\.buffer: the buffer is the end .*, not 21$"),
        (
            {"max_tokens": 20, "buffer": 4, "min_tokens": 17},
            r"^rewards\.short\.options\.min_tokens: no length .*not 17$",
        ),
        ({"max_tokens": 20, "min_token": 2}, r"Did you mean 'min_tokens'\?"),
    ],
)
def test_faults_in_the_options_are_named(options, message):
    with pytest.raises(RecipeError, match=message):
        make_check("rewards.short", RewardPart(check="length", options=options))
    assert LengthCheck(max_tokens=20, buffer=4, min_tokens=16), "the last length that is free"
