"""The form of a completion, and what does not pass for it."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earned.errors import RecipeError
from earned.recipe import RewardPart
from earned.rewards.checks import make_check
from earned.rewards.format import MATCH_SECONDS, FormatCheck
from earned.vocabulary import Attempt, Problem, Rule, Split

TAGS = FormatCheck(tags=("think", "answer"))
GOOD = "<think>47+58=105</think>\n<answer>105</answer>"


def attempt(text, truncated=False):
    problem = Problem(id="p", prompt="47+58=", gold="105", source="sums", split=Split.TRAIN)
    return Attempt(problem=problem, text=text, truncated=truncated, seed=0, step=1, rollout_id="train/1/p/0")


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n {GOOD} \n",
        "<think>1</think><answer>2</answer>",
        "<THINK>1</THINK><Answer>2</Answer>",
        "<think>if 3 < 4 and 5 > 2</think><answer>7</answer>",
        "<think>a <b>bold</b> word</think><answer>two\nlines</answer>",
    ],
)
def test_the_form_is_paid(text):
    assert TAGS(attempt(text)).value == 1


JUNK = {
    "nothing": "",
    "no tags": "105",
    "empty thoughts": "<think></think>a",
    "bare tags": "<think></think><answer></answer>",
    "white space": "<think> \n </think><answer>105</answer>",
    "dots for thoughts": "<think>...</think><answer>105</answer>",
    "an invisible space": "<think>\u200b</think><answer>105</answer>",
    "no answer": "<think>1</think>",
    "text before": f"So: {GOOD}",
    "text between": "<think>1</think> so <answer>2</answer>",
    "text after": f"{GOOD}!",
    "twice": GOOD + GOOD,
    "one tag twice": "<think>1</think><answer>2</answer><answer>3</answer>",
    "the other order": "<answer>2</answer><think>1</think>",
    "nested": "<think>1<answer>2</answer></think>",
    "crossed": "<think>1<answer></think>2</answer>",
    "not closed": "<think>1</think><answer>2",
    "not opened": "1</think><answer>2</answer>",
    "closed first": "</think>1<think><answer>2</answer>",
    "a stray close": "<think>1</think></think><answer>2</answer>",
    "a stray close in letters of the other case": "<think>1</THINK></think><answer>2</answer>",
    "another tag": "<thinking>1</thinking><answer>2</answer>",
}


@pytest.mark.parametrize("text", JUNK.values(), ids=JUNK)
def test_junk_pays_nothing_and_the_reason_is_said(text):
    verdict = TAGS(attempt(text))
    assert verdict.value == 0 and verdict.explanation != TAGS(attempt(GOOD)).explanation


def test_the_reason_names_the_tag():
    assert TAGS(attempt("<think>1</think>2")).explanation == "<answer> should come where the end is"
    assert TAGS(attempt(GOOD + "</think>")).explanation == "the end should come where </think> is"
    assert TAGS(attempt("<think> </think><answer>2</answer>")).explanation == "nothing is written inside <think>"
    assert TAGS(attempt(f"x{GOOD}")).explanation == "text stands outside the tags"


def test_a_template_that_wrote_the_first_tag_already():
    written = GOOD.removeprefix("<think>")
    prefilled = FormatCheck(tags=("think", "answer"), prefilled=True)
    assert TAGS(attempt(written)).value == 0, "the fault that the option mends"
    assert prefilled(attempt(written)).value == 1
    assert prefilled(attempt(GOOD)).value == 0, "the tag would stand there twice"


@given(st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "a", " "]), max_size=9))
def test_what_is_paid_is_what_a_plain_pattern_takes(pieces):
    text = "".join(pieces)
    form = re.compile(r" *<think> *a[a ]*</think> *<answer> *a[a ]*</answer> *")
    assert TAGS(attempt(text)).value == bool(form.fullmatch(text))


def test_a_pattern_has_to_match_the_whole_text():
    check = FormatCheck(pattern=r"(\d+\+\d+=\d+;)+A\d+")
    assert check(attempt("47+58=105;105+19=124;A124")).value == 1
    assert check(attempt("47+58=105;A105\n")).value == 0
    assert check(attempt("So 47+58=105;A105")).value == 0
    assert FormatCheck(pattern=r"(?s)<think>.+</think>.*")(attempt("<think>a\nb</think>\nc")).value == 1


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 5000 + "!"),
        ("(a|aa)+$", "a" * 5000 + "!"),
        (r"(\w+\s?)+:", "word " * 2000),
        (".*.*.*.*=x", "=" * 5000),
    ],
)
def test_a_pattern_that_would_never_end_is_cut_off(pattern, text):
    start = time.process_time()
    verdict = FormatCheck(pattern=pattern)(attempt(text))
    assert verdict.value == 0
    assert time.process_time() - start < 10 * MATCH_SECONDS


def test_a_cut_off_pattern_says_so():
    verdict = FormatCheck(pattern="(a|aa)+$")(attempt("a" * 100 + "!"))
    assert verdict.rule is Rule.TIMED_OUT and "the pattern took longer" in verdict.explanation


@pytest.mark.parametrize("check", [TAGS, FormatCheck(pattern="(?s).*")], ids=["tags", "pattern"])
def test_a_truncated_completion_is_never_paid(check):
    assert check(attempt(GOOD)).value == 1
    assert check(attempt(GOOD, truncated=True)).value == 0


@pytest.mark.parametrize("unit", ["<think>", "<think></think>", "<", "<think", GOOD, "a", " ", "</"])
def test_a_million_characters_take_less_than_a_second(unit):
    text = unit * (1_000_000 // len(unit))
    start = time.process_time()
    TAGS(attempt(text))
    TAGS(attempt(f"<think>{text}</think><answer>{text}</answer>"))
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"^rewards\.form\.options\.pattern: give either tags, for example .*, or a pattern"),
        ({"tags": ["think"], "pattern": ".*"}, r"^rewards\.form\.options\.pattern: give either tags"),
        ({"pattern": "(a"}, r"^rewards\.form\.options\.pattern: is no regular expression: missing \).*'\(a'"),
        ({"tags": ["a b"]}, r"^rewards\.form\.options\.tags\.0: .*'a b'"),
        ({"tags": ["<think>"]}, r"^rewards\.form\.options\.tags\.0: "),
        ({"tags": ["think", "Think"]}, r"^rewards\.form\.options\.tags: every tag stands exactly once"),
        ({"pattern": ".*", "prefilled": True}, r"rewards\.form\.options\.prefilled: there is no first tag"),
        ({"tag": ["think"]}, r"rewards\.form\.options\.tag: unknown key\. Did you mean 'tags'\?"),
    ],
)
def test_faults_in_the_options_are_named(options, message):
    with pytest.raises(RecipeError, match=message):
        make_check("rewards.form", RewardPart(check="format", options=options))
