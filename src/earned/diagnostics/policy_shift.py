"""How far the policy moved in an update, and how far the sampler was from the trainer: sums over micro-batches."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from earned.algorithms.corrections import effective_sample_size


@dataclass(frozen=True, kw_only=True)
class TokenShift:
    """Per-token numbers of one micro-batch, all [B, T] and without gradient; only trained positions are read."""

    trained_BT: Tensor
    policy_BT: Tensor
    old_BT: Tensor
    sampler_BT: Tensor
    entropy_BT: Tensor
    clipped_BT: Tensor
    correction_BT: Tensor
    """Importance weights of the trainer over the sampler, cut or masked where there is a correction."""
    divergence_BT: Tensor | None
    """Estimated nats from the reference, None without one."""


@dataclass
class ShiftSums:
    """Adds up micro-batches; `metrics` divides once."""

    loss: float = 0.0
    tokens: int = 0
    completions: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    ratio_deviation_max: float = 0.0
    first_ratio_deviation_max: float | None = None
    """That of the first update; None until it ends."""
    difference_max: float = 0.0
    weights: list[Tensor] = field(default_factory=list)
    """Of the sampler correction, of trained tokens, one tensor a micro-batch."""

    def add(self, loss: float, shift: TokenShift, cap: float) -> None:
        """Add one micro-batch; `cap` is the bound of the sampler correction, infinite when it is only measured."""
        trained_BT = shift.trained_BT
        log_ratio_N = (shift.policy_BT - shift.old_BT)[trained_BT].double()
        difference_N = (shift.old_BT - shift.sampler_BT)[trained_BT].abs().double()
        weight_N = shift.correction_BT[trained_BT].double()
        self.loss += loss
        self.tokens += len(log_ratio_N)
        self.completions += len(trained_BT)
        self.ratio_deviation_max = _largest(self.ratio_deviation_max, torch.expm1(log_ratio_N).abs())
        self.difference_max = _largest(self.difference_max, difference_N)
        self._add("entropy", shift.entropy_BT[trained_BT].double())
        self._add("clipped", shift.clipped_BT[trained_BT].double())
        self._add("approx_kl", torch.expm1(log_ratio_N) - log_ratio_N)
        self._add("difference", difference_N)
        self.weights.append(weight_N)
        self._add("capped", ((weight_N >= cap) | (weight_N == 0)).double())
        if shift.divergence_BT is not None:
            self._add("divergence", shift.divergence_BT[trained_BT].double())

    def end_of_update(self) -> None:
        """Take note that the weights change now."""
        if self.first_ratio_deviation_max is None:
            self.first_ratio_deviation_max = self.ratio_deviation_max

    def metrics(self) -> dict[str, float]:
        """Return the declared metrics of one update; means are over trained tokens."""
        mean = {name: total / max(1, self.tokens) for name, total in self.sums.items()}
        values = {
            "update/loss": self.loss,
            "update/entropy_nats": mean["entropy"],
            "update/clipped_share": mean["clipped"],
            "update/approx_kl_nats": mean["approx_kl"],
            "update/ratio_deviation_max": self.ratio_deviation_max,
            "update/first_ratio_deviation_max": self.first_ratio_deviation_max or 0.0,
            "sampler/logprob_difference_mean": mean["difference"],
            "sampler/logprob_difference_max": self.difference_max,
            "sampler/effective_sample_share": float(effective_sample_size(torch.cat(self.weights))),
            "sampler/capped_share": mean["capped"],
        }
        if "divergence" in mean:
            values["divergence/reference_nats"] = mean["divergence"]
            values["divergence/completion_nats"] = self.sums["divergence"] / max(1, self.completions)
        return values

    def _add(self, name: str, values_N: Tensor) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + float(values_N.sum())


def _largest(so_far: float, values_N: Tensor) -> float:
    return max(so_far, float(values_N.max())) if len(values_N) else so_far
