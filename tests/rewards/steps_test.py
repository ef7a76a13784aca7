"""The arithmetic of a derivation, and what must not pass for one."""

import time
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earned.rewards.steps import MAX_CHARACTERS, MAX_STEPS, StepsCheck
from earned.vocabulary import Attempt, Problem, Rule, Split

SUM = "47+58+19="
CLIPS = (
    "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May. How many clips did "
    "Natalia sell altogether in April and May?"
)
CHECK = StepsCheck()


def attempt(text, prompt=SUM, truncated=False):
    problem = Problem(id="p", prompt=prompt, gold="124", source="sums", split=Split.TRAIN)
    return Attempt(problem=problem, text=text, truncated=truncated, seed=0, step=1, rollout_id="train/1/p/0")


def value(text, prompt=SUM, check=CHECK):
    return check(attempt(text, prompt)).value


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("47+58=105;105+19=124;A124", SUM),
        ("58+47=105;19+105=124;A124", SUM),
        ("47+19=66;66+58=124;A124", SUM),
        ("<think>47 + 58 = 105. 105 + 19 = 124.</think>\n#### 124", SUM),
        ("47+58=105;105+19=124;124-19=105;A124", SUM),
        ("47+58=105;105+19=124;124-19=105;105-58=47;105+19=124;A124", SUM),
        ("Natalia sold 48/2 = <<48/2=24>>24 clips in May.\nAltogether 48+24 = <<48+24=72>>72.\n#### 72", CLIPS),
        ("- 48 / 2 = 24\n- 48 + 24 = 72\nThe answer is 72.", CLIPS),
        ("So 3 + 4 = 7 apples.", "Tom has 3 apples and buys 4. How many?"),
        ("5+3=8;8-3=5;A5", "Ann has 5, gets 3, gives 3 away. How many?"),
        ("5-8=-3;A-3", "5-8="),
        ("It costs 20% * 50 = 10.\n#### 10", "A bag of 50 dollars is 20% off. How much is taken off?"),
        ("3+4=7;A7", "3+4="),
    ],
)
def test_a_derivation_that_carries_its_answer_earns_all(text, prompt):
    verdict = CHECK(attempt(text, prompt))
    assert verdict.value == 1, verdict.explanation
    assert verdict.extracted is not None


ATTACKS = {
    "nothing": "",
    "a bare number": "A124",
    "the problem repeated": "47+58+19=\n47+58+19=\nA124",
    "the whole sum in one step": "47+58+19=124;A124",
    "the same number on both sides": "124=124;A124",
    "the answer equals itself": "A=124=124;A124",
    "a true step about nothing": "1+1=2;A124",
    "nothing plus nothing": "0+0=0;A124",
    "nothing added to the answer": "124+0=124;A124",
    "the answer times one": "124*1=124;A124",
    "the answer from nowhere": "100+24=124;A124",
    "the answer from the problem's numbers and one from nowhere": "47+77=124;A124",
    "a step backwards from the answer": "124-19=105;105+19=124;A124",
    "right steps, then an unrelated answer": "47+58=105;105+19=124;A125",
    "right steps, then an answer from the middle": "47+58=105;105+19=124;A105",
    "a first step repeated": "47+58=105;47+58=105;47+58=105;A124",
    "a chain with a gap": "47+58=105;A124",
    "a wrong step and the right answer": "47+58=106;105+19=124;A124",
    "a wrong step carried on": "47+58=106;106+19=125;A125",
    "running sums as one equation": "47+58=105+19=124;A124",
    "two wrongs that meet": "47+58=100;100+24=124;A124",
    "division by zero": "47/0=124;A124",
    "a rounded step": "47/58=0.81;A0.81",
    "no answer": "47+58=105;105+19=124; who knows?",
    "several answers": "47+58=105;105+19=124;A124 or 125?",
    "words for a step": "Adding all the numbers gives 124. A124",
}


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS)
def test_attacks_earn_nothing(text):
    verdict = CHECK(attempt(text))
    assert verdict.value == 0, verdict.explanation
    assert verdict.explanation


def test_lines_copied_from_examples_in_the_problem_are_no_steps():
    prompt = f"3+4=7;A7\n{SUM}"
    assert value("3+4=7;A7", prompt) == 0
    assert value("3+4=7;A7", "3+4=") == 1, "the same where the problem does not hold it"
    assert value("3+4=7;47+58=105;105+19=124;A124", prompt) == 1


PADDINGS = [
    "1+1=2",
    "0+0=0",
    "47+58=105",
    "58+47=105",
    "19+19=38",
    "47-47=0",
    "105-58=47",
    "105+58=163",
    "2+2=5",
    "5=5",
]


@given(
    st.lists(st.sampled_from(PADDINGS), max_size=12), st.sampled_from(["47+58=105;105+19=124", "47+58=105", "9+9=9"])
)
def test_padding_never_helps(padding, derivation):
    wrong = ";19+58=76"
    for text in (derivation, derivation + wrong):
        padded = ";".join([*padding, text])
        assert value(f"{padded};A124") <= value(f"{text};A124")


def test_the_share_counts_wrong_steps_against_the_needed_ones():
    verdict = CHECK(attempt("47+58=106;47+58=105;105+19=124;A124"))
    assert verdict.value == pytest.approx(2 / 3)
    assert verdict.explanation == (
        "2 right that count; 3 steps, 1 wrong, first step 1, 47+58=106: 47+58 is 105, not 106"
    )
    from_nowhere = "47+58=105;1+1=2;2+2=4;105+19=124;A124"
    assert value(from_nowhere) == 0.5, "what follows from a number out of nowhere is from nowhere too"
    assert value("19+58=76;47+58=105;105+19=124;A124", check=StepsCheck(mode="all")) == 0
    assert value("47+58=105;105+19=124;A124", check=StepsCheck(mode="all")) == 1


def test_what_is_wrong_is_said():
    assert CHECK(attempt("A124")).explanation == "no step is written"
    assert CHECK(attempt("47+58=105;A124")).explanation == "no step gives the answer 124; 1 step, 0 wrong"
    middle = CHECK(attempt("47+58=105;105+19=124;A105"))
    assert middle.explanation == "the answer is 105, but the steps go on to 124; 2 steps, 0 wrong"
    nowhere = CHECK(attempt("47+77=124;A124"))
    assert "first step 1, 47+77=124: 77 is neither in the problem nor the result of a right step" in nowhere.explanation
    assert CHECK(attempt("47+58=105; who knows?")).rule is Rule.NO_ANSWER
    assert "not a plain decimal number" in CHECK(attempt("47+58=105\n#### 105 apples")).explanation


def test_without_support_every_step_that_adds_counts():
    free = StepsCheck(supports_answer=False)
    assert value("47+58=105;A9", check=free) == 1
    assert value("47+58=105;47+58=105;58+47=105", check=free) == 1
    assert value("47+58=105;105+19=125", check=free) == 0.5
    assert [value(text, check=free) for text in ("", "A124", "1+1=2", "5=5", "47+58+19=124")] == [0] * 5
    assert value("3+4=7", f"3+4=7;A7\n{SUM}", free) == 0


def test_constants_and_larger_steps_are_allowed_by_name():
    week = "He runs 3 miles a day. How many in a week?"
    assert value("3*7=21\n#### 21", week) == 0
    assert value("3*7=21\n#### 21", week, StepsCheck(constants=(7,))) == 1
    assert value("47+58+19=124;A124", check=StepsCheck(max_operations=2)) == 1
    assert value("47+58+19=125;A125", check=StepsCheck(max_operations=2)) == 0


@pytest.mark.parametrize("check", [CHECK, StepsCheck(supports_answer=False), StepsCheck(mode="all")])
def test_a_truncated_completion_is_never_paid(check):
    text = "47+58=105;105+19=124;A124\n"
    assert check(attempt(text)).value == 1
    assert check(attempt(text, truncated=True)).value == 0


NUMBERS = st.lists(st.integers(1, 99), min_size=2, max_size=6)


@given(NUMBERS, st.data())
def test_running_sums_are_right_and_one_changed_result_is_not(numbers, data):
    totals = list(accumulate(numbers))
    prompt = "+".join(map(str, numbers)) + "="
    steps = [[a, b, c] for a, b, c in zip(totals[:-1], numbers[1:], totals[1:], strict=True)]

    def text():
        return "".join(f"{a}+{b}={c};" for a, b, c in steps) + f"A{totals[-1]}"

    assert value(text(), prompt) == 1
    step = data.draw(st.sampled_from(steps))
    step[2] += data.draw(st.sampled_from([-1, 1, 10]))
    assert value(text(), prompt) < 1


@given(st.text(alphabet="0123456789+-*/=; A.\n", max_size=60))
def test_any_text_is_judged(text):
    verdict = CHECK(attempt(text))
    assert verdict.value is not None and 0 <= verdict.value <= 1


def test_more_steps_than_anyone_reads_earn_nothing():
    chain = "47+58=105;105+19=124;"
    assert value(chain + "124-19=105;" * (MAX_STEPS - 2) + "A124") == 1
    assert value(chain + "124-19=105;" * (MAX_STEPS - 1) + "A124") == 0
    assert value(chain + " " * MAX_CHARACTERS + "A124") == 0


@pytest.mark.parametrize("unit", ["47+58=105;", "47+47=94;", "9" * 99 + "*", "1+1=", "47*", "A124 "])
def test_a_million_characters_take_less_than_a_second(unit):
    start = time.process_time()
    assert value(unit * (1_000_000 // len(unit)) + "A124") == 0
    assert value(unit * (19_000 // len(unit)) + "A124") in (0, 1)
    assert time.process_time() - start < 1


def test_the_numbers_that_come_out_of_long_derivations_stay_small():
    nines = "9" * 100
    text = ";".join(f"{nines}*{nines}={nines}" for _ in range(400)) + ";A1"
    start = time.process_time()
    assert value(text, prompt=nines) == 0
    assert time.process_time() - start < 1
