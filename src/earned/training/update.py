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
from earned.algorithms.corrections import token_truncate
from earned.algorithms.named import Algorithm
from earned.diagnostics.policy_shift import ShiftSums, TokenShift
from earned.optimization.optimizer import Optimizer
from earned.optimization.schedule import warmup_constant
from earned.rollouts.batching import TokenBatch, TrainingRow
from earned.training.advantages import is_trained
from earned.training.credit import Credit
from earned.training.forward import Forward, stacked
from earned.training.reference import Reference
from earned.vocabulary import RolloutGroup, TokenDetail

WATCHED_WEIGHTS = 4096
"""Elements of every weight tensor that are compared to see whether an update changed anything."""


@dataclass(frozen=True, kw_only=True)
class UpdateSettings:
    """What an update needs beside the algorithm."""

    learning_rate: float
    """After the warm-up."""
    warmup_steps: int
    max_new_tokens: int


@dataclass(frozen=True, kw_only=True)
class UpdateReport:
    """What an update did."""

    updates: int
    """Times the policy's weights changed."""
    empty: bool
    """True when nothing in the batch could have changed them."""
    metrics: dict[str, float]
    details: tuple[TokenDetail, ...]
    """One per rollout that went through the forward pass."""


class Updater:
    """Changes the policy's weights; holds no state of its own beside the optimiser's."""

    def __init__(
        self,
        forward: Forward,
        optimizer: Optimizer,
        algorithm: Algorithm,
        reference: Reference | None,
        settings: UpdateSettings,
    ) -> None:
        self._forward = forward
        self._optimizer = optimizer
        self._algorithm = algorithm
        self._reference = reference if algorithm.divergence_in == "loss" else None
        self._settings = settings

    def update(self, groups: Sequence[RolloutGroup], credit: Credit, step: int) -> UpdateReport:
        """Train on the groups of one step: `epochs` passes over them, each in `mini_batches` parts of whole groups.

        Raises:
            EngineError: the gradient was not finite several updates in a row.
        """
        minis = [self._rows(part, credit) for part in _split(groups, self._algorithm.mini_batches)]
        if not any(self._live(row) for mini in minis for row in mini):
            return nothing_learned(credit, empty=True)
        passes = [mini for _ in range(self._algorithm.epochs) for mini in minis]
        old = credit.old_logprobs or (self._old_logprobs(minis) if len(passes) > 1 else {})
        before = self._watched_weights()
        learning_rate = warmup_constant(step, self._settings.learning_rate, self._settings.warmup_steps)
        sums = ShiftSums()
        details: dict[str, TokenDetail] = {}
        norms: list[float] = []
        for mini in passes:
            live = [row for row in mini if self._live(row)]
            if live:
                seen = self._accumulate(live, self._counts(mini), old, credit.divergence_weight, sums)
                details |= {detail.rollout_id: detail for detail in seen}
                norms.append(self._optimizer.step(learning_rate))
                sums.end_of_update()
        finite = [norm for norm in norms if math.isfinite(norm)]
        metrics = (
            credit.metrics
            | sums.metrics()
            | {
                "update/empty": 0.0,
                "update/grad_norm": sum(finite) / len(finite) if finite else math.nan,
                "update/learning_rate": learning_rate,
                "update/skipped": float(len(norms) - len(finite)),
                "update/trained_rows_share": len(details) / sum(len(mini) for mini in minis),
                "update/weights_changed_share": (self._watched_weights() != before).float().mean().item(),
            }
        )
        shown = self._with_after(tuple(details.values()), minis)
        return UpdateReport(updates=len(finite), empty=False, metrics=metrics, details=shown)

    def _accumulate(
        self,
        rows: Sequence[TrainingRow],
        counts: Counts,
        old: Mapping[str, Tensor],
        divergence_weight: float,
        sums: ShiftSums,
    ) -> list[TokenDetail]:
        """Add the gradient of one mini-batch, micro-batch by micro-batch."""
        details: list[TokenDetail] = []
        for batch in self._forward.micro_batches(rows):
            old_BT = stacked(batch, old) if old else None
            details += self._micro_step(batch, counts, old_BT, divergence_weight, sums)
        return details

    def _micro_step(
        self, batch: TokenBatch, counts: Counts, old_BT: Tensor | None, divergence_weight: float, sums: ShiftSums
    ) -> list[TokenDetail]:
        algorithm, trained_BT = self._algorithm, batch.trained_BT
        policy_BT, entropy_BT = self._forward.scores(batch)
        old_BT = policy_BT.detach() if old_BT is None else old_BT
        clips = algorithm.clip_low, algorithm.clip_high
        surrogate = algorithm.surrogate(policy_BT, old_BT, batch.advantages_BT, trained_BT, *clips)
        correct = algorithm.sampler_correction
        cap = algorithm.sampler_correction_cap if correct else math.inf
        correction_BT = (correct or token_truncate)(old_BT, batch.sampler_logprobs_BT, trained_BT, cap)
        loss_BT = surrogate.loss_BT * correction_BT if correct else surrogate.loss_BT
        divergence_BT = self._divergence(batch, policy_BT)
        if divergence_BT is not None:
            loss_BT = loss_BT + divergence_weight * divergence_BT
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
        return self._algorithm.divergence(policy_BT, self._forward.reference_logprobs(self._reference, batch))

    def _old_logprobs(self, minis: Sequence[Sequence[TrainingRow]]) -> dict[str, Tensor]:
        """Return the log-probabilities of every live row's completion before the first update."""
        return self._forward.policy_logprobs([row for mini in minis for row in mini if self._live(row)])

    def _with_after(
        self, details: tuple[TokenDetail, ...], minis: Sequence[Sequence[TrainingRow]]
    ) -> tuple[TokenDetail, ...]:
        """Add the log-probabilities after the update to one group's details: the first that was trained on."""
        rows = {row.rollout.id: row for mini in minis for row in mini}
        problem_id = rows[details[0].rollout_id].prompt.problem.id
        shown = [row for row in rows.values() if row.prompt.problem.id == problem_id and self._live(row)]
        after = {name: tuple(values_T.tolist()) for name, values_T in self._forward.policy_logprobs(shown).items()}
        return tuple(replace(detail, after_logprobs=after.get(detail.rollout_id)) for detail in details)

    def _rows(self, groups: Sequence[RolloutGroup], credit: Credit) -> list[TrainingRow]:
        """Return what may be trained on; the rest is not counted either."""
        return [
            TrainingRow(rollout=rollout, prompt=group.prompt, advantages=credit.by_token[rollout.id])
            for group in groups
            for rollout in group.rollouts
            if is_trained(rollout, self._algorithm)
        ]

    def _live(self, row: TrainingRow) -> bool:
        """Whether a row can move the weights: by its advantage, or because a divergence touches every row."""
        return bool(row.advantages.any()) or self._reference is not None

    def _counts(self, rows: Sequence[TrainingRow]) -> Counts:
        return Counts(
            sequences=len(rows),
            tokens=sum(row.trained_tokens for row in rows),
            max_length=self._settings.max_new_tokens,
        )

    def _watched_weights(self) -> Tensor:
        parts = []
        for parameter in self._forward.policy.parameters().values():
            flat = parameter.detach().flatten()
            parts.append(flat[:: max(1, len(flat) // WATCHED_WEIGHTS)].clone())
        return torch.cat(parts)


def nothing_learned(credit: Credit, *, empty: bool) -> UpdateReport:
    """Return the report of a step that left the policy as it was."""
    metrics = credit.metrics | {"update/empty": float(empty), "update/trained_rows_share": 0.0}
    return UpdateReport(updates=0, empty=empty, metrics=metrics, details=())


def _split(groups: Sequence[RolloutGroup], parts: int) -> list[Sequence[RolloutGroup]]:
    """Cut the groups into `parts` runs whose sizes differ by one at most."""
    bounds = [round(part * len(groups) / parts) for part in range(parts + 1)]
    return [groups[start:end] for start, end in pairwise(bounds)]


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
