"""The one table from the name of an algorithm to its parts, its defaults and its source.

An algorithm is an advantage, a surrogate, an aggregation and, where wanted, a divergence. A new part is a function and
a row in its table; a new algorithm is a row in `ALGORITHMS`.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from torch import Tensor

from earned.algorithms import advantages, aggregation, divergences, surrogates
from earned.errors import RecipeError

Part = TypeVar("Part")

AdvantageFunction = Callable[[Tensor, Tensor | None], Tensor]
SurrogateFunction = Callable[[Tensor, Tensor, Tensor, float, float], surrogates.Surrogate]
AggregationFunction = Callable[[Tensor, aggregation.Counts], Tensor]
DivergenceFunction = Callable[[Tensor, Tensor], Tensor]

ADVANTAGES: dict[str, AdvantageFunction] = {
    "plain_reward": advantages.plain_reward,
    "batch_mean_baseline": advantages.batch_mean_baseline,
    "leave_one_out": advantages.leave_one_out,
    "group_centered": advantages.group_centered,
    "group_relative": advantages.group_relative,
    "group_relative_sample": advantages.group_relative_sample,
    "batch_deviation": advantages.batch_deviation,
}

GROUP_ADVANTAGES = frozenset(ADVANTAGES.values()) - {advantages.plain_reward, advantages.batch_mean_baseline}
"""Those that compare an attempt with its siblings: they need two of them, and equal rewards teach them nothing."""

SURROGATES: dict[str, SurrogateFunction] = {
    "policy_gradient": surrogates.policy_gradient,
    "ppo_clip": surrogates.ppo_clip,
}

AGGREGATIONS: dict[str, AggregationFunction] = {
    "token_mean": aggregation.token_mean,
    "sequence_mean": aggregation.sequence_mean,
    "sequence_sum": aggregation.sequence_sum,
    "fixed_length": aggregation.fixed_length,
}

# Losses, so `k1` is not among them: its expected gradient is 0 and a weight on it would only add noise.
DIVERGENCES: dict[str, DivergenceFunction] = {
    "k2": divergences.k2,
    "k3": divergences.k3,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Critic:
    """How a value model is trained, and how it turns rewards into advantages."""

    gamma: float = 1.0
    """Discount a token."""
    gae_lambda: float = 1.0
    """Weight of later rewards against the value model's own forecast of them, a token."""
    learning_rate: float = 1e-5
    updates: int = 4
    """Optimiser steps of the value model a batch."""
    warmup_steps: int = 5
    """First steps of a run in which only the value model is trained."""
    value_clip: float | None = None
    """Farthest that a value may move in one batch and still be trained; None for no bound."""
    whiten: bool = False
    """Whether advantages are centred and divided by their deviation over the batch, which can flip signs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Algorithm:
    """A complete choice of parts and their numbers."""

    name: str
    advantage: AdvantageFunction
    surrogate: SurrogateFunction
    aggregation: AggregationFunction
    divergence: DivergenceFunction | None = None
    """From the reference, added to the token loss; None for none."""
    clip_low: float = 0.2
    """The ratio counts down to 1 - clip_low; only surrogates that clip read it."""
    clip_high: float = 0.2
    """The ratio counts up to 1 + clip_high."""
    divergence_weight: float = 0.0
    """Reward units per nat."""
    divergence_in: Literal["loss", "reward"] = "loss"
    """Whether the divergence is differentiated, or taken off the reward of its token."""
    divergence_target: float | None = None
    """Nats a token that the weight is steered towards after every step; None leaves the weight as it is."""
    sampler_correction_cap: float | None = None
    """Most that a token weighs for being likelier in the trainer than in the sampler; None for no correction."""
    epochs: int = 1
    """Passes over a batch."""
    mini_batches: int = 1
    """Parts that a batch is cut into in each pass; every part is one update."""
    refill_rounds: int = 0
    """Times that groups without signal are replaced by attempts at other problems before the update."""
    mask_truncated: bool = False
    """Whether completions that the length limit ended are left out of the loss; they stay in the baseline."""
    missing_eos_penalty: float = 0.0
    """Taken off the reward of a completion that the length limit ended."""
    critic: Critic | None = None
    """The learned value model that is the baseline of every token; None for a baseline from the siblings or none."""
    source: str
    summary: str

    @property
    def group_relative(self) -> bool:
        """True when an attempt is compared with its siblings: G >= 2, and a group of equal rewards gives exactly 0."""
        return self.advantage in GROUP_ADVANTAGES


ALGORITHMS: dict[str, Algorithm] = {
    row.name: row
    for row in (
        Algorithm(
            name="reinforce",
            advantage=advantages.plain_reward,
            surrogate=surrogates.policy_gradient,
            aggregation=aggregation.sequence_sum,
            source="Williams 1992",
            summary="the reward times the log-probability of the completion, without a baseline",
        ),
        Algorithm(
            name="reinforce_baseline",
            advantage=advantages.batch_mean_baseline,
            surrogate=surrogates.policy_gradient,
            aggregation=aggregation.sequence_sum,
            source="Williams 1992",
            summary="the reward minus the mean of the batch, times the log-probability of the completion",
        ),
        Algorithm(
            name="rloo",
            advantage=advantages.leave_one_out,
            surrogate=surrogates.policy_gradient,
            aggregation=aggregation.sequence_sum,
            source="arXiv 2402.14740; the paper's KL in the reward is left out",
            summary="the reward minus the mean of the siblings, times the log-probability of the completion",
        ),
        Algorithm(
            name="grpo",
            advantage=advantages.group_relative,
            surrogate=surrogates.ppo_clip,
            aggregation=aggregation.sequence_mean,
            source="arXiv 2402.03300, equation 3; the paper's KL of weight 0.04 is left out",
            summary="the reward in population deviations from the group's mean, clipped ratio, mean over completions",
        ),
        Algorithm(
            name="dr_grpo",
            advantage=advantages.group_centered,
            surrogate=surrogates.ppo_clip,
            aggregation=aggregation.fixed_length,
            source="arXiv 2503.20783, section 3",
            summary="the reward minus the group's mean, clipped ratio, divided by a fixed length",
        ),
        # Today's practice for rewards that are checked. No division by the deviation: it would weigh problems that are
        # nearly solved or nearly hopeless most (Dr. GRPO, arXiv 2503.20783). Equal weight for every token, so that
        # long wrong answers are not diluted, and more room upwards, so that rare tokens can rise; no divergence, since
        # reasoning is meant to move away from the start (all three: DAPO, arXiv 2503.14476). The sampler's rounding is
        # corrected, at most twofold (Yao et al. 2025, the cap of open-instruct and oat).
        Algorithm(
            name="default",
            advantage=advantages.group_centered,
            surrogate=surrogates.ppo_clip,
            aggregation=aggregation.token_mean,
            clip_high=0.28,
            sampler_correction_cap=2.0,
            source="arXiv 2503.20783 and 2503.14476; sampler correction: Yao et al. 2025",
            summary="the reward minus the group's mean, ratio clipped to 0.8-1.28, mean over all tokens of the step",
        ),
    )
}


class Overrides(TypedDict, total=False):
    """What a recipe may set in place of a row's own value; None keeps it. Parts are given by name."""

    advantage: str | None
    surrogate: str | None
    aggregation: str | None
    divergence: str | None
    clip_low: float | None
    clip_high: float | None
    divergence_weight: float | None
    divergence_in: Literal["loss", "reward"] | None
    divergence_target: float | None
    sampler_correction_cap: float | None
    epochs: int | None
    mini_batches: int | None
    refill_rounds: int | None
    mask_truncated: bool | None
    missing_eos_penalty: float | None


PARTS: dict[str, Mapping[str, Callable[..., Any]]] = {
    "advantage": ADVANTAGES,
    "surrogate": SURROGATES,
    "aggregation": AGGREGATIONS,
    "divergence": DIVERGENCES,
}


def resolve(name: str, **overrides: Unpack[Overrides]) -> Algorithm:
    """Return the algorithm called `name` with the given parts and numbers in place of its own.

    Raises RecipeError naming the field, the allowed names and the nearest one, or the half of a divergence that lacks
    the other.

    >>> resolve("grpo").clip_high, resolve("grpo", clip_high=0.28).clip_high
    (0.2, 0.28)
    >>> resolve("gpro")
    Traceback (most recent call last):
    earned.errors.RecipeError: algorithm.name: no 'gpro'. Did you mean 'grpo'? Known: reinforce, reinforce_baseline, ...
    """
    row = _find("name", name, ALGORITHMS)
    chosen: dict[str, Any] = {field: value for field, value in overrides.items() if value is not None}
    chosen |= {field: _find(field, chosen[field], table) for field, table in PARTS.items() if field in chosen}
    algorithm = replace(row, **chosen)
    _check(algorithm, overrides)
    return algorithm


def _find(field: str, name: str, table: Mapping[str, Part]) -> Part:
    if name in table:
        return table[name]
    near = difflib.get_close_matches(name, table, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise RecipeError(f"algorithm.{field}: no {name!r}.{hint} Known: {', '.join(table)}")


def _check(algorithm: Algorithm, overrides: Overrides) -> None:
    weight = algorithm.divergence_weight
    if algorithm.divergence is not None and weight == 0:
        raise RecipeError("algorithm.divergence_weight: 0, so the divergence would do nothing; give a weight above 0")
    if algorithm.divergence is None and weight != 0:
        raise RecipeError(
            f"algorithm.divergence: none chosen for weight {weight}; choose one of {', '.join(DIVERGENCES)}"
        )
    for field in ("clip_low", "clip_high"):
        if algorithm.surrogate is surrogates.policy_gradient and overrides.get(field) is not None:
            raise RecipeError(f"algorithm.{field}: policy_gradient does not clip; leave it out, or choose ppo_clip")
