"""The learned value model of PPO: what it forecasts, and how it is trained on what came."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import torch
from torch import Tensor

from earned.algorithms.gae import explained_variance, value_loss
from earned.algorithms.named import Critic as CriticSettings
from earned.diagnostics.groups import is_right
from earned.optimization.optimizer import Optimizer
from earned.policy.value_model import ValueModel
from earned.rollouts.batching import TokenBatch, TrainingRow
from earned.training.forward import Forward, stacked


class Critic:
    """A value model with its own optimiser and its own number of updates a batch."""

    def __init__(self, model: ValueModel, optimizer: Optimizer, settings: CriticSettings, forward: Forward) -> None:
        self.model = model
        self.optimizer = optimizer
        self.settings = settings
        self._forward = forward

    def values(self, rows: Sequence[TrainingRow]) -> dict[str, Tensor]:
        """Return the forecast before every token of the rows' completions, by rollout id, in units of reward."""
        return self._forward.by_rollout(rows, self._values)

    def update(
        self,
        rows: Sequence[TrainingRow],
        old_values: Mapping[str, Tensor],
        returns: Mapping[str, Tensor],
        learning_rate: float,
    ) -> dict[str, float]:
        """Train the forecasts towards the returns, in `updates` parts of whole completions; return what was measured.

        Raises:
            EngineError: the gradient was not finite several updates in a row.
        """
        parts = min(self.settings.updates, len(rows))
        bounds = [round(part * len(rows) / max(1, parts)) for part in range(parts + 1)]
        losses: list[float] = []
        for start, end in pairwise(bounds):
            losses.append(self._accumulate(rows[start:end], old_values, returns))
            self.optimizer.step(learning_rate)
        return _measured(rows, old_values, returns) | {"critic/loss": sum(losses) / max(1, len(losses))}

    def _accumulate(
        self, rows: Sequence[TrainingRow], old_values: Mapping[str, Tensor], returns: Mapping[str, Tensor]
    ) -> float:
        tokens, total = sum(row.trained_tokens for row in rows), 0.0
        for batch in self._forward.micro_batches(rows):
            losses_BT = value_loss(
                self._values(batch), stacked(batch, old_values), stacked(batch, returns), self.settings.value_clip
            )
            loss = torch.where(batch.trained_BT, losses_BT, 0.0).sum() / tokens
            loss.backward()
            total += float(loss.detach())
        return total

    def _values(self, batch: TokenBatch) -> Tensor:
        with self._forward.policy.computing_in(self._forward.precision):
            return self.model.values(batch.token_ids_BT, batch.trained_BT, batch.prompts)


def _measured(
    rows: Sequence[TrainingRow], values: Mapping[str, Tensor], returns: Mapping[str, Tensor]
) -> dict[str, float]:
    """Return how good the forecasts were before they were trained on this batch, over all sampled tokens."""
    if not rows:
        return {}
    sampled = {row.rollout.id: torch.tensor(row.rollout.completion.sampled) for row in rows}
    values_N = torch.cat([values[name].cpu().double()[sampled_T] for name, sampled_T in sampled.items()])
    returns_N = torch.cat([returns[name].cpu().double()[sampled_T] for name, sampled_T in sampled.items()])
    measured = {"critic/value_mean": float(values_N.mean()), "critic/return_mean": float(returns_N.mean())}
    share = float(explained_variance(values_N, returns_N))
    at_the_end = {
        name: [float(values[row.rollout.id][-1]) for row in rows if is_right(row.rollout.score) == right]
        for name, right in (("critic/value_right_mean", True), ("critic/value_wrong_mean", False))
    }
    means = {name: fmean(ends) for name, ends in at_the_end.items() if ends}
    return measured | means | ({} if math.isnan(share) else {"critic/explained_variance": share})
