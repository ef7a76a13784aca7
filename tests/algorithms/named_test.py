from dataclasses import FrozenInstanceError

import pytest
import torch

from earned.algorithms import advantages, aggregation, divergences, surrogates
from earned.algorithms.named import (
    ADVANTAGES,
    AGGREGATIONS,
    ALGORITHMS,
    DIVERGENCES,
    GROUP_ADVANTAGES,
    PARTS,
    SURROGATES,
    resolve,
)
from earned.errors import RecipeError


def test_the_table():
    rows = {
        name: (row.advantage.__name__, row.surrogate.__name__, row.aggregation.__name__, row.clip_low, row.clip_high)
        for name, row in ALGORITHMS.items()
    }
    assert rows == {
        "reinforce": ("plain_reward", "policy_gradient", "sequence_sum", 0.2, 0.2),
        "reinforce_baseline": ("batch_mean_baseline", "policy_gradient", "sequence_sum", 0.2, 0.2),
        "rloo": ("leave_one_out", "policy_gradient", "sequence_sum", 0.2, 0.2),
        "grpo": ("group_relative", "ppo_clip", "sequence_mean", 0.2, 0.2),
        "dr_grpo": ("group_centered", "ppo_clip", "fixed_length", 0.2, 0.2),
        "default": ("group_centered", "ppo_clip", "token_mean", 0.2, 0.28),
    }
    assert {name: row.sampler_correction_cap for name, row in ALGORITHMS.items() if row.sampler_correction_cap} == {
        "default": 2.0
    }
    assert all(row.divergence is None and row.divergence_weight == 0 for row in ALGORITHMS.values())
    assert all(row.source and row.summary for row in ALGORITHMS.values())


@pytest.mark.parametrize("table", PARTS.values())
def test_parts_are_named_after_their_functions(table):
    assert all(part.__name__ == name for name, part in table.items())


def test_every_public_part_is_in_a_table():
    for module, table, others in (
        (advantages, ADVANTAGES, set()),
        (surrogates, SURROGATES, {"clipped_tokens"}),
        (aggregation, AGGREGATIONS, {"weighted_sum"}),
        (divergences, DIVERGENCES, {"k1", "exact"}),
    ):
        functions = {
            name
            for name, value in vars(module).items()
            if callable(value) and not isinstance(value, type) and value.__module__ == module.__name__
        }
        assert {name for name in functions if not name.startswith("_")} == set(table) | others


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_row_makes_a_loss_with_a_gradient(name):
    row = resolve(name)
    rewards_PG = torch.tensor([[1.0, 0.0], [0.5, 0.75]])
    logprobs_BT = torch.full((4, 3), -1.0, requires_grad=True)
    advantages_BT = row.advantage(rewards_PG, None).reshape(4, 1)
    loss_BT, _ = row.surrogate(logprobs_BT, logprobs_BT.detach(), advantages_BT, row.clip_low, row.clip_high)
    counts = aggregation.Counts(sequences=4, tokens=12, max_length=5)
    loss = aggregation.weighted_sum(loss_BT, row.aggregation(torch.ones(4, 3, dtype=torch.bool), counts))
    loss.backward()
    assert logprobs_BT.grad is not None
    assert (logprobs_BT.grad[0] < 0).all(), "the better attempt becomes likelier"


@pytest.mark.parametrize("name", ADVANTAGES)
def test_group_relative_is_what_the_function_does(name):
    vanishes = not ADVANTAGES[name](torch.tensor([[1.0, 1.0], [0.0, 0.0]]), None).any()
    assert vanishes == (ADVANTAGES[name] in GROUP_ADVANTAGES) == resolve("default", advantage=name).group_relative


def test_a_value_of_the_recipe_wins_and_none_keeps_the_row():
    assert resolve("default", clip_high=None, advantage=None) == ALGORITHMS["default"]
    changed = resolve(
        "grpo",
        advantage="group_relative_sample",
        aggregation="token_mean",
        clip_low=0.0,
        clip_high=0.3,
        divergence="k3",
        divergence_weight=0.04,
        sampler_correction_cap=3.0,
    )
    assert changed.advantage is advantages.group_relative_sample
    assert changed.surrogate is surrogates.ppo_clip
    assert changed.aggregation is aggregation.token_mean
    assert changed.divergence is divergences.k3
    assert (changed.clip_low, changed.clip_high) == (0.0, 0.3)
    assert (changed.divergence_weight, changed.sampler_correction_cap) == (0.04, 3.0)
    assert ALGORITHMS["grpo"].advantage is advantages.group_relative


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("gpro", {}, "algorithm.name: no 'gpro'. Did you mean 'grpo'\\? Known: reinforce, .*default"),
        ("xyz", {}, "algorithm.name: no 'xyz'. Known: reinforce"),
        ("grpo", {"advantage": "group_centred"}, "algorithm.advantage: .*Did you mean 'group_centered'\\?"),
        ("grpo", {"surrogate": "ppo"}, "algorithm.surrogate: no 'ppo'.* Known: policy_gradient, ppo_clip"),
        ("grpo", {"aggregation": "token_maen"}, "algorithm.aggregation: .*Did you mean 'token_mean'\\?"),
        ("grpo", {"divergence": "k1", "divergence_weight": 0.1}, "algorithm.divergence: no 'k1'.* Known: k2, k3"),
        ("grpo", {"divergence": "k3"}, "algorithm.divergence_weight: 0"),
        ("grpo", {"divergence": "k3", "divergence_weight": 0.0}, "algorithm.divergence_weight: 0"),
        ("grpo", {"divergence_weight": 0.1}, "algorithm.divergence: none chosen for weight 0.1"),
        ("rloo", {"clip_high": 0.3}, "algorithm.clip_high: policy_gradient does not clip"),
        (
            "grpo",
            {"surrogate": "policy_gradient", "clip_low": 0.3},
            "algorithm.clip_low: policy_gradient does not clip",
        ),
    ],
)
def test_what_cannot_be_resolved_is_said(name, overrides, message):
    with pytest.raises(RecipeError, match=message):
        resolve(name, **overrides)


def test_an_algorithm_does_not_change():
    with pytest.raises(FrozenInstanceError):
        resolve("grpo").clip_low = 0.5  # pyright: ignore[reportAttributeAccessIssue]
