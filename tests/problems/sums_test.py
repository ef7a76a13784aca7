import subprocess
import sys

import pytest

from earned.errors import RecipeError
from earned.problems.sums import SumsOptions, generate, long_answer, short_answer, stream, sum_problem
from earned.recipe_file import validate


def test_prompt_and_gold_agree_and_options_hold():
    options = SumsOptions(terms=(2, 4), digits=3)
    problems = generate(options, seed=5, count=400)
    lengths = set()
    for problem in problems:
        numbers = [int(number) for number in problem.prompt.removesuffix("=").split("+")]
        lengths.add(len(numbers))
        assert problem.prompt == "+".join(map(str, numbers)) + "="
        assert str(sum(numbers)) == problem.gold
        assert all(0 <= number <= 999 for number in numbers)
    assert lengths == {2, 3, 4}


def test_numbers_are_uniform():
    numbers = [
        int(number)
        for problem in generate(SumsOptions(digits=1), seed=0, count=2000)
        for number in problem.prompt.removesuffix("=").split("+")
    ]
    for digit in range(10):
        assert abs(numbers.count(digit) / len(numbers) - 0.1) < 0.015


def test_problem_is_a_function_of_seed_options_and_index():
    options = SumsOptions()
    whole = generate(options, seed=3, count=20)
    assert generate(options, seed=3, count=5, first=15) == whole[15:]
    assert sum_problem(options, seed=3, index=7) == whole[7]
    assert next(stream(options, seed=3, first=10**12)).source == "sums"
    assert generate(options, seed=4, count=20) != whole


@pytest.mark.parametrize(
    ("prompt", "short", "long"),
    [
        ("47+58+19=", "A124", "47+58=105;105+19=124;A124"),
        ("3+4=", "A7", "3+4=7;A7"),
        ("0+0+0+0=", "A0", "0+0=0;0+0=0;0+0=0;A0"),
    ],
)
def test_written_out_answers(prompt, short, long):
    assert short_answer(prompt) == short
    assert long_answer(prompt) == long


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"terms": [5, 3]}, "problems.options.terms: the fewest terms come first"),
        ({"terms": [1, 3]}, "problems.options.terms.0"),
        ({"digits": 0}, "problems.options.digits"),
        ({"digit": 2}, "problems.options.digit: unknown key. Did you mean 'digits'?"),
        ({"colour": 2}, "problems.options.colour: unknown key. Known here: terms, digits."),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(RecipeError) as error:
        validate(SumsOptions, options, "problems.options")
    assert str(error.value).startswith(message)


def test_problems_rewards_and_statistics_import_without_torch():
    modules = "earned.problems.sources, earned.rewards.compose, earned.evaluation.statistics"
    program = f"import sys; sys.modules['torch'] = None; import {modules}"
    subprocess.run([sys.executable, "-c", program], check=True)
