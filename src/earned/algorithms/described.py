"""Algorithms and their parts as words: each function's docstring gives its sentence, its formula and its source."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from earned.algorithms import gae
from earned.algorithms.algorithm import Algorithm, Critic
from earned.algorithms.parts import CLIPS, PARTS, SURROGATES

SHAPES = " Shapes:"
SOURCE = "Source: "
VALUE_MODEL = {part.__name__: part for part in (gae.generalized_advantages, gae.whitened, gae.value_loss)}
"""What an algorithm with a critic computes beside its parts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PartDescription:
    """One part."""

    name: str
    module: str
    """The file of `algorithms/` that it is in, without `.py`."""
    sentence: str
    formula: str
    source: str
    clips: Mapping[str, float]
    """The clips it reads with their usual values; empty for what is no surrogate, and for one that reads none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowDescription:
    """One algorithm: parts by name, None where there is none and for numbers that nothing reads."""

    name: str
    advantage: str
    surrogate: str
    aggregation: str
    divergence: str | None
    divergence_weight: float | None
    divergence_in: str | None
    sampler_correction: str | None
    sampler_correction_cap: float | None
    clip_low: float | None
    clip_high: float | None
    epochs: int
    mini_batches: int
    updates: int
    """Updates a batch."""
    refill_rounds: int
    mask_truncated: bool
    missing_eos_penalty: float
    critic: Critic | None
    summary: str
    source: str


def describe_parts() -> dict[str, tuple[PartDescription, ...]]:
    """Return every part, by the field of an algorithm that holds it; those of a value model by `value_model`.

    >>> describe_parts()["aggregation"][0].formula
    'w = 1 / sum_i L_i.'
    """
    tables: dict[str, Mapping[str, Callable[..., Any]]] = PARTS | {"value_model": VALUE_MODEL}
    return {field: tuple(_described(name, part) for name, part in table.items()) for field, table in tables.items()}


def describe_row(row: Algorithm) -> RowDescription:
    """Return one algorithm.

    >>> from earned.algorithms.named import ALGORITHMS
    >>> row = describe_row(ALGORITHMS["cispo"])
    >>> row.surrogate, row.clip_low, row.clip_high
    ('cispo', None, 5.0)
    """
    divergence, correction = row.divergence, row.sampler_correction
    return RowDescription(
        name=row.name,
        advantage=row.advantage.__name__,
        surrogate=row.surrogate.__name__,
        aggregation=row.aggregation.__name__,
        divergence=divergence and divergence.__name__,
        divergence_weight=row.divergence_weight if divergence else None,
        divergence_in=row.divergence_in if divergence else None,
        sampler_correction=correction and correction.__name__,
        sampler_correction_cap=row.sampler_correction_cap if correction else None,
        clip_low=row.clips.get("clip_low"),
        clip_high=row.clips.get("clip_high"),
        epochs=row.epochs,
        mini_batches=row.mini_batches,
        updates=row.epochs * row.mini_batches,
        refill_rounds=row.refill_rounds,
        mask_truncated=row.mask_truncated,
        missing_eos_penalty=row.missing_eos_penalty,
        critic=row.critic,
        summary=row.summary,
        source=row.source,
    )


def _described(name: str, part: Callable[..., Any]) -> PartDescription:
    first, second, *others = (re.sub(r"\s+", " ", text) for text in (inspect.getdoc(part) or "").split("\n\n"))
    (source,) = (text.removeprefix(SOURCE) for text in others if text.startswith(SOURCE))
    return PartDescription(
        name=name,
        module=part.__module__.rpartition(".")[2],
        sentence=first.removeprefix("Return "),
        formula=second.partition(SHAPES)[0],
        source=source,
        clips=CLIPS[part] if name in SURROGATES else {},
    )
