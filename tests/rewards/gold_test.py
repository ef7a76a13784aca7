"""What a check compares with has to be there, or somebody else has to judge."""

import pytest

from earned.errors import RecipeError
from earned.recipe import Rewards
from earned.recipe_file import validate
from earned.rewards.gold import can_judge, require_gold
from earned.vocabulary import Problem, Split


def problems(*golds):
    return [
        Problem(id=str(place), prompt="?", gold=gold, source="my.jsonl", split=Split.TRAIN)
        for place, gold in enumerate(golds)
    ]


def rewards(**checks):
    return validate(Rewards, {name: {"check": check} for name, check in checks.items()}, "rewards")


@pytest.mark.parametrize(
    ("check", "golds", "can"),
    [
        ("number", ["7"], True),
        ("number", ["seven", None, "7"], True),
        ("number", ["seven", None], False),
        ("exact", ["seven"], True),
        ("exact", [None], False),
        ("number", [], False),
        ("my.py:judge", [None], True),
        ("python", [None], True),
        ("constant", [None], True),
    ],
)
def test_one_gold_that_can_be_read_is_enough_and_a_check_without_gold_needs_none(check, golds, can):
    assert can_judge(check, problems(*golds)) is can


def test_what_cannot_be_checked_is_refused_with_the_ways_out():
    with pytest.raises(RecipeError) as refused:
        require_gold(rewards(answer="number"), "my.jsonl", problems("seven", None))
    said = str(refused.value)
    assert said.startswith(
        "my.jsonl: not one of its 2 training problems has an answer that the check 'number' (rewards.answer) can read, "
        "and nothing else judges. What cannot be checked cannot be rewarded."
    )
    assert all(way in said for way in ("problems.options.answer", "'FILE.py:function'", "RLHF")), said
    require_gold(rewards(answer="number"), "my.jsonl", problems("seven", "7"))
    require_gold(rewards(mine="my.py:judge"), "my.jsonl", problems(None))


def test_another_part_does_not_help_since_a_part_that_cannot_judge_leaves_the_sum_unscored():
    with pytest.raises(RecipeError, match=r"\(rewards\.answer\) can read, and without it the other parts pay nothing"):
        require_gold(rewards(mine="my.py:judge", answer="number"), "my.jsonl", problems(None))
