"""Advantages are matched to rollouts by id, and unscored ones are left out."""

from dataclasses import replace

import pytest

from earned.algorithms.contributions import SUMS
from earned.algorithms.named import ALGORITHMS, resolve
from earned.training.advantages import group_advantages, with_contributions
from earned.vocabulary import PartScore, Score, ScoreStatus


def by_attempt(groups, name):
    advantages = group_advantages(groups, resolve(name, mask_truncated=False))
    return [[advantages[rollout.id] for rollout in group.rollouts] for group in groups]


def test_hand_numbers(groups_of):
    groups = groups_of([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    assert by_attempt(groups, "default") == [[0.75, -0.25, -0.25, -0.25], [0.0] * 4]
    root = 3**0.5
    assert by_attempt(groups, "grpo") == [pytest.approx([root, -1 / root, -1 / root, -1 / root]), [0.0] * 4]
    assert by_attempt(groups, "rloo")[0] == pytest.approx([1, -1 / 3, -1 / 3, -1 / 3])
    assert by_attempt(groups, "reinforce") == [[1.0, 0.0, 0.0, 0.0], [1.0] * 4]


def test_an_unscored_rollout_gets_zero_and_moves_no_baseline(groups_of):
    with_unscored = groups_of([[1.0, None, 0.0, 0.0, None, 0.0]])
    for name in ALGORITHMS:
        (row,) = by_attempt(with_unscored, name)
        (scored,) = by_attempt(groups_of([[1.0, 0.0, 0.0, 0.0]]), name)
        assert [row[place] for place in (0, 2, 3, 5)] == scored, name
        assert row[1] == row[4] == 0
    (as_zero,) = by_attempt(groups_of([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]), "default")
    assert as_zero[0] != by_attempt(with_unscored, "default")[0][0], "a reward of 0 would have moved it"


def test_a_group_without_any_score_has_no_advantage(groups_of):
    assert by_attempt(groups_of([[None, None], [1.0, 0.0]]), "default") == [[0.0, 0.0], [0.5, -0.5]]
    assert by_attempt(groups_of([[None, 1.0]]), "default") == [[0.0, 0.0]], "one scored attempt has no siblings"


def test_every_rollout_is_there_under_its_own_id_in_whatever_order(groups_of):
    groups = groups_of([[1.0, 0.0, 0.5], [0.0, 0.0, 1.0]])
    advantages = group_advantages(groups, resolve("default"))
    turned = [replace(group, rollouts=group.rollouts[::-1]) for group in reversed(groups)]
    assert group_advantages(turned, resolve("default")) == pytest.approx(advantages)
    assert set(advantages) == {f"train/1/p{place}/{attempt}" for place in range(2) for attempt in range(3)}


def test_rewards_are_compared_in_double_precision(groups_of):
    tiny = 1e-12
    (row,) = by_attempt(groups_of([[1.0 + tiny, 1.0]]), "grpo")
    assert row == pytest.approx([1, -1], abs=1e-3)


def two_parts(answer, form):
    """A score of two parts of weights 1 and 0.25; None for a part that does not apply."""
    values = {"answer": (1.0, answer), "form": (0.25, form)}
    parts = tuple(
        PartScore(name=name, weight=weight, value=value, extracted=None, explanation="", applies=value is not None)
        for name, (weight, value) in values.items()
    )
    total = sum(part.weight * part.value for part in parts if part.value is not None)
    return Score(value=total, status=ScoreStatus.SCORED, parts=parts)


def scored_with(groups, scores):
    return [
        replace(
            group,
            rollouts=tuple(replace(rollout, score=score) for rollout, score in zip(group.rollouts, row, strict=True)),
        )
        for group, row in zip(groups, scores, strict=True)
    ]


@pytest.fixture
def groups_of_parts(groups_of):
    """Two groups of four: mixed answers and forms, a part that does not apply, an unscored attempt."""
    failed = replace(two_parts(1.0, 1.0), value=None, status=ScoreStatus.UNSCORED)
    scores = [
        [two_parts(1.0, 1.0), two_parts(1.0, 0.0), two_parts(0.0, 1.0), two_parts(0.0, 0.0)],
        [two_parts(1.0, None), two_parts(0.0, 1.0), failed, two_parts(0.0, 0.0)],
    ]
    return scored_with(groups_of([[0.0] * 4] * 2), scores)


def shares(groups):
    return {
        rollout.id: [part.contribution for part in rollout.score.parts]
        for group in groups
        for rollout in group.rollouts
    }


def test_the_contributions_of_the_parts_add_up_to_the_advantage(groups_of_parts):
    for name, row in ALGORITHMS.items():
        if row.advantage in SUMS and row.critic is None:
            found, advantages = shares(with_contributions(groups_of_parts, row)), group_advantages(groups_of_parts, row)
            assert found.keys() == advantages.keys()
            assert all(abs(sum(found[one]) - advantages[one]) < 1e-9 for one in advantages), name
            assert found["train/1/p1/2"] == [0, 0], "unscored"


def test_contributions_by_hand(groups_of_parts):
    found = shares(with_contributions(groups_of_parts, resolve("default")))
    assert [found[f"train/1/p0/{attempt}"] for attempt in range(4)] == [
        [0.5, 0.125],
        [0.5, -0.125],
        [-0.5, 0.125],
        [-0.5, -0.125],
    ]
    assert found["train/1/p1/0"] == pytest.approx([2 / 3, -1 / 12]), "what does not apply costs its baseline"


def test_nothing_is_recorded_where_the_advantage_is_no_sum(groups_of_parts):
    squares = replace(resolve("default"), advantage=lambda rewards_PG, _: rewards_PG.square())
    assert with_contributions(groups_of_parts, squares) == tuple(groups_of_parts)
    assert with_contributions([], resolve("default")) == ()


def test_all_else_about_the_groups_stays(groups_of_parts):
    def without(groups):
        return [
            replace(rollout, score=replace(rollout.score, parts=()), completion=rollout.completion)
            for group in groups
            for rollout in group.rollouts
        ]

    credited = with_contributions(groups_of_parts, resolve("default"))
    assert without(credited) == without(groups_of_parts)
    assert [group.prompt for group in credited] == [group.prompt for group in groups_of_parts]
