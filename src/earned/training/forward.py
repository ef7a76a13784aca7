"""Passes over rows of prompt and completion that only look: log-probabilities without gradient, by rollout id."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from earned.policy.load import Policy
from earned.policy.logprobs import TokenScores, shared_prompt_scores
from earned.rollouts.batching import TokenBatch, TrainingRow, micro_batches
from earned.training.reference import Reference
from earned.vocabulary import RolloutGroup


@dataclass(frozen=True, kw_only=True)
class Forward:
    """How rows are read: the same for old, policy and reference log-probabilities, so that they can be compared."""

    policy: Policy
    temperature: float
    """Of the sampling: the distribution trained on is the one sampled."""
    precision: torch.dtype
    tokens_per_micro_batch: int

    def scores(self, batch: TokenBatch) -> TokenScores:
        """Return the policy's log-probabilities and entropies; with gradient where that is on."""
        with self.policy.computing_in(self.precision):
            return shared_prompt_scores(
                self.policy.model, batch.token_ids_BT, batch.trained_BT, batch.prompts, self.temperature
            )

    def reference_logprobs(self, reference: Reference, batch: TokenBatch) -> Tensor:
        """Return `reference_logprobs_BT`."""
        with self.policy.computing_in(self.precision):
            return reference.logprobs(batch, self.temperature)

    def micro_batches(self, rows: Sequence[TrainingRow]) -> Iterable[TokenBatch]:
        """Return the rows in batches of a bounded number of tokens."""
        return micro_batches(rows, self.tokens_per_micro_batch, self.policy.device)

    @torch.no_grad()
    def by_rollout(self, rows: Sequence[TrainingRow], look: Callable[[TokenBatch], Tensor]) -> dict[str, Tensor]:
        """Return what a look at the rows says of every completion's tokens, [completion length], by rollout id."""
        found: dict[str, Tensor] = {}
        for batch in self.micro_batches(rows):
            for row, values_T in zip(batch.rows, look(batch), strict=True):
                found[row.rollout.id] = values_T[row.start : row.length].clone()
        return found

    def policy_logprobs(self, rows: Sequence[TrainingRow]) -> dict[str, Tensor]:
        """Return the policy's log-probabilities of every row's completion as the weights are now."""
        return self.by_rollout(rows, lambda batch: self.scores(batch).logprobs_BT)


def scored_rows(groups: Sequence[RolloutGroup]) -> list[TrainingRow]:
    """Return the rollouts that could be judged, as rows without advantage."""
    return [
        TrainingRow(rollout=rollout, prompt=group.prompt, advantages=torch.zeros(rollout.completion.length))
        for group in groups
        for rollout in group.rollouts
        if rollout.score.value is not None
    ]


def stacked(batch: TokenBatch, values: Mapping[str, Tensor]) -> Tensor:
    """Return the completions' values as one tensor [B, T] beside the batch, 0 outside the completions."""
    first = values[batch.rows[0].rollout.id]
    stacked_BT = torch.zeros(batch.token_ids_BT.shape, dtype=first.dtype, device=batch.token_ids_BT.device)
    for index, row in enumerate(batch.rows):
        stacked_BT[index, row.start : row.length] = values[row.rollout.id]
    return stacked_BT
