"""The one table from the name of an algorithm to its parts, its defaults and its source.

An algorithm is an advantage, a surrogate, an aggregation and, where wanted, a divergence, a correction for the sampler
and a critic. A new part is a function and a row in its table in `parts.py`; a new algorithm is a row in `ALGORITHMS`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from earned.algorithms import advantages, aggregation, corrections, divergences, surrogates
from earned.algorithms.algorithm import Algorithm, Critic
from earned.algorithms.parts import ABOVE_ZERO, CLIPS, CORRECTIONS, DIVERGENCES, PARTS
from earned.errors import RecipeError, did_you_mean

Found = TypeVar("Found")

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
            name="reinforce_pp",
            advantage=advantages.batch_relative,
            surrogate=surrogates.ppo_clip,
            aggregation=aggregation.token_mean,
            source="REINFORCE++, arXiv 2501.03262; the paper's KL in the reward is left out",
            summary="the reward in deviations from the mean of the batch, clipped ratio, mean over all tokens",
        ),
        Algorithm(
            name="reinforce_pp_baseline",
            advantage=advantages.centered_deviation,
            surrogate=surrogates.ppo_clip,
            aggregation=aggregation.token_mean,
            source="REINFORCE++ with baseline, arXiv 2501.03262; the paper's k2 in the loss is left out",
            summary="the reward minus the group's mean, in deviations of that over the batch; else as reinforce_pp",
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
            name="grpo_paper",
            advantage=advantages.group_relative,
            surrogate=surrogates.ppo_clip,
            aggregation=aggregation.sequence_mean,
            divergence=divergences.k3,
            divergence_weight=0.04,
            source="arXiv 2402.03300, equations 3 and 4",
            summary="grpo with the divergence from the start of the run in the loss",
        ),
        Algorithm(
            name="dr_grpo",
            advantage=advantages.group_centered,
            surrogate=surrogates.ppo_clip,
            aggregation=aggregation.fixed_length,
            source="arXiv 2503.20783, section 3",
            summary="the reward minus the group's mean, clipped ratio, divided by a fixed length",
        ),
        # The paper cuts a batch into 16 updates and refills without a bound; the soft penalty for long completions that
        # it ends with is a reward (`check = "length"`).
        Algorithm(
            name="dapo",
            advantage=advantages.group_relative,
            surrogate=surrogates.ppo_clip,
            aggregation=aggregation.token_mean,
            clip_high=0.28,
            mini_batches=4,
            refill_rounds=3,
            mask_truncated=True,
            source="arXiv 2503.14476, equation 8; truncated completions are masked as in its section 3.4",
            summary="grpo with more room upwards, mean over all tokens, fresh problems for groups without signal",
        ),
        Algorithm(
            name="lite_ppo",
            advantage=advantages.batch_deviation,
            surrogate=surrogates.ppo_clip,
            aggregation=aggregation.token_mean,
            source="arXiv 2508.08221",
            summary="the reward minus the group's mean, in deviations of the batch; else as reinforce_pp",
        ),
        Algorithm(
            name="gspo",
            advantage=advantages.group_relative,
            surrogate=surrogates.gspo,
            aggregation=aggregation.sequence_mean,
            clip_low=3e-4,
            clip_high=4e-4,
            mini_batches=4,
            source="arXiv 2507.18071, equations 5 and 7, section 5.1",
            summary="grpo with one ratio for a whole completion, clipped closely",
        ),
        Algorithm(
            name="cispo",
            advantage=advantages.group_relative,
            surrogate=surrogates.cispo,
            aggregation=aggregation.token_mean,
            clip_high=5.0,
            mini_batches=4,
            source="arXiv 2506.13585, equations 4 and 5, with 16 updates a batch and refill; cap: arXiv 2510.13786",
            summary="the policy gradient weighted by the ratio up to a cap, so that no token is dropped",
        ),
        Algorithm(
            name="maxrl",
            advantage=advantages.mean_relative,
            surrogate=surrogates.policy_gradient,
            aggregation=aggregation.sequence_sum,
            source="arXiv 2602.02710",
            summary="the logarithm of the chance to solve a problem instead of the chance: rare successes count most",
        ),
        # The value model takes its forecast of what is still to come off the plain reward, token by token.
        Algorithm(
            name="ppo",
            advantage=advantages.plain_reward,
            surrogate=surrogates.ppo_clip,
            aggregation=aggregation.token_mean,
            mini_batches=4,
            critic=Critic(warmup_steps=5),
            source="arXiv 1707.06347, equation 7; discount and lambda of 1: arXiv 2503.24290",
            summary="the reward minus a learned forecast for every token, clipped ratio, mean over all tokens",
        ),
        Algorithm(
            name="dppo",
            advantage=advantages.group_centered,
            surrogate=surrogates.dppo,
            aggregation=aggregation.fixed_length,
            clip_low=0.15,
            clip_high=0.15,
            mini_batches=4,
            source="arXiv 2602.04879, binary total variation; advantage, divisor and bounds as its code in verl",
            summary="dr_grpo that drops tokens by how far their probability moved, and not by the ratio",
        ),
        Algorithm(
            name="sapo",
            advantage=advantages.group_relative,
            surrogate=surrogates.sapo,
            aggregation=aggregation.sequence_mean,
            clip_low=1.05,
            clip_high=1.0,
            mini_batches=4,
            source="arXiv 2511.20347",
            summary="grpo whose tokens fade as their ratio leaves 1, instead of being clipped",
        ),
        Algorithm(
            name="best_of_group",
            advantage=advantages.best_of_group,
            surrogate=surrogates.policy_gradient,
            aggregation=aggregation.token_mean,
            source="RAFT, arXiv 2304.06767, with one update a batch",
            summary="imitation of the attempts that did best; nothing is pushed down",
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
            sampler_correction=corrections.token_truncate,
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
    sampler_correction: str | None
    sampler_correction_cap: float | None
    epochs: int | None
    mini_batches: int | None
    refill_rounds: int | None
    mask_truncated: bool | None
    missing_eos_penalty: float | None


def resolve(name: str, **overrides: Unpack[Overrides]) -> Algorithm:
    """Return the algorithm called `name` with the given parts and numbers in place of its own.

    Another surrogate than the row's comes with its usual clips, because their units differ.

    Raises:
        RecipeError: a name that there is not, with the field and the nearest one; half of a pair that makes sense only
            together; or a number that the surrogate does not read.

    >>> resolve("grpo").clip_high, resolve("grpo", clip_high=0.28).clip_high, resolve("grpo", surrogate="gspo").clips
    (0.2, 0.28, {'clip_low': 0.0003, 'clip_high': 0.0004})
    >>> resolve("gpro")
    Traceback (most recent call last):
    earned.errors.RecipeError: algorithm.name: no 'gpro'. Did you mean 'grpo'? Known: reinforce, reinforce_baseline, ...
    """
    row = _find("name", name, ALGORITHMS)
    chosen: dict[str, Any] = {field: value for field, value in overrides.items() if value is not None}
    chosen |= {field: _find(field, chosen[field], table) for field, table in PARTS.items() if field in chosen}
    if chosen.get("surrogate", row.surrogate) is not row.surrogate:
        chosen = {**CLIPS[chosen["surrogate"]], **chosen}
    algorithm = replace(row, **chosen)
    _check_clips(algorithm, overrides)
    _check_divergence(algorithm, overrides)
    _check_correction(algorithm, overrides)
    return algorithm


def _find(field: str, name: str, table: Mapping[str, Found]) -> Found:
    if name in table:
        return table[name]
    raise RecipeError(f"algorithm.{field}: no {name!r}.{did_you_mean(name, table)} Known: {', '.join(table)}")


def _check_clips(algorithm: Algorithm, overrides: Overrides) -> None:
    surrogate, read = algorithm.surrogate.__name__, algorithm.clips
    for field in ("clip_low", "clip_high"):
        if overrides.get(field) is not None and field not in read:
            clipping = ", ".join(other.__name__ for other, clips in CLIPS.items() if field in clips)
            raise RecipeError(f"algorithm.{field}: {surrogate} does not read it; leave it out, or choose {clipping}")
        if algorithm.surrogate in ABOVE_ZERO and read.get(field) == 0:
            raise RecipeError(f"algorithm.{field}: 0; what {surrogate} makes of it has to be above 0")


def _check_divergence(algorithm: Algorithm, overrides: Overrides) -> None:
    if algorithm.divergence is not None:
        if algorithm.divergence_weight == 0:
            raise RecipeError(
                "algorithm.divergence_weight: 0, so the divergence would do nothing; give a weight above 0"
            )
        return
    known = ", ".join(DIVERGENCES)
    if algorithm.divergence_weight != 0:
        raise RecipeError(
            f"algorithm.divergence: none chosen for weight {algorithm.divergence_weight}; choose one of {known}"
        )
    for field in ("divergence_in", "divergence_target"):
        if overrides.get(field) is not None:
            raise RecipeError(f"algorithm.divergence: none chosen for {field}; choose one of {known}, or leave it out")


def _check_correction(algorithm: Algorithm, overrides: Overrides) -> None:
    if algorithm.sampler_correction is None and overrides.get("sampler_correction_cap") is not None:
        raise RecipeError(
            f"algorithm.sampler_correction: none chosen to cap; choose one of {', '.join(CORRECTIONS)}, or leave "
            "sampler_correction_cap out"
        )
    if algorithm.sampler_correction_cap < 1:
        raise RecipeError(
            f"algorithm.sampler_correction_cap: {algorithm.sampler_correction_cap:g} is below 1, which is the weight "
            "of a token on which sampler and trainer agree; 2 is usual"
        )
