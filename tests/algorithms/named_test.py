from dataclasses import FrozenInstanceError

import pytest
import torch

from earned.algorithms import advantages, aggregation, corrections, divergences, surrogates
from earned.algorithms.algorithm import Critic
from earned.algorithms.named import ALGORITHMS, resolve
from earned.algorithms.parts import (
    ADVANTAGES,
    AGGREGATIONS,
    CLIPS,
    CORRECTIONS,
    DIVERGENCES,
    GROUP_ADVANTAGES,
    PARTS,
    SURROGATES,
)
from earned.errors import RecipeError


def test_the_table():
    rows = {
        name: (row.advantage.__name__, row.surrogate.__name__, row.aggregation.__name__, *row.clips.values())
        for name, row in ALGORITHMS.items()
    }
    assert rows == {
        "reinforce": ("plain_reward", "policy_gradient", "sequence_sum"),
        "reinforce_baseline": ("batch_mean_baseline", "policy_gradient", "sequence_sum"),
        "rloo": ("leave_one_out", "policy_gradient", "sequence_sum"),
        "reinforce_pp": ("batch_relative", "ppo_clip", "token_mean", 0.2, 0.2),
        "reinforce_pp_baseline": ("centered_deviation", "ppo_clip", "token_mean", 0.2, 0.2),
        "grpo": ("group_relative", "ppo_clip", "sequence_mean", 0.2, 0.2),
        "grpo_paper": ("group_relative", "ppo_clip", "sequence_mean", 0.2, 0.2),
        "dr_grpo": ("group_centered", "ppo_clip", "fixed_length", 0.2, 0.2),
        "dapo": ("group_relative", "ppo_clip", "token_mean", 0.2, 0.28),
        "lite_ppo": ("batch_deviation", "ppo_clip", "token_mean", 0.2, 0.2),
        "gspo": ("group_relative", "gspo", "sequence_mean", 3e-4, 4e-4),
        "cispo": ("group_relative", "cispo", "token_mean", 5.0),
        "maxrl": ("mean_relative", "policy_gradient", "sequence_sum"),
        "ppo": ("plain_reward", "ppo_clip", "token_mean", 0.2, 0.2),
        "dppo": ("group_centered", "dppo", "fixed_length", 0.15, 0.15),
        "sapo": ("group_relative", "sapo", "sequence_mean", 1.05, 1.0),
        "best_of_group": ("best_of_group", "policy_gradient", "token_mean"),
        "default": ("group_centered", "ppo_clip", "token_mean", 0.2, 0.28),
    }
    assert all(row.source and row.summary for row in ALGORITHMS.values())


def test_what_only_some_rows_have():
    def having(field: str) -> dict[str, object]:
        return {name: getattr(row, field) for name, row in ALGORITHMS.items() if getattr(row, field)}

    assert having("sampler_correction") == {"default": corrections.token_truncate}
    assert having("divergence") == {"grpo_paper": divergences.k3}
    assert having("divergence_weight") == {"grpo_paper": 0.04}
    assert set(having("refill_rounds")) == set(having("mask_truncated")) == {"dapo"}
    assert set(having("critic")) == {"ppo"}
    critic = ALGORITHMS["ppo"].critic
    assert isinstance(critic, Critic) and critic.warmup_steps <= 5 and (critic.gamma, critic.gae_lambda) == (1.0, 1.0)


def test_every_surrogate_has_its_clips():
    assert list(CLIPS) == list(SURROGATES.values())
    assert all(set(clips) <= {"clip_low", "clip_high"} for clips in CLIPS.values())


@pytest.mark.parametrize("table", PARTS.values())
def test_parts_are_named_after_their_functions(table):
    assert all(part.__name__ == name for name, part in table.items())


def test_every_public_part_is_in_a_table():
    for module, table, others in (
        (advantages, ADVANTAGES, set()),
        (surrogates, SURROGATES, set()),
        (aggregation, AGGREGATIONS, {"weighted_sum"}),
        (divergences, DIVERGENCES, {"exact"}),
        (corrections, CORRECTIONS, {"effective_sample_size"}),
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
    logprobs_BT, trained_BT = torch.full((4, 3), -1.0, requires_grad=True), torch.ones(4, 3, dtype=torch.bool)
    advantages_BT = row.advantage(rewards_PG, None).reshape(4, 1)
    loss_BT, _ = row.surrogate(
        logprobs_BT, logprobs_BT.detach(), advantages_BT, trained_BT, row.clip_low, row.clip_high
    )
    counts = aggregation.Counts(sequences=4, tokens=12, max_length=5)
    loss = aggregation.weighted_sum(loss_BT, row.aggregation(trained_BT, counts))
    loss.backward()
    assert logprobs_BT.grad is not None
    assert (logprobs_BT.grad[0] < 0).all(), "the better attempt becomes likelier"


EDGES = {
    "all fail": ([[0.0, 0.0, 0.0]], None),
    "all pass": ([[1.0, 1.0, 1.0]], None),
    "equal and not dyadic": ([[0.1] * 7, [0.3] * 7, [0.95] * 7], None),
    "equal below zero": ([[-0.7, -0.7, -0.7]], None),
    "one attempt": ([[0.4]], None),
    "one scored attempt": ([[0.4, 1.0, 0.0]], [[True, False, False]]),
    "none scored": ([[0.4, 1.0, 0.0]], [[False, False, False]]),
    "half unscored, the others equal": ([[0.3, 1.0, 0.3, 0.0]], [[True, False, True, False]]),
}


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_groups_at_the_edge(name, edge):
    """Groups without a comparison teach nothing, unless the algorithm does not compare siblings; nothing is NaN."""
    row, (rewards, scored) = ALGORITHMS[name], EDGES[edge]
    rewards_PG = torch.tensor(rewards)
    scored_PG = torch.ones_like(rewards_PG, dtype=torch.bool) if scored is None else torch.tensor(scored)
    mixed_G, all_G = torch.linspace(0, 1, rewards_PG.shape[1]), torch.ones(1, rewards_PG.shape[1], dtype=torch.bool)
    beside = row.advantage(torch.cat([rewards_PG, mixed_G[None]]), torch.cat([scored_PG, all_G]))
    for advantages_PG in (row.advantage(rewards_PG, scored_PG), beside[:-1]):
        assert advantages_PG.isfinite().all()
        assert not advantages_PG[~scored_PG].any()
        if row.group_relative:
            assert torch.equal(advantages_PG, torch.zeros_like(rewards_PG)), "exactly 0, also beside a mixed group"
    if row.advantage is advantages.plain_reward:
        assert torch.equal(row.advantage(rewards_PG, scored_PG), torch.where(scored_PG, rewards_PG, 0.0))
    assert beside[-1].any() or mixed_G.numel() == 1


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_half_unscored_group_is_its_scored_half(name):
    advantage = ALGORITHMS[name].advantage
    rewards_PG, scored_PG = torch.tensor([[1.0, 9.0, 0.0, -9.0]]), torch.tensor([[True, False, True, False]])
    assert torch.equal(advantage(rewards_PG, scored_PG)[:, ::2], advantage(torch.tensor([[1.0, 0.0]]), None))


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
        sampler_correction="sequence_mask",
        sampler_correction_cap=3.0,
    )
    assert changed.advantage is advantages.group_relative_sample
    assert changed.surrogate is surrogates.ppo_clip
    assert changed.aggregation is aggregation.token_mean
    assert changed.divergence is divergences.k3
    assert changed.sampler_correction is corrections.sequence_mask
    assert (changed.clip_low, changed.clip_high) == (0.0, 0.3)
    assert (changed.divergence_weight, changed.sampler_correction_cap) == (0.04, 3.0)
    assert ALGORITHMS["grpo"].advantage is advantages.group_relative


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("cispo", {"clip_low": 0.1}, "algorithm.clip_low: cispo does not read it; .*choose ppo_clip, gspo, dppo, sapo"),
        ("sapo", {"clip_low": 0.0}, "algorithm.clip_low: 0; what sapo makes of it has to be above 0"),
        ("grpo", {"surrogate": "cispo", "clip_high": 0.0}, "algorithm.clip_high: 0; what cispo"),
        ("gpro", {}, "algorithm.name: no 'gpro'. Did you mean 'grpo'\\? Known: reinforce, .*default"),
        ("xyz", {}, "algorithm.name: no 'xyz'. Known: reinforce"),
        ("grpo", {"advantage": "group_centred"}, "algorithm.advantage: .*Did you mean 'group_centered'\\?"),
        ("grpo", {"surrogate": "ppo"}, "algorithm.surrogate: no 'ppo'.* Known: policy_gradient, ppo_clip"),
        ("grpo", {"aggregation": "token_maen"}, "algorithm.aggregation: .*Did you mean 'token_mean'\\?"),
        ("grpo", {"divergence": "k4", "divergence_weight": 0.1}, "algorithm.divergence: no 'k4'.* Known: k1, k2, k3"),
        ("grpo", {"divergence_in": "reward"}, "algorithm.divergence: none chosen for divergence_in"),
        ("grpo", {"divergence_target": 0.1}, "algorithm.divergence: none chosen for divergence_target"),
        (
            "grpo",
            {"sampler_correction": "tis"},
            "algorithm.sampler_correction: .* Known: token_truncate, sequence_trun",
        ),
        ("default", {"sampler_correction_cap": 0.5}, "algorithm.sampler_correction_cap: 0.5 is below 1"),
        ("grpo", {"sampler_correction_cap": 3.0}, "algorithm.sampler_correction: none chosen to cap"),
        ("grpo", {"divergence": "k3"}, "algorithm.divergence_weight: 0"),
        ("grpo", {"divergence": "k3", "divergence_weight": 0.0}, "algorithm.divergence_weight: 0"),
        ("grpo", {"divergence_weight": 0.1}, "algorithm.divergence: none chosen for weight 0.1"),
        (
            "rloo",
            {"clip_high": 0.3},
            "algorithm.clip_high: policy_gradient does not read it; .*choose ppo_clip, gspo, cispo",
        ),
        (
            "grpo",
            {"surrogate": "policy_gradient", "clip_low": 0.3},
            "algorithm.clip_low: policy_gradient does not read it",
        ),
    ],
)
def test_what_cannot_be_resolved_is_said(name, overrides, message):
    with pytest.raises(RecipeError, match=message):
        resolve(name, **overrides)


def test_another_surrogate_comes_with_its_own_clips():
    assert resolve("default", surrogate="gspo").clips == {"clip_low": 3e-4, "clip_high": 4e-4}
    assert resolve("default", surrogate="gspo", clip_high=1e-3).clips == {"clip_low": 3e-4, "clip_high": 1e-3}
    assert resolve("default", surrogate="ppo_clip").clips == {"clip_low": 0.2, "clip_high": 0.28}, "the row's own"
    assert resolve("cispo", surrogate="ppo_clip").clips == {"clip_low": 0.2, "clip_high": 0.2}


def test_an_algorithm_does_not_change():
    with pytest.raises(FrozenInstanceError):
        resolve("grpo").clip_low = 0.5  # pyright: ignore[reportAttributeAccessIssue]
