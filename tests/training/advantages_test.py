"""Advantages are matched to rollouts by id, and unscored ones are left out."""

from dataclasses import replace

import pytest

from earned.algorithms.named import ALGORITHMS, resolve
from earned.training.advantages import group_advantages


def by_attempt(groups, name):
    advantages = group_advantages(groups, resolve(name))
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
