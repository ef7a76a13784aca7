"""The recipe of next-token training: how the built-in model was made."""

from typing import Any

from pydantic import Field, model_validator

from earned.recipe_file import Count, Decay, NonNegative, Positive, PositiveFloat, Section, Share


class PretrainModel(Section):
    """Shape of the Llama that is trained from nothing."""

    hidden_size: Positive = 128
    layers: Positive = 4
    heads: Positive = 4
    intermediate_size: Positive = 384
    context: Positive = 256


class PretrainData(Section):
    """A stream of written-out answers to training problems; held-out problems are never among them."""

    source: str = "sums"
    options: dict[str, Any] = Field(default_factory=dict)


class PretrainPhase(Section):
    """A stretch of training with one mixture of answers."""

    steps: Positive
    long_share: Share
    """Share of answers written as step-by-step derivations; the rest give the bare answer."""


class PretrainOptim(Section):
    """AdamW, linear warm-up, cosine to a tenth."""

    learning_rate: PositiveFloat = 2e-3
    warmup_steps: Count = 50
    weight_decay: NonNegative = 0.01
    betas: tuple[Decay, Decay] = (0.9, 0.95)
    max_grad_norm: PositiveFloat = 1.0
    sequences_per_step: Positive = 256
    tokens_per_micro_batch: Positive = 8192


class PretrainRecipe(Section):
    """Next-token training of a small model from nothing."""

    seed: Count = 0
    phases: tuple[PretrainPhase, ...]
    """In order: the first phases teach to derive, the last sets how often the model does."""
    model: PretrainModel = PretrainModel()
    data: PretrainData = PretrainData()
    optim: PretrainOptim = PretrainOptim()

    @model_validator(mode="after")
    def _some_phase(self) -> "PretrainRecipe":
        if not self.phases:
            raise ValueError("phases: none given; add for example [[phases]] with steps and long_share")
        return self

    @property
    def steps(self) -> int:
        """Optimiser steps of all phases."""
        return sum(phase.steps for phase in self.phases)
