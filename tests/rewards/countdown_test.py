import json
import time
from fractions import Fraction
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shared_data import shared

from earned.errors import RecipeError
from earned.problems.countdown import OPERATIONS, CountdownOptions, stream
from earned.recipe import RewardPart
from earned.rewards.checks import make_check
from earned.rewards.countdown import CountdownCheck
from earned.vocabulary import Attempt, Problem, Rule, Split

PROMPT = "Make 17 from the numbers 3, 4 and 5. End with a line that holds #### and the expression."


def attempt(text, numbers=(3, 4, 5), target=17, truncated=False):
    columns = {"numbers": list(numbers), "target": target}
    problem = Problem(id="p", prompt=PROMPT, gold=None, source="countdown", split=Split.TRAIN, columns=columns)
    return Attempt(problem=problem, text=text, truncated=truncated, seed=0, step=1, rollout_id="r")


def judged(text, numbers=(3, 4, 5), target=17, *, truncated=False, **options):
    return CountdownCheck(**options)(attempt(text, numbers, target, truncated))


@pytest.mark.parametrize("form", ["{}", "#### {}", r"\boxed{{{}}}", "<answer>{}</answer>", "First.\nAnswer: {}"])
def test_labelled_cases_in_every_form(form):
    rows = [json.loads(line) for line in shared("cases/puzzles.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 9
    for row in rows:
        verdict = judged(form.format(row["response"]), row["numbers"], row["target"])
        assert verdict.value == row["accept"], (row["id"], verdict.explanation)


@pytest.mark.parametrize(
    "text",
    [
        "3*4+5",
        " 5 + (4 * 3) \n",
        "((3)*(4))+5",
        "I try 3+4*5 = 23, too much. 3*4 is 12.\n#### 3*4+5",
        "#### 3 * 4 + 5 = 17",
        "#### 5+3*4.",
        r"So \boxed{3 \times 4 + 5}.",
        r"So $\boxed{3 \cdot 4 + 5 = 17}$.",
        "<think>3+4*5 is 23.</think><answer>\n3*4+5\n</answer>",
        "**Answer: 3*4+5**",
        "The answer is 3·4+5.",
        "#### 3+4*5\nNo.\n#### 3*4+5",
    ],
)
def test_right(text):
    verdict = judged(text)
    assert (verdict.value, verdict.rule) == (1, Rule.EQUAL), verdict.explanation
    assert verdict.extracted is not None


WRONG = [
    ("3+4*5", Rule.DIFFERENT, "'3+4*5': it makes 23, not 17"),
    ("17", Rule.DIFFERENT, "it uses 17 beyond the given 3, 4, 5"),
    ("#### 17", Rule.DIFFERENT, "it uses 17 beyond"),
    ("#### 12+5", Rule.DIFFERENT, "it uses 12 beyond"),
    ("#### 3*4+5+5-5", Rule.DIFFERENT, "it uses 5, 5 beyond"),
    ("#### 5+3*4+0", Rule.DIFFERENT, "it uses 0 beyond"),
    ("#### 34/5", Rule.DIFFERENT, "it uses 34 beyond"),
    ("#### 4+5+4+4", Rule.DIFFERENT, "it uses 4, 4 beyond"),
    ("#### (3*4+5)/4*4", Rule.DIFFERENT, "it uses 4, 4 beyond"),
    ("#### 3*4", Rule.DIFFERENT, "it leaves 5 of the given 3, 4, 5 unused"),
    ("#### 3/5*4", Rule.DIFFERENT, "it makes 12/5, not 17"),
    ("#### 3*4+5 or 5+3*4", Rule.UNREADABLE, "'o' is no digit"),
    ("#### 3*4+5, 5+3*4", Rule.UNREADABLE, "',' is no digit"),
    (r"\boxed{3*4+5}, \boxed{5+3*4}", Rule.UNREADABLE, "',' is no digit"),
    ("3*4+5\n5+3*4", Rule.UNREADABLE, r"'\n' is no digit"),
    ("<answer>3*4+5\n5+3*4</answer>", Rule.UNREADABLE, r"'\n' is no digit"),
    ("#### 17 = 3*4+5", Rule.UNREADABLE, "'3*4+5' follows '=', where only the target 17 may stand"),
    ("#### 3*4+5=17=17", Rule.UNREADABLE, "'17=17' follows '='"),
    ("#### 3*4+5=18", Rule.UNREADABLE, "'18' follows '='"),
    ("#### 3*4+5=", Rule.UNREADABLE, "'' follows '='"),
    ("#### 3*4+5==17", Rule.UNREADABLE, "'=17' follows '='"),
    ("#### 3*4+5=12+5", Rule.UNREADABLE, "'12+5' follows '='"),
    ("#### 3+4*5=17", Rule.DIFFERENT, "it makes 23, not 17"),
    ("#### 3*4+5 (uses all numbers)", Rule.UNREADABLE, "'u' is no digit"),
    ("#### 3*4+5 # right", Rule.UNREADABLE, "'#' is no digit"),
    ("#### 17 if 3+4+5 else 0", Rule.UNREADABLE, "'i' is no digit"),
    ("#### ３*4+5", Rule.UNREADABLE, r"'\uff13' is no digit"),
    ("#### +3*4+5", Rule.UNREADABLE, "'+' comes first"),
    ("#### -3+4*5", Rule.UNREADABLE, "'-' comes first"),
    ("#### 03*4+5", Rule.UNREADABLE, "03 has a leading zero"),
    ("#### 3*4+5+", Rule.UNREADABLE, "nothing follows '+'"),
    ("#### " + "(" * 90 + "3*4+5" + ")" * 90, Rule.UNREADABLE, "more than 50 parentheses"),
    ("(" * 10**4 + "3*4+5" + ")" * 10**4, Rule.UNREADABLE, "it is longer than 300 characters"),
    ("", Rule.NO_ANSWER, "no answer mark"),
    ("   ", Rule.NO_ANSWER, "no answer mark"),
    ("####", Rule.NO_ANSWER, "nothing follows"),
    ("I cannot do it.", Rule.NO_ANSWER, "doubts"),
    (PROMPT, Rule.NO_ANSWER, "repeats the prompt"),
    ("3*4+5 or 5+3*4", Rule.NO_ANSWER, "doubts"),
    ("__import__('os').getpid()*0+3*4+5", Rule.NO_ANSWER, "no answer mark"),
    ("<think>3*4+5", Rule.NO_ANSWER, "thinking"),
]


@pytest.mark.parametrize(("text", "rule", "reason"), WRONG)
def test_wrong_with_the_reason(text, rule, reason):
    verdict = judged(text)
    assert (verdict.value, verdict.rule) == (0, rule)
    assert reason in verdict.explanation


def test_a_division_by_zero_is_wrong():
    verdict = judged("#### 3/(5-4-1)", numbers=(1, 3, 4, 5), target=3)
    assert (verdict.value, verdict.rule) == (0, Rule.UNREADABLE)
    assert verdict.explanation == "'3/(5-4-1)': it divides by zero"


def test_the_numbers_are_a_multiset():
    assert judged("50*1*1*1", [1, 50, 1, 1], 50).value == 1
    assert judged("50*1*1", [1, 50, 1, 1], 50).explanation == ("'50*1*1': it leaves 1 of the given 1, 50, 1, 1 unused")
    assert judged("50*1*1*1*1", [1, 50, 1, 1], 50).value == 0
    assert judged("5+5", [5], 10).value == 0


def test_what_is_policy_is_an_option():
    assert judged("4*5", target=20, use_all=False).value == 1
    assert judged("4*5*4/4", target=20, use_all=False).value == 0, "each at most as often as it is given"
    assert judged("3×4+5").value == 1 and judged("3×4+5", symbols=False).value == 0
    assert judged("3*4+5=17").value == 1
    without = judged("3*4+5=17", trailing_target=False)
    assert without.value == 0 and "'=' is no part of an expression" in without.explanation


def test_a_completion_that_was_cut_off_is_not_taken_for_a_whole_one():
    for text in ("3*4+5", "3*4+5\n", "#### 3*4+5", "#### 3*4+5 ", r"\boxed{3*4+5", "<answer>3*4+5"):
        assert judged(text, truncated=True).value == 0, text
        assert judged(text, truncated=True).rule is Rule.NO_ANSWER
    for text in ("#### 3*4+5\n", r"\boxed{3*4+5}", "<answer>3*4+5</answer>"):
        assert judged(text, truncated=True).value == 1, text


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"numbers": [3, 4, 5]},
        {"target": 17},
        {"numbers": [], "target": 17},
        {"numbers": "3 4 5", "target": 17},
        {"numbers": [3, 4, 5.0], "target": 17},
        {"numbers": [3, 4, -5], "target": 17},
        {"numbers": [3, 4, True], "target": 17},
        {"numbers": [3, 4, 5], "target": "17"},
        {"numbers": [3, 4, 5], "target": 17.0},
        {"numbers": [3, 4, 5], "target": None},
        {"numbers": 345, "target": 17},
        {"numbers": {"3": 1}, "target": 17},
    ],
)
@pytest.mark.parametrize("text", ["3*4+5", "#### 3*4+5", "", "17"])
def test_without_a_puzzle_nothing_is_judged(columns, text):
    problem = Problem(id="p", prompt="", gold="3*4+5", source="my.jsonl", split=Split.TRAIN, columns=columns)
    verdict = CountdownCheck()(Attempt(problem=problem, text=text, seed=0, step=1, rollout_id="r"))
    assert (verdict.value, verdict.rule) == (None, Rule.UNREADABLE_GOLD)
    assert verdict.explanation.startswith("the problem's columns 'numbers' and 'target' have to hold")


def test_every_gold_of_the_source_is_accepted_and_no_other_target_is():
    options = CountdownOptions(numbers=(2, 5), largest=30)
    for _, problem in zip(range(300), stream(options, 0), strict=False):
        numbers, target = problem.columns["numbers"], problem.columns["target"]
        assert judged(problem.gold, numbers, target).value == 1
        assert judged(f"#### {problem.gold} = {target}", numbers, target).value == 1
        assert judged(problem.gold, numbers, target + 1).rule is Rule.DIFFERENT
        assert judged(problem.gold, [*numbers, 1], target).value == 0
        assert judged(problem.gold, numbers[1:], target).value == 0


@given(st.lists(st.integers(1, 9), min_size=3, max_size=3), st.integers(0, 20))
def test_of_all_expressions_those_are_right_that_make_the_target(numbers, target):
    for a, b, c in set(permutations(numbers)):
        for one, two in product(OPERATIONS, repeat=2):
            values = {
                f"({a}{one}{b}){two}{c}": combined(combined(a, one, b), two, c),
                f"{a}{one}({b}{two}{c})": combined(a, one, combined(b, two, c)),
            }
            for text, value in values.items():
                assert judged(text, numbers, target).value == (value == target), text


def combined(left, sign, right):
    if left is None or right is None or (sign == "/" and right == 0):
        return None
    return OPERATIONS[sign](Fraction(left), Fraction(right))


def test_a_recipe_names_it_and_its_options():
    check = make_check("rewards.answer", RewardPart(check="countdown", options={"use_all": False}))
    assert check.judge({"a": attempt("4*5", target=20)})["a"].value == 1
    with pytest.raises(RecipeError, match=r"rewards\.answer\.options\.all: unknown key"):
        make_check("rewards.answer", RewardPart(check="countdown", options={"all": False}))


@pytest.mark.parametrize("unit", ["3*4+5", "(", "3 ", "=", "17\n", ".", "#### 3", r"\boxed{", "×"])
def test_long_texts_are_judged_within_a_second(unit):
    text = unit * (200_000 // len(unit))
    start = time.perf_counter()
    for whole in (text, f"#### {text}", f"{text}?", f"<answer>{text}</answer>"):
        assert judged(whole).value == 0
    assert time.perf_counter() - start < 1
