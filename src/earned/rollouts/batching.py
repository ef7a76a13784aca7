"""Rollouts laid out as right-padded tensors, in micro-batches of a bounded number of tokens."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from earned.policy.logprobs import PromptLayout
from earned.vocabulary import Prompt, Rollout

LENGTH_STEP = 16
"""Widths are rounded up to a multiple: few distinct shapes let the allocator and the kernels reuse their work."""


class HasLength(Protocol):
    """Anything that takes up `length` tokens of a row."""

    @property
    def length(self) -> int:
        """Tokens."""
        ...


Measured = TypeVar("Measured", bound=HasLength)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingRow:
    """One rollout to train on."""

    rollout: Rollout
    prompt: Prompt
    advantages: Tensor
    """float32 [completion length]."""

    @property
    def start(self) -> int:
        """Tokens of the prompt, which is where the completion begins."""
        return len(self.prompt.token_ids)

    @property
    def length(self) -> int:
        """Tokens of prompt and completion together."""
        return self.start + self.rollout.completion.length

    @property
    def trained_tokens(self) -> int:
        """Sampled tokens; those are what the loss divides by."""
        return sum(self.rollout.completion.sampled)


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenBatch:
    """B rows of prompt and completion; index t of every tensor speaks about token t of `token_ids_BT`."""

    rows: tuple[TrainingRow, ...]
    token_ids_BT: Tensor
    """int64, zeros after a row's end."""
    trained_BT: Tensor
    """bool, True where the policy sampled the token. Position 0 is never trained."""
    advantages_BT: Tensor
    """float32, 0 where not trained."""
    sampler_logprobs_BT: Tensor
    """float32, 0 where not trained."""
    prompts: PromptLayout
    """Which rows begin with the same prompt, so that it is read once."""

    def completion_values(self, values_BT: Tensor) -> list[list[float]]:
        """Cut each row's completion out of a `_BT` tensor."""
        return [values[row.start : row.length] for row, values in zip(self.rows, values_BT.tolist(), strict=True)]


def micro_batches(rows: Sequence[TrainingRow], max_tokens: int, device: torch.device) -> Iterator[TokenBatch]:
    """Yield the rows in batches of at most `max_tokens` padded tokens."""
    for batch in by_length(rows, max_tokens):
        yield token_batch(batch, device)


def by_length(items: Iterable[Measured], max_tokens: int) -> Iterator[list[Measured]]:
    """Yield items of like length together, at most `max_tokens` padded tokens a batch.

    A single item longer than `max_tokens` is a batch of its own.
    """
    waiting: list[Measured] = []
    for item in sorted(items, key=lambda item: item.length):
        if waiting and (len(waiting) + 1) * padded_width(item.length) > max_tokens:
            yield waiting
            waiting = []
        waiting.append(item)
    if waiting:
        yield waiting


def token_batch(rows: Sequence[TrainingRow], device: torch.device) -> TokenBatch:
    """Return the rows as one batch, padded on the right to a multiple of `LENGTH_STEP`."""
    shape = (len(rows), padded_width(max(row.length for row in rows)))
    token_ids_BT = torch.zeros(shape, dtype=torch.int64)
    trained_BT = torch.zeros(shape, dtype=torch.bool)
    advantages_BT, sampler_logprobs_BT = torch.zeros(shape), torch.zeros(shape)
    for index, row in enumerate(rows):
        completion = row.rollout.completion
        token_ids_BT[index, : row.length] = torch.tensor((*row.prompt.token_ids, *completion.token_ids))
        trained_BT[index, row.start : row.length] = torch.tensor(completion.sampled)
        advantages_BT[index, row.start : row.length] = row.advantages
        sampler_logprobs_BT[index, row.start : row.length] = torch.tensor(completion.sampler_logprobs)
    return TokenBatch(
        rows=tuple(rows),
        token_ids_BT=token_ids_BT.to(device),
        trained_BT=trained_BT.to(device),
        advantages_BT=(advantages_BT * trained_BT).to(device),
        sampler_logprobs_BT=sampler_logprobs_BT.to(device),
        prompts=_prompt_layout(rows, device),
    )


def _prompt_layout(rows: Sequence[TrainingRow], device: torch.device) -> PromptLayout:
    first_rows: dict[tuple[int, ...], int] = {}
    for index, row in enumerate(rows):
        first_rows.setdefault(row.prompt.token_ids, index)
    place = {token_ids: place for place, token_ids in enumerate(first_rows)}
    return PromptLayout(
        first_row_P=torch.tensor(list(first_rows.values()), device=device),
        prompt_of_B=torch.tensor([place[row.prompt.token_ids] for row in rows], device=device),
        lengths_B=torch.tensor([len(row.prompt.token_ids) for row in rows], device=device),
        completion_width=padded_width(max(row.rollout.completion.length for row in rows)),
    )


def padded_width(length: int) -> int:
    """Return the length rounded up to a multiple of `LENGTH_STEP`.

    >>> padded_width(1), padded_width(16), padded_width(17)
    (16, 16, 32)
    """
    return -(-length // LENGTH_STEP) * LENGTH_STEP
