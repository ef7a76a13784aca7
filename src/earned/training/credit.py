"""What every attempt of a batch is worth, and each of its tokens: by siblings, by a reference, by a value model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from earned.algorithms.gae import generalized_advantages, last_token_rewards, whitened
from earned.algorithms.named import Algorithm
from earned.algorithms.named import Critic as CriticSettings
from earned.rollouts.batching import TrainingRow
from earned.training.advantages import group_advantages, is_trained, reward_of
from earned.training.critic import Critic
from earned.training.forward import Forward, scored_rows
from earned.training.reference import Reference
from earned.vocabulary import Rollout, RolloutGroup


@dataclass(frozen=True, kw_only=True)
class Credit:
    """The worth of a batch; everything is by rollout id, and tensors are [completion length]."""

    advantages: dict[str, float]
    """Of whole completions; the mean over the sampled tokens where these differ."""
    by_token: dict[str, Tensor]
    """float32, the advantage of every token; 0 where not sampled."""
    old_logprobs: dict[str, Tensor] = field(default_factory=dict)
    """Nats; empty where the advantages could be had without them."""
    values: dict[str, Tensor] = field(default_factory=dict)
    """What the value model forecast before every token, in units of reward; empty without one."""
    returns: dict[str, Tensor] = field(default_factory=dict)
    """What it should have forecast."""
    divergence_weight: float = 0.0
    """Reward units a nat, for a divergence that is in the loss."""
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CreditAssigner:
    """Turns scored groups into credit, as the algorithm says."""

    algorithm: Algorithm
    forward: Forward
    reference: Reference | None
    critic: Critic | None

    def assign(self, groups: Sequence[RolloutGroup], divergence_weight: float) -> Credit:
        """Return the credit of a batch; `divergence_weight` is in reward units a nat."""
        rows = scored_rows(groups)
        old, nats = self._divergence_in_reward(rows)
        penalties = {name: divergence_weight * values_T for name, values_T in nats.items()}
        if self.critic is None or self.algorithm.critic is None:
            totals = {name: float(penalty_T.double().sum()) for name, penalty_T in penalties.items()}
            advantages = group_advantages(groups, self.algorithm, totals)
            by_token = {r.id: _spread(r, advantages[r.id]) for group in groups for r in group.rollouts}
            values = returns = {}
        else:
            values = self.critic.values(rows)
            by_token, returns = _generalized(rows, values, penalties, self.algorithm, self.algorithm.critic)
            by_token |= {r.id: _spread(r, 0.0) for group in groups for r in group.rollouts if r.id not in by_token}
            advantages = {r.id: _mean(r, by_token[r.id]) for group in groups for r in group.rollouts}
        return Credit(
            advantages=advantages,
            by_token=by_token,
            old_logprobs=old,
            values=values,
            returns=returns,
            divergence_weight=divergence_weight,
            metrics=_distance(nats),
        )

    def _divergence_in_reward(self, rows: Sequence[TrainingRow]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the log-probabilities of the policy and, from them, the divergence of every token."""
        reference, divergence = self.reference, self.algorithm.divergence
        if reference is None or divergence is None or self.algorithm.divergence_in == "loss":
            return {}, {}
        old = self.forward.policy_logprobs(rows)
        there = self.forward.by_rollout(rows, lambda batch: self.forward.reference_logprobs(reference, batch))
        return old, {name: divergence(old[name], there[name]) for name in old}


def _generalized(
    rows: Sequence[TrainingRow],
    values: Mapping[str, Tensor],
    penalties: Mapping[str, Tensor],
    algorithm: Algorithm,
    settings: CriticSettings,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the advantage and the return of every token of the rows; what is not trained on has advantage 0."""
    if not rows:
        return {}, {}
    width = max(row.rollout.completion.length for row in rows)
    sampled_BT = torch.stack([_padded(torch.tensor(row.rollout.completion.sampled), width) for row in rows])
    values_BT = torch.stack([_padded(values[row.rollout.id].double().cpu(), width) for row in rows])
    rewards_B = torch.tensor([reward_of(row.rollout, algorithm) or 0.0 for row in rows], dtype=torch.float64)
    rewards_BT = last_token_rewards(rewards_B, sampled_BT)
    if penalties:
        rewards_BT = rewards_BT - torch.stack([_padded(penalties[r.rollout.id].double().cpu(), width) for r in rows])
    advantages_BT, returns_BT = generalized_advantages(
        rewards_BT, values_BT, sampled_BT, settings.gamma, settings.gae_lambda
    )
    trained_BT = sampled_BT & torch.tensor([is_trained(row.rollout, algorithm) for row in rows])[:, None]
    advantages_BT = torch.where(trained_BT, advantages_BT, 0.0)
    if settings.whiten:
        advantages_BT = whitened(advantages_BT, trained_BT)
    cut = [(row.rollout.id, row.rollout.completion.length) for row in rows]
    return (
        {name: advantages_BT[index, :length].float() for index, (name, length) in enumerate(cut)},
        {name: returns_BT[index, :length].float() for index, (name, length) in enumerate(cut)},
    )


def _distance(nats: Mapping[str, Tensor]) -> dict[str, float]:
    if not nats:
        return {}
    total = sum(float(values_T.double().sum()) for values_T in nats.values())
    return {
        "divergence/reference_nats": total / max(1, sum(len(values_T) for values_T in nats.values())),
        "divergence/completion_nats": total / len(nats),
    }


def _padded(values_T: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(values_T, (0, width - len(values_T)))


def _spread(rollout: Rollout, advantage: float) -> Tensor:
    """Return the same advantage for every sampled token."""
    return torch.tensor(rollout.completion.sampled) * torch.tensor(advantage, dtype=torch.float32)


def _mean(rollout: Rollout, values_T: Tensor) -> float:
    sampled_T = torch.tensor(rollout.completion.sampled)
    return float(values_T[sampled_T].double().mean()) if bool(sampled_T.any()) else 0.0
