"""AdamW on float32 weights, with a clip of the gradient norm and a guard against non-finite gradients."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from earned.errors import EngineError
from earned.pretrain_recipe import PretrainOptim
from earned.recipe import Optim

FAILED_STEPS_ALLOWED = 3
"""So many updates in a row may be skipped for a non-finite gradient before the run stops."""


class Optimizer:
    """Owns the optimiser states; the one place where weights change."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], settings: Optim | PretrainOptim) -> None:
        if not parameters:
            raise EngineError("the model has no trainable parameter, so nothing could be learned")
        self._parameters = dict(parameters)
        self._max_grad_norm = settings.max_grad_norm
        self._failed = 0
        self._adamw = torch.optim.AdamW(
            self._parameters.values(),
            lr=settings.learning_rate,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
        )

    def step(self, learning_rate: float) -> float:
        """Apply the accumulated gradient and clear it; return its norm before clipping, non-finite if it was skipped.

        Raises:
            EngineError: after `FAILED_STEPS_ALLOWED` non-finite gradients in a row, naming the first bad tensor.
        """
        parameters = list(self._parameters.values())
        total_norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        norm = float(total_norm)
        if norm < float("inf"):
            self._failed = 0
            nn.utils.clip_grads_with_norm_(parameters, self._max_grad_norm, total_norm)
            for group in self._adamw.param_groups:
                group["lr"] = learning_rate
            self._adamw.step()
        else:
            self._failed += 1
            if self._failed >= FAILED_STEPS_ALLOWED:
                raise EngineError(
                    f"{self._failed} updates in a row had a gradient that is not finite (first in "
                    f"{self._first_bad()}); the weights are those of the last good update. "
                    "Lower optim.learning_rate, or use precision float32"
                )
        self._adamw.zero_grad(set_to_none=True)
        return norm

    def state(self) -> dict[str, Tensor]:
        """Return every state tensor as `PARAMETER/STATE`, to be saved beside the weights."""
        return {
            f"{name}/{key}": value
            for name, parameter in self._parameters.items()
            for key, value in self._adamw.state.get(parameter, {}).items()
        }

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned."""
        for name, parameter in self._parameters.items():
            own = {key.rpartition("/")[2]: value for key, value in tensors.items() if key.rpartition("/")[0] == name}
            if own:
                self._adamw.state[parameter] = own

    def _first_bad(self) -> str:
        for name, parameter in self._parameters.items():
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                return name
        return "the norm only"
