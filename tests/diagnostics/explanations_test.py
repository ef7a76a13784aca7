"""The explanations say what the torch functions compute."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from earned.algorithms.named import ALGORITHMS
from earned.algorithms.surrogates import ppo_clip
from earned.diagnostics.explanations import COMPARISONS, comparison, explain_advantages, explain_clip
from earned.errors import RecipeError

REWARDS = st.integers(-1000, 1000).map(lambda thousandths: thousandths / 1000)
GROUPS = st.integers(1, 6).flatmap(
    lambda size: st.lists(st.lists(REWARDS, min_size=size, max_size=size), min_size=1, max_size=4)
)


def advantages(rewards, algorithm):
    [group] = explain_advantages([rewards], comparison(algorithm))
    return list(group.advantages)


def told_and_computed(groups, how, name):
    told = torch.tensor([group.advantages for group in explain_advantages(groups, how)], dtype=torch.float64)
    return told, ALGORITHMS[name].advantage(torch.tensor(groups, dtype=torch.float64), None)


def test_both_tables_have_the_same_names():
    assert set(COMPARISONS) == set(ALGORITHMS)


@pytest.mark.parametrize("name", ALGORITHMS)
@settings(deadline=None, max_examples=50)
@given(groups=GROUPS)
def test_advantages_are_those_of_the_algorithm(name, groups):
    told, computed = told_and_computed(groups, comparison(name), name)
    torch.testing.assert_close(told, computed, rtol=1e-6, atol=1e-9)
    if comparison(name).within_group:
        equal = torch.tensor([len(set(group)) == 1 for group in groups])
        assert not told[equal].any() and not computed[equal].any()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_wrong_row_would_be_seen(name):
    how, groups = comparison(name), [[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.5]]
    assert torch.allclose(*told_and_computed(groups, how, name))
    same = {"nothing", "forecast"}
    for baseline in {"nothing", "forecast", "batch", "siblings", "group", "best"} - {how.baseline}:
        wrong = replace(how, baseline=baseline)
        assert not torch.allclose(*told_and_computed(groups, wrong, name)) or {baseline, how.baseline} == same
    for divisor in {"nothing", "group deviation", "batch deviation", "centered deviation", "mean"} - {how.divisor}:
        assert not torch.allclose(*told_and_computed(groups, replace(how, divisor=divisor), name))


def test_worked_numbers():
    third = pytest.approx(-1 / 3)
    assert advantages([1, 0, 1, 0], "grpo") == [1, -1, 1, -1]
    assert advantages([1, 0, 0, 0], "grpo") == pytest.approx([1.732051, *[-0.577350] * 3], abs=1e-6)
    assert advantages([1, 0, 0, 0], "dr_grpo") == [0.75, -0.25, -0.25, -0.25]
    assert advantages([1, 0, 0, 0], "rloo") == [1, third, third, third]
    assert advantages([1, 0, 0, 0], "reinforce") == [1, 0, 0, 0]
    assert advantages([1, 0, 0, 0], "maxrl") == [3, -1, -1, -1]
    assert advantages([1, 0, 0, 0], "best_of_group") == [1, 0, 0, 0]
    assert advantages([1, 0, 0, 0], "ppo") == [1, 0, 0, 0]
    right, wrong = pytest.approx(5 / 3), -1
    assert advantages([1, 1, 1, 0, 0, 0, 0, 0], "maxrl") == [right] * 3 + [wrong] * 5


TWO_GROUPS = [[1, 0, 0, 0], [1, 1, 1, 0]]
ROOT = 3**0.5


@pytest.mark.parametrize(
    ("algorithm", "expected", "divisor"),
    [
        ("reinforce_pp", [1, -1, -1, -1, 1, 1, 1, -1], 0.5),
        ("reinforce_pp_baseline", [ROOT, *[-1 / ROOT] * 3, *[1 / ROOT] * 3, -ROOT], 0.433013),
        ("lite_ppo", [1.5, -0.5, -0.5, -0.5, 0.5, 0.5, 0.5, -1.5], 0.5),
        ("default", [0.75, -0.25, -0.25, -0.25, 0.25, 0.25, 0.25, -0.75], 1.0),
    ],
)
def test_two_groups(algorithm, expected, divisor):
    groups = explain_advantages(TWO_GROUPS, comparison(algorithm))
    assert [value for group in groups for value in group.advantages] == pytest.approx(expected)
    assert [group.divisor for group in groups] == [pytest.approx(divisor, abs=1e-6)] * 2


@pytest.mark.parametrize(
    "name", [name for name, how in COMPARISONS.items() if how.baseline not in ("nothing", "forecast")]
)
@pytest.mark.parametrize("reward", [0.0, 1.0, 0.1, 0.3, -1e-3, 1e16])
def test_equal_rewards_give_exactly_0_and_the_words_say_why(name, reward):
    [group] = explain_advantages([[reward] * 7], comparison(name))
    assert group.advantages == (0.0,) * 7
    assert group.deviation == 0.0 and group.mean == reward
    assert "teaches nothing" in group.lesson


def test_words_for_a_group_that_is_pushed_as_a_whole():
    easy, hard = explain_advantages([[1, 1], [0, 0]], comparison("reinforce_baseline"))
    assert easy.advantages == (0.5, 0.5) and hard.advantages == (-0.5, -0.5)
    assert "the same push" in easy.lesson and "the same push" in hard.lesson
    middling, mixed = explain_advantages([[0.5, 0.5], [1, 0]], comparison("reinforce_baseline"))
    assert "equal to the mean of the batch" in middling.lesson and "1 made likelier" in mixed.lesson
    [plain] = explain_advantages([[1, 1]], comparison("reinforce"))
    assert "compared with 0" in plain.lesson
    [nothing] = explain_advantages([[0, 0]], comparison("reinforce"))
    assert "teaches nothing" in nothing.lesson
    [forecast] = explain_advantages([[1, 1]], comparison("ppo"))
    assert "compared with the forecast, here 0," in forecast.lesson
    [foreseen] = explain_advantages([[0, 0]], comparison("ppo"))
    assert "and so is the forecast" in foreseen.lesson
    assert "still forecasts 0" in comparison("ppo").formula


def test_words_for_one_attempt_and_for_a_mixed_group():
    [alone] = explain_advantages([[1]], comparison("grpo"))
    assert alone.advantages == (0.0,) and "nothing to be compared with" in alone.lesson
    [mixed] = explain_advantages([[1, 0.5, 0, 0]], comparison("dr_grpo"))
    assert mixed.lesson == "Of 4 attempts: 2 made likelier, 2 made less likely."
    [best] = explain_advantages([[1, 0.5, 0, 1]], comparison("best_of_group"))
    assert best.lesson == "Of 4 attempts: 2 made likelier, 2 left alone."
    [failed] = explain_advantages([[-1, -2]], comparison("maxrl"))
    assert "No reward is above 0" in failed.lesson and "teaches nothing" in failed.lesson


@pytest.mark.parametrize("groups", [[], [[]], [[1.0], []], [[math.nan, 1.0]], [[math.inf]], [[1e308, -1e308]]])
def test_rewards_that_cannot_be_compared(groups):
    with pytest.raises(RecipeError, match="rewards: "):
        explain_advantages(groups, comparison("grpo"))


def test_unknown_algorithm():
    with pytest.raises(RecipeError, match="Did you mean 'grpo'"):
        comparison("gpro")


P5 = [  # ratio, advantage, upper bound, objective, gradient of the objective by the ratio
    (1.3, 1, 1.2, 1.2, 0),
    (1.3, -1, 1.2, -1.3, -1),
    (0.7, 1, 1.2, 0.7, 1),
    (0.7, -1, 1.2, -0.8, 0),
    (1.25, 1, 1.2, 1.2, 0),
    (1.25, 1, 1.28, 1.25, 1),
]


@pytest.mark.parametrize(("ratio", "advantage", "high", "objective", "gradient"), P5)
def test_clip(ratio, advantage, high, objective, gradient):
    found = explain_clip(0.4, 0.4 * ratio, advantage, 0.8, high)
    assert (found.ratio, found.objective) == (ratio, objective)
    assert found.clipped == (gradient == 0)


def test_where_a_token_stops_counting():
    up = explain_clip(0.2, 0.3, 1, 0.8, 1.2)
    assert (up.ratio, up.stops_at, up.clipped, up.winner) == (1.5, 0.24, True, "clipped")
    down = explain_clip(0.2, 0.3, -1, 0.8, 1.2)
    assert (down.stops_at, down.clipped, down.winner) == (0.16, False, "unclipped")
    assert explain_clip(0.2, 0.1, -1, 0.8, 1.2).clipped
    assert not explain_clip(0.2, 0.24, 1, 0.8, 1.2).clipped and not explain_clip(0.3, 0.36, 1, 0.8, 1.2).clipped
    assert explain_clip(0.9, 0.99, 1, 0.8, 1.2).stops_at is None
    assert explain_clip(0.2, 0.01, -1, 0.0, 1.2).stops_at is None
    assert explain_clip(0.2, 0.9, 0, 0.8, 1.2).stops_at is None


@settings(deadline=None)
@given(
    old=st.floats(0.01, 1), new=st.floats(0.01, 1), advantage=st.floats(-3, 3), low=st.floats(0, 1), up=st.floats(0, 2)
)
def test_clip_is_that_of_the_surrogate(old, new, advantage, low, up):
    high = 1 + up
    if min(abs(new / old - low), abs(new / old - high)) < 1e-6:
        return
    found = explain_clip(old, new, advantage, low, high)
    numbers = [torch.tensor([[value]], dtype=torch.float64) for value in (new, old, advantage)]
    now, before = numbers[0].log().requires_grad_(), numbers[1].log()
    loss, clipped = ppo_clip(now, before, numbers[2], torch.tensor([[True]]), 1 - low, high - 1)
    loss.sum().backward()
    assert found.objective == pytest.approx(-float(loss.detach()), rel=1e-6, abs=1e-9)
    assert found.clipped == bool(clipped)
    assert now.grad is not None
    if abs(advantage) > 1e-6:
        assert found.clipped == (float(now.grad) == 0)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"old": 0.0}, "--old: 0 is no probability"),
        ({"new": 1.5}, "--new: 1.5 is no probability"),
        ({"new": math.nan}, "--new: nan is no probability"),
        ({"low": 0.2, "high": 0.2}, "--clip: 0.2 0.2 are no bounds around 1"),
        ({"advantage": math.inf}, "--advantage: inf is not finite"),
    ],
)
def test_numbers_that_make_no_clip(changed, sentence):
    numbers = {"old": 0.2, "new": 0.3, "advantage": 1.0, "low": 0.8, "high": 1.2} | changed
    with pytest.raises(RecipeError, match=sentence):
        explain_clip(**numbers)
