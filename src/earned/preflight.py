"""Looks before the first step: is there anything to learn, and what will it cost?"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import torch

from earned.algorithms.named import Algorithm
from earned.assembly import Assembled, chooser, forward, sampling_settings
from earned.diagnostics import estimate
from earned.diagnostics.estimate import ModelSize, Trial, Work
from earned.diagnostics.groups import no_signal_at_the_start
from earned.errors import PreflightError
from earned.policy.load import Policy
from earned.policy.logprobs import CHUNK_LOGITS
from earned.problems.curriculum import CurriculumState
from earned.recipe import Recipe
from earned.rewards.checks import CONTROLS
from earned.rewards.compose import deciding_checks
from earned.rollouts.collect import scored_groups
from earned.rollouts.engine import Draw
from earned.training.advantages import group_advantages
from earned.training.clock import Clock
from earned.training.forward import scored_rows
from earned.vocabulary import RolloutGroup, Split

PASSES = 3
"""A backward pass costs about two forward passes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """What a run is expected to cost."""

    seconds: float | None
    """None without a pre-flight."""
    sentences: tuple[str, ...]
    """The estimate, and a warning where it is due."""


def must_teach(recipe: Recipe, algorithm: Algorithm) -> bool:
    """Return whether a recipe is meant to learn; controls that have to be allowed by name are not."""
    checks = deciding_checks(recipe.rewards.parts)
    alone = algorithm.group_relative and recipe.sampling.group_size == 1
    return not checks <= set(CONTROLS) and not alone and recipe.optim.learning_rate > 0


def teaches(groups: Sequence[RolloutGroup], algorithm: Algorithm) -> bool:
    """Return whether an update on these groups, the batch of one step, would move the weights.

    By the algorithm's own comparison: with siblings it takes a group of unequal rewards, with the whole batch two
    unequal rewards in it, with nothing (`reinforce`) one reward other than 0.
    """
    return any(advantage != 0 for advantage in group_advantages(groups, algorithm).values())


def preflight(parts: Assembled) -> Trial | None:
    """Sample attempts as training will until they teach something, and return what that cost.

    The prompts are those of step 1, 2, ..., the random numbers are others than training's. With `no_signal` allowed
    nothing is sampled, and the result is None.

    Raises:
        PreflightError: the attempts taught nothing; the sentence says why and what to change.
        VerifierError: too many of them could not be scored.
    """
    recipe = parts.recipe
    if "no_signal" in recipe.rewards.allow:
        return None
    choose, clock = chooser(parts), Clock()
    most = max(1, recipe.preflight_tries // recipe.sampling.group_size)
    seen: list[RolloutGroup] = []
    for step in count(1):
        draw = Draw(seed=recipe.seed, step=step, purpose="preflight")
        prompts = choose(step, recipe.sampling.prompts_per_step, (), CurriculumState())[: most - len(seen)]
        with clock.part("sample"):
            completions = parts.engine.generate(prompts, sampling_settings(recipe), draw)
        with clock.part("score"):
            groups = scored_groups(prompts, completions, parts.score, draw)
        seen += groups
        if teaches(groups, parts.algorithm) or not must_teach(recipe, parts.algorithm):
            break
        if len(seen) == most:
            raise PreflightError(no_signal_at_the_start(seen))
    with clock.part("read"):
        _read(parts, seen)
    rollouts = [rollout for group in seen for rollout in group.rollouts]
    return Trial(
        attempts=len(rollouts),
        tokens=sum(rollout.completion.length for rollout in rollouts),
        sample_seconds=clock.seconds["sample"],
        score_seconds=clock.seconds["score"],
        read_seconds=clock.seconds["read"],
    )


def outlook(parts: Assembled, measured: Trial | None) -> Outlook:
    """Return what the run will cost, with a warning where the memory is more than there is."""
    work, device = work_of(parts), parts.policy.device
    memory, there = estimate.memory(work, model_size(parts.policy)), _available_bytes(device)
    where = "the GPU" if device.type == "cuda" else "this machine"
    warning = (
        f"{estimate.gigabytes(memory.peak)} is more memory than the {estimate.gigabytes(there)} {where} has: "
        f"{memory.remedy}"
    )
    return Outlook(
        seconds=None if measured is None else estimate.seconds(work, measured),
        sentences=(estimate.sentence(work, measured, memory.peak), *([warning] if memory.peak > there else [])),
    )


def work_of(parts: Assembled) -> Work:
    """Return what the recipe asks for, in the terms of the estimate."""
    recipe, sampling = parts.recipe, parts.recipe.sampling
    measured = [len(parts.prompts[split]) for split in parts.measured]
    watched = min(recipe.evaluation.watched, len(parts.prompts[Split.HELD_OUT]))
    attempts, samples = sampling.prompts_per_step * sampling.group_size, recipe.evaluation.samples
    prompts = [len(prompt.token_ids) for split in Split for prompt in parts.prompts[split]]
    return Work(
        steps=recipe.steps,
        attempts=attempts,
        group=sampling.group_size,
        max_new_tokens=sampling.max_new_tokens,
        evaluations=1 + estimate.evaluations_after(0, recipe.evaluation.every, recipe.steps),
        evaluated=(sum(measured) + watched) * (samples + 1),
        reads=PASSES + (parts.algorithm.epochs * parts.algorithm.mini_batches > 1) + (parts.reference is not None),
        rows=min(sampling.batch_size, max(attempts, *(samples * problems for problems in measured), 1)),
        longest=max(prompts) + sampling.max_new_tokens,
        micro_batch=recipe.optim.tokens_per_micro_batch,
        chunk=CHUNK_LOGITS,
        reference=parts.reference is not None,
    )


def model_size(policy: Policy) -> ModelSize:
    """Return the numbers of a model that memory depends on, from its settings; what a family lacks is guessed."""
    config = policy.model.config.get_text_config()
    heads = config.num_attention_heads
    head = getattr(config, "head_dim", None) or config.hidden_size // heads
    return ModelSize(
        parameters=sum(value.numel() for value in policy.parameters().values()),
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        intermediate=getattr(config, "intermediate_size", None) or 4 * config.hidden_size,
        key_value=(getattr(config, "num_key_value_heads", None) or heads) * head,
        vocabulary=config.vocab_size,
    )


def _read(parts: Assembled, groups: Sequence[RolloutGroup]) -> None:
    """Make the forward pass of an update over all attempts that could be scored."""
    # Reading the sums waits for the device, so that the clock sees the work.
    for values_T in forward(parts.recipe, parts.policy).policy_logprobs(scored_rows(groups)).values():
        float(values_T.sum())


def _available_bytes(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
