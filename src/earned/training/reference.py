"""The frozen policy that a divergence is measured against."""

import copy

import torch
from torch import Tensor

from earned.policy.load import Policy
from earned.policy.logprobs import shared_prompt_scores
from earned.rollouts.batching import TokenBatch


class Reference:
    """A copy of the starting weights; costs their memory, so it is made only when the algorithm has a divergence."""

    def __init__(self, policy: Policy) -> None:
        self._model = copy.deepcopy(policy.model).requires_grad_(False)

    @torch.no_grad()
    def logprobs(self, batch: TokenBatch, temperature: float) -> Tensor:
        """Return `reference_logprobs_BT` in nats, 0 where not trained."""
        return shared_prompt_scores(
            self._model, batch.token_ids_BT, batch.trained_BT, batch.prompts, temperature
        ).logprobs_BT
