"""Prompts, completions and scored rollouts for the tests of this room."""

from collections.abc import Sequence

import torch
from torch import Tensor

from earned.policy.load import Policy
from earned.policy.logprobs import token_scores
from earned.policy.prompts import render
from earned.rollouts.batching import TokenBatch, TrainingRow, token_batch
from earned.vocabulary import (
    Completion,
    Problem,
    Prompt,
    Rollout,
    Score,
    ScoreStatus,
    Segment,
    Split,
    StopReason,
)

SCORE = Score(value=1.0, status=ScoreStatus.SCORED, parts=())
CPU = torch.device("cpu")


def problem(id: str, prompt: str = "1+1=") -> Problem:
    return Problem(id=id, prompt=prompt, gold="2", source="sums", split=Split.TRAIN)


def prompts_of(policy: Policy, texts: Sequence[str]) -> list[Prompt]:
    return [render(policy, problem(f"p{index}", text)) for index, text in enumerate(texts)]


def segment(token_ids: Sequence[int], sampled: bool = True) -> Segment:
    logprobs = tuple(-0.5 * (place + 1) if sampled else 0.0 for place in range(len(token_ids)))
    return Segment(token_ids=tuple(token_ids), sampled=sampled, sampler_logprobs=logprobs)


def completion(*segments: Segment, text: str = "") -> Completion:
    return Completion(segments=segments, text=text, stop_reason=StopReason.LENGTH, policy_version=0)


def training_row(prompt: Prompt, of: Completion, advantage: float = 1.0, id: str = "r") -> TrainingRow:
    return TrainingRow(
        rollout=Rollout(id=id, attempt=0, completion=of, score=SCORE),
        prompt=prompt,
        advantages=torch.full((of.length,), advantage),
    )


def trainer_logprobs(
    policy: Policy, prompts: Sequence[Prompt], completions: Sequence[Sequence[Completion]], temperature: float
) -> tuple[TokenBatch, Tensor]:
    """The completions as one training batch, and what the trainer says of its tokens."""
    rows = [training_row(prompt, each) for prompt, group in zip(prompts, completions, strict=True) for each in group]
    batch = token_batch(rows, CPU)
    with torch.no_grad():
        scores = token_scores(policy.model, batch.token_ids_BT, batch.trained_BT, temperature)
    return batch, scores.logprobs_BT
