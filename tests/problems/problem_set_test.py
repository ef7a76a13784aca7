from dataclasses import replace

import pytest

from earned.problems.problem_set import ProblemSet, step_problems
from earned.vocabulary import Problem, Split


def problem(number, split=Split.TRAIN):
    return Problem(id=f"p{number}", prompt=str(number), gold="0", source="list", split=split)


def problem_set(count):
    return ProblemSet(train=tuple(problem(n) for n in range(count)), validation=(), held_out=())


def test_split_returns_each_part():
    parts = [problem(n, split) for n, split in enumerate(Split)]
    problems = ProblemSet(train=(parts[0],), validation=(parts[1],), held_out=(parts[2],))
    assert [problems.split(split) for split in Split] == [(part,) for part in parts]


def test_a_problem_twice_or_in_the_wrong_split_is_refused():
    with pytest.raises(AssertionError, match="twice"):
        ProblemSet(train=(problem(1),), validation=(replace(problem(1), split=Split.VALIDATION),), held_out=())
    with pytest.raises(AssertionError, match="held_out"):
        ProblemSet(train=(), validation=(), held_out=(problem(1),))


def test_an_epoch_visits_each_problem_once_in_a_fresh_order():
    problems = problem_set(24)
    epochs = [
        [each.id for step in range(first, first + 4) for each in step_problems(problems, 0, step, 6)]
        for first in (1, 5, 9)
    ]
    for epoch in epochs:
        assert sorted(epoch) == sorted(each.id for each in problems.train)
    assert len({tuple(epoch) for epoch in epochs}) == 3


def test_the_remainder_is_dropped_and_no_step_holds_a_problem_twice():
    problems = problem_set(10)
    for first in range(1, 40, 3):
        epoch = [each.id for step in range(first, first + 3) for each in step_problems(problems, 1, step, 3)]
        assert len(epoch) == len(set(epoch)) == 9
    left_out = {
        each.id
        for first in range(1, 40, 3)
        for each in problems.train
        if each not in [p for step in range(first, first + 3) for p in step_problems(problems, 1, step, 3)]
    }
    assert len(left_out) > 3, "the dropped problem differs between epochs"


def test_order_is_a_function_of_seed_and_step():
    problems = problem_set(50)
    forward = [step_problems(problems, 9, step, 8) for step in range(1, 20)]
    backward = [step_problems(problems, 9, step, 8) for step in reversed(range(1, 20))]
    assert forward == backward[::-1]
    assert step_problems(problems, 10, 1, 8) != forward[0]


def test_a_step_may_hold_all_problems_but_not_more():
    problems = problem_set(4)
    assert len(step_problems(problems, 0, 3, 4)) == 4
    for step, count in ((1, 5), (0, 2), (1, 0)):
        with pytest.raises(AssertionError):
            step_problems(problems, 0, step, count)


def test_a_template_changes_the_words_and_nothing_else():
    before = ProblemSet(train=(problem(1),), validation=(), held_out=(problem(2, Split.HELD_OUT),))
    after = before.asked("Work out {prompt} and give only the number of {prompt}.")
    assert after.held_out[0].prompt == "Work out 2 and give only the number of 2."
    assert after.train == (replace(before.train[0], prompt="Work out 1 and give only the number of 1."),)
