import re
from collections import Counter
from itertools import islice

import pytest

from earned.errors import RecipeError
from earned.problems.addition import WORDINGS, AdditionOptions, addition_problem, stream
from earned.problems.evaluation_set import evaluation_set
from earned.problems.sources import load_problems
from earned.problems.splits import make_problem
from earned.recipe import Problems
from earned.vocabulary import Split

ENOUGH = 10_000
"""Draws after which all 600 problems of one digit have come up."""


def all_problems(**options):
    return {problem.id: problem for problem in islice(stream(AdditionOptions(**options), 0), ENOUGH)}.values()


def numbers(problem):
    return [int(number) for number in re.findall(r"\d+", problem.prompt)]


def test_one_digit_is_every_ordered_pair_in_every_wording():
    problems = all_problems()
    assert len(problems) == 100 * len(WORDINGS)
    assert len({problem.cluster for problem in problems}) == 55
    for problem in problems:
        a, b = numbers(problem)
        assert problem.gold == str(a + b) and problem.cluster == f"{min(a, b)}+{max(a, b)}"


def test_a_pair_is_in_one_split_in_every_order_and_wording():
    problems = all_problems()
    pairs = {(problem.cluster, problem.split) for problem in problems}
    assert len(pairs) == 55
    assert Counter(split for _, split in pairs) == {Split.TRAIN: 29, Split.VALIDATION: 7, Split.HELD_OUT: 19}
    without = {(problem.cluster, make_problem(problem.prompt, problem.gold, "x").split) for problem in problems}
    assert len(without) > 55, "by the prompt alone a pair would be trained on and held out"


def test_numbers_have_the_digits_asked_for():
    assert {len(str(number)) for problem in all_problems(digits=2) for number in numbers(problem)} == {2}


def test_a_recipe_gets_all_of_one_digit_and_not_more():
    wanted = {"source": "addition", "train": 318, "validation": 66, "held_out": 216}
    assert len(load_problems(Problems(**wanted), 0).held_out) == 216
    with pytest.raises(RecipeError, match="found 318 of 319 train"):
        load_problems(Problems(**{**wanted, "train": 319}), 0)


def test_a_seed_and_an_index_name_one_problem():
    options = AdditionOptions()
    assert addition_problem(options, 1, 7) == addition_problem(options, 1, 7)
    assert [addition_problem(options, 1, n) for n in range(9)] != [addition_problem(options, 2, n) for n in range(9)]


def test_an_evaluation_takes_what_there_is():
    wanted = Problems(source="addition", held_out=256)
    assert len(evaluation_set(wanted, 0, None, None, ()).held_out) == 216
    assert len(evaluation_set(wanted, 0, 20, None, ()).held_out) == 20
