import re
from fractions import Fraction
from itertools import islice, product

import pytest

from earned.errors import RecipeError
from earned.problems.countdown import OPERATIONS, CountdownOptions, Term, countdown_problem, joined, stream
from earned.problems.sources import load_problems
from earned.problems.splits import make_problem
from earned.recipe import Problems
from earned.recipe_file import validate
from earned.rewards.arithmetic import read_expression
from earned.vocabulary import Split


def some(count=300, seed=0, **options):
    return list(islice(stream(CountdownOptions(**options), seed), count))


def test_every_problem_has_the_solution_it_shows():
    for problem in some(numbers=(2, 6), largest=50):
        solution = read_expression(problem.gold, symbols=False)
        assert solution.value == problem.columns["target"]
        assert sorted(solution.numbers) == problem.columns["numbers"]


def test_options_hold_and_the_prompt_says_the_puzzle():
    problems = some(numbers=(3, 5), largest=9, target=(10, 30))
    assert {len(problem.columns["numbers"]) for problem in problems} == {3, 4, 5}
    assert {number for problem in problems for number in problem.columns["numbers"]} == set(range(1, 10))
    assert {problem.columns["target"] for problem in problems} == set(range(10, 31))
    for problem in problems:
        target, *numbers = map(int, re.findall("[0-9]+", problem.prompt))
        assert (target, numbers) == (problem.columns["target"], problem.columns["numbers"])
    assert problems[0].prompt.endswith(
        "Use every number exactly once, with + - * / and parentheses. "
        "End with a line that holds #### and the expression."
    )


def test_all_four_operations_and_parentheses_are_needed_somewhere():
    golds = " ".join(problem.gold for problem in some())
    assert all(golds.count(sign) >= 20 for sign in [*OPERATIONS, "("])


def test_a_seed_and_an_index_name_one_problem():
    options = CountdownOptions()
    assert countdown_problem(options, 1, 7) == countdown_problem(options, 1, 7) == some(8, seed=1)[7]
    assert some(20, seed=1) != some(20, seed=2)


def test_a_puzzle_is_one_problem_in_one_split_whatever_its_solution():
    small = {"numbers": (2, 3), "largest": 5, "target": (1, 20)}
    places, golds = {}, {}
    for problem in some(4000, **small) + some(4000, seed=1, **small):
        puzzle = (*problem.columns["numbers"], problem.columns["target"])
        places.setdefault(puzzle, set()).add((problem.id, problem.split))
        golds.setdefault(puzzle, set()).add((problem.prompt, problem.gold))
    assert all(len(place) == 1 for place in places.values())
    apart = [{make_problem(*each, "x").split for each in found} for found in golds.values()]
    assert any(len(splits) > 1 for splits in apart), "with the solution in the hash a puzzle would be in two splits"


def test_a_recipe_gets_all_three_splits():
    found = load_problems(Problems(source="countdown", train=100, validation=20, held_out=20), 0)
    assert (len(found.train), len(found.validation), len(found.held_out)) == (100, 20, 20)
    assert {problem.split for problem in found.train} == {Split.TRAIN}
    with pytest.raises(RecipeError, match="the source has too few problems"):
        load_problems(Problems(source="countdown", options={"numbers": [2, 2], "largest": 3}, train=500), 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"numbers": [4, 3]}, "problems.options.numbers: the lower bound comes first"),
        ({"target": [9, 3]}, "problems.options.target: the lower bound comes first"),
        ({"numbers": [1, 3]}, "problems.options.numbers.0"),
        ({"numbers": [3, 99]}, "problems.options.numbers.1"),
        ({"target": [-5, 3]}, "problems.options.target.0"),
        ({"largest": 0}, "problems.options.largest"),
        ({"larges": 5}, "problems.options.larges: unknown key. Did you mean 'largest'?"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(RecipeError) as error:
        validate(CountdownOptions, options, "problems.options")
    assert message in str(error.value)


def test_a_target_out_of_reach_is_said():
    with pytest.raises(RecipeError) as error:
        countdown_problem(CountdownOptions(largest=2, target=(90, 99)), 0, 0)
    assert str(error.value) == (
        "problems.options: none of 1000 random expressions of numbers up to 2 makes a target from 90 to 99. "
        "Change problems.options.largest or problems.options.target"
    )


def test_a_solution_has_the_parentheses_that_it_needs_and_no_others():
    three, four, five = (Term(str(number), Fraction(number)) for number in (3, 4, 5))
    for inner, outer in product(OPERATIONS, repeat=2):
        for term in (joined(joined(three, inner, four), outer, five), joined(five, outer, joined(three, inner, four))):
            assert read_expression(term.text).value == term.value
            bare = term.text.replace("(", "").replace(")", "")
            assert ("(" in term.text) == (read_expression(bare).value != term.value), term.text
    assert joined(five, "/", joined(three, "-", three)) is None
