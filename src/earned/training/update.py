"""The update: advantages in, changed weights and what was measured on the way out.

Micro-batches add sums; every weight already holds the one division, by counts taken over the whole mini-batch with the
rows that are left out of the forward pass. So the gradient depends neither on the layout nor on the skipping.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from earned.algorithms.aggregation import Counts, weighted_sum
from earned.algorithms.corrections import truncated_importance_weights
from earned.algorithms.named import Algorithm
from earned.diagnostics.policy_shift import ShiftSums, TokenShift
from earned.optimization.optimizer import Optimizer
from earned.policy.load import Policy
from earned.policy.logprobs import shared_prompt_scores
from earned.rollouts.batching import TokenBatch, TrainingRow, micro_batches
from earned.training.reference import Reference
from earned.vocabulary import RolloutGroup, TokenDetail

WATCHED_WEIGHTS = 4096
"""Elements of every weight tensor that are compared to see whether an update changed anything."""


@dataclass(frozen=True, kw_only=True)
class UpdateSettings:
    """What an update needs beside the algorithm."""

    temperature: float
    """Of the sampling: the distribution trained on is the one sampled."""
    max_new_tokens: int
    tokens_per_micro_batch: int
    precision: torch.dtype


@dataclass(frozen=True, kw_only=True)
class UpdateReport:
    """What an update did."""

    updates: int
    """Times the weights changed; 0 for an empty step."""
    metrics: dict[str, float]
    details: tuple[TokenDetail, ...]
    """One per rollout that went through the forward pass."""


class Updater:
    """Changes the policy's weights; holds no state of its own beside the optimiser's."""

    def __init__(
        self,
        policy: Policy,
        optimizer: Optimizer,
        algorithm: Algorithm,
        settings: UpdateSettings,
        reference: Reference | None,
    ) -> None:
        assert (reference is not None) == (algorithm.divergence is not None)
        self._policy = policy
        self._optimizer = optimizer
        self._algorithm = algorithm
        self._settings = settings
        self._reference = reference

    def update(
        self, groups: Sequence[RolloutGroup], advantages: Mapping[str, float], learning_rate: float
    ) -> UpdateReport:
        """Train on one batch of groups: `epochs` passes over it, each in `mini_batches` parts of whole groups.

        Raises:
            EngineError: the gradient was not finite several updates in a row.
        """
        minis = [_rows(part, advantages) for part in _split(groups, self._algorithm.mini_batches)]
        if not any(self._live(row) for mini in minis for row in mini):
            return UpdateReport(updates=0, metrics={"update/empty": 1.0, "update/trained_rows_share": 0.0}, details=())
        sums = ShiftSums()
        passes = [mini for _ in range(self._algorithm.epochs) for mini in minis]
        old = self._old_logprobs(minis) if len(passes) > 1 else {}
        before = self._watched_weights()
        details: dict[str, TokenDetail] = {}
        norms: list[float] = []
        for mini in passes:
            live = [row for row in mini if self._live(row)]
            if live:
                seen = self._accumulate(live, self._counts(mini), old, sums)
                details |= {detail.rollout_id: detail for detail in seen}
                norms.append(self._optimizer.step(learning_rate))
        finite = [norm for norm in norms if math.isfinite(norm)]
        metrics = sums.metrics() | {
            "update/empty": 0.0,
            "update/grad_norm": sum(finite) / len(finite) if finite else math.nan,
            "update/learning_rate": learning_rate,
            "update/skipped": float(len(norms) - len(finite)),
            "update/trained_rows_share": len(details) / sum(len(mini) for mini in minis),
            "update/weights_changed_share": (self._watched_weights() != before).float().mean().item(),
        }
        return UpdateReport(
            updates=len(finite), metrics=metrics, details=self._with_after(tuple(details.values()), minis)
        )

    def _accumulate(
        self, rows: Sequence[TrainingRow], counts: Counts, old: Mapping[str, Tensor], sums: ShiftSums
    ) -> list[TokenDetail]:
        """Add the gradient of one mini-batch, micro-batch by micro-batch."""
        details: list[TokenDetail] = []
        for batch in micro_batches(rows, self._settings.tokens_per_micro_batch, self._policy.device):
            details += self._micro_step(batch, counts, _stacked(batch, old), sums)
        return details

    def _micro_step(
        self, batch: TokenBatch, counts: Counts, old_BT: Tensor | None, sums: ShiftSums
    ) -> list[TokenDetail]:
        algorithm, trained_BT = self._algorithm, batch.trained_BT
        policy_BT, entropy_BT = self._scores(batch)
        old_BT = policy_BT.detach() if old_BT is None else old_BT
        surrogate = algorithm.surrogate(policy_BT, old_BT, batch.advantages_BT, algorithm.clip_low, algorithm.clip_high)
        cap = algorithm.sampler_correction_cap
        correction_BT = truncated_importance_weights(old_BT, batch.sampler_logprobs_BT, cap or math.inf)
        loss_BT = surrogate.loss_BT * correction_BT if cap else surrogate.loss_BT
        divergence_BT = self._divergence(batch, policy_BT)
        if divergence_BT is not None:
            loss_BT = loss_BT + algorithm.divergence_weight * divergence_BT
        loss = weighted_sum(loss_BT, algorithm.aggregation(trained_BT, counts))
        loss.backward()
        shift = TokenShift(
            trained_BT=trained_BT,
            policy_BT=policy_BT.detach(),
            old_BT=old_BT,
            sampler_BT=batch.sampler_logprobs_BT,
            entropy_BT=entropy_BT,
            clipped_BT=surrogate.clipped_BT,
            correction_BT=correction_BT,
            divergence_BT=None if divergence_BT is None else divergence_BT.detach(),
        )
        sums.add(float(loss.detach()), shift, cap)
        return _details(batch, shift)

    def _divergence(self, batch: TokenBatch, policy_BT: Tensor) -> Tensor | None:
        if self._reference is None or self._algorithm.divergence is None:
            return None
        with self._policy.computing_in(self._settings.precision):
            reference_BT = self._reference.logprobs(batch, self._settings.temperature)
        return self._algorithm.divergence(policy_BT, reference_BT)

    def _scores(self, batch: TokenBatch) -> tuple[Tensor, Tensor]:
        with self._policy.computing_in(self._settings.precision):
            return shared_prompt_scores(
                self._policy.model,
                batch.token_ids_BT,
                batch.trained_BT,
                batch.prompts,
                self._settings.temperature,
            )

    @torch.no_grad()
    def _old_logprobs(self, minis: Sequence[Sequence[TrainingRow]]) -> dict[str, Tensor]:
        """Return the log-probabilities of every live row's completion before the first update, by rollout id."""
        live = [row for mini in minis for row in mini if self._live(row)]
        old: dict[str, Tensor] = {}
        for batch in micro_batches(live, self._settings.tokens_per_micro_batch, self._policy.device):
            values_BT = self._scores(batch)[0]
            for row, values_T in zip(batch.rows, values_BT, strict=True):
                old[row.rollout.id] = values_T[: row.length].clone()
        return old

    @torch.no_grad()
    def _with_after(
        self, details: tuple[TokenDetail, ...], minis: Sequence[Sequence[TrainingRow]]
    ) -> tuple[TokenDetail, ...]:
        """Add the log-probabilities after the update to one group's details: the first that was trained on."""
        rows = {row.rollout.id: row for mini in minis for row in mini}
        problem_id = rows[details[0].rollout_id].prompt.problem.id
        shown = [row for row in rows.values() if row.prompt.problem.id == problem_id and self._live(row)]
        after: dict[str, tuple[float, ...]] = {}
        for batch in micro_batches(shown, self._settings.tokens_per_micro_batch, self._policy.device):
            for row, values in zip(batch.rows, batch.completion_values(self._scores(batch)[0]), strict=True):
                after[row.rollout.id] = tuple(values)
        return tuple(replace(detail, after_logprobs=after.get(detail.rollout_id)) for detail in details)

    def _live(self, row: TrainingRow) -> bool:
        """Whether a row can move the weights: by its advantage, or because a divergence touches every row."""
        return row.advantage != 0.0 or self._reference is not None

    def _counts(self, rows: Sequence[TrainingRow]) -> Counts:
        return Counts(
            sequences=len(rows),
            tokens=sum(row.trained_tokens for row in rows),
            max_length=self._settings.max_new_tokens,
        )

    def _watched_weights(self) -> Tensor:
        parts = []
        for parameter in self._policy.parameters().values():
            flat = parameter.detach().flatten()
            parts.append(flat[:: max(1, len(flat) // WATCHED_WEIGHTS)].clone())
        return torch.cat(parts)


def _rows(groups: Sequence[RolloutGroup], advantages: Mapping[str, float]) -> list[TrainingRow]:
    """Return the scored rollouts of the groups; what could not be judged is neither trained on nor counted."""
    return [
        TrainingRow(rollout=rollout, prompt=group.prompt, advantage=advantages[rollout.id])
        for group in groups
        for rollout in group.rollouts
        if rollout.score.value is not None
    ]


def _split(groups: Sequence[RolloutGroup], parts: int) -> list[Sequence[RolloutGroup]]:
    """Cut the groups into `parts` runs whose sizes differ by one at most."""
    bounds = [round(part * len(groups) / parts) for part in range(parts + 1)]
    return [groups[start:end] for start, end in pairwise(bounds)]


def _stacked(batch: TokenBatch, old: Mapping[str, Tensor]) -> Tensor | None:
    if not old:
        return None
    old_BT = torch.zeros(batch.token_ids_BT.shape, device=batch.token_ids_BT.device)
    for index, row in enumerate(batch.rows):
        old_BT[index, : row.length] = old[row.rollout.id]
    return old_BT


def _details(batch: TokenBatch, shift: TokenShift) -> list[TokenDetail]:
    ratio_BT = (shift.policy_BT - shift.old_BT).exp()
    columns = [
        batch.completion_values(values_BT) for values_BT in (shift.old_BT, shift.entropy_BT, ratio_BT, shift.clipped_BT)
    ]
    return [
        TokenDetail(
            rollout_id=row.rollout.id,
            old_logprobs=tuple(old),
            entropy=tuple(entropy),
            ratio=tuple(ratio),
            clipped=tuple(clipped),
        )
        for row, old, entropy, ratio, clipped in zip(batch.rows, *columns, strict=True)
    ]
