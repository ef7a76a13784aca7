"""The parts of an algorithm by name, and what holds for some of them only."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from earned.algorithms import advantages, aggregation, corrections, divergences, surrogates

AdvantageFunction = Callable[[Tensor, Tensor | None], Tensor]
SurrogateFunction = Callable[[Tensor, Tensor, Tensor, Tensor, float, float], surrogates.Surrogate]
AggregationFunction = Callable[[Tensor, aggregation.Counts], Tensor]
DivergenceFunction = Callable[[Tensor, Tensor], Tensor]
CorrectionFunction = Callable[[Tensor, Tensor, Tensor, float], Tensor]

ADVANTAGES: dict[str, AdvantageFunction] = {
    "plain_reward": advantages.plain_reward,
    "batch_mean_baseline": advantages.batch_mean_baseline,
    "batch_relative": advantages.batch_relative,
    "leave_one_out": advantages.leave_one_out,
    "group_centered": advantages.group_centered,
    "group_relative": advantages.group_relative,
    "group_relative_sample": advantages.group_relative_sample,
    "batch_deviation": advantages.batch_deviation,
    "centered_deviation": advantages.centered_deviation,
    "mean_relative": advantages.mean_relative,
    "best_of_group": advantages.best_of_group,
}

GROUP_ADVANTAGES = frozenset(ADVANTAGES.values()) - {
    advantages.plain_reward,
    advantages.batch_mean_baseline,
    advantages.batch_relative,
}
"""Those that compare an attempt with its siblings: they need two of them, and equal rewards teach them nothing."""

SURROGATES: dict[str, SurrogateFunction] = {
    "policy_gradient": surrogates.policy_gradient,
    "ppo_clip": surrogates.ppo_clip,
    "gspo": surrogates.gspo,
    "cispo": surrogates.cispo,
    "dppo": surrogates.dppo,
    "sapo": surrogates.sapo,
}

CLIPS: Mapping[SurrogateFunction, Mapping[str, float]] = {
    surrogates.policy_gradient: {},
    surrogates.ppo_clip: {"clip_low": 0.2, "clip_high": 0.2},
    surrogates.gspo: {"clip_low": 3e-4, "clip_high": 4e-4},
    surrogates.cispo: {"clip_high": 5.0},
    surrogates.dppo: {"clip_low": 0.15, "clip_high": 0.15},
    surrogates.sapo: {"clip_low": 1.05, "clip_high": 1.0},
}
"""The clips that a surrogate reads, and what is usual: their units differ, so no number of another one would do."""

ABOVE_ZERO = frozenset({surrogates.cispo, surrogates.sapo})
"""Surrogates whose clips are a weight or a temperature, and not a distance that may be 0."""

AGGREGATIONS: dict[str, AggregationFunction] = {
    "token_mean": aggregation.token_mean,
    "sequence_mean": aggregation.sequence_mean,
    "sequence_sum": aggregation.sequence_sum,
    "fixed_length": aggregation.fixed_length,
}

DIVERGENCES: dict[str, DivergenceFunction] = {
    "k1": divergences.k1,
    "k2": divergences.k2,
    "k3": divergences.k3,
}

CORRECTIONS: dict[str, CorrectionFunction] = {
    "token_truncate": corrections.token_truncate,
    "sequence_truncate": corrections.sequence_truncate,
    "token_mask": corrections.token_mask,
    "sequence_mask": corrections.sequence_mask,
}

PARTS: dict[str, Mapping[str, Callable[..., Any]]] = {
    "advantage": ADVANTAGES,
    "surrogate": SURROGATES,
    "aggregation": AGGREGATIONS,
    "divergence": DIVERGENCES,
    "sampler_correction": CORRECTIONS,
}
"""By the field of an algorithm that holds the part."""
