"""A key/value cache with room to grow, so that a sampled token costs no copy of everything before it."""

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer


class RoomyLayer(DynamicLayer):
    """Keys and values [rows, heads, length, head size] inside larger buffers of `capacity` positions."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.length = 0

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Append along the length, in place while the buffers have room."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = self._roomy(key_states), self._roomy(value_states)
        assert self.keys is not None and self.values is not None
        end = self.length + key_states.shape[-2]
        assert end <= self.capacity, "the cache was made too small"
        self.keys[..., self.length : end, :] = key_states
        self.values[..., self.length : end, :] = value_states
        self.length = end
        return self.keys[..., :end, :], self.values[..., :end, :]

    def get_seq_length(self) -> int:
        """Return the number of positions filled."""
        return self.length

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row `repeats` times, the copies side by side."""
        assert self.keys is not None and self.values is not None
        self.keys = self.keys.repeat_interleave(repeats, dim=0)
        self.values = self.values.repeat_interleave(repeats, dim=0)

    def _roomy(self, states: Tensor) -> Tensor:
        rows, heads, _, size = states.shape
        return torch.empty((rows, heads, self.capacity, size), dtype=states.dtype, device=states.device)


def sampling_cache(model: PreTrainedModel, capacity: int) -> Cache:
    """Return an empty cache for `capacity` positions.

    Layers of another kind than full attention (sliding windows, linear attention) keep the library's own class.
    """
    cache = DynamicCache(config=model.config)
    cache.layers = [RoomyLayer(capacity) if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def hand_out(cache: Cache, prompt_of_B: Tensor) -> None:
    """Give every row the keys and values of its prompt, in place of one row a prompt; gradients flow back.

    By `index_select`, whose backward pass adds the rows of a prompt in order. That of indexing is among the operations
    that torch lists as non-deterministic on the CPU, and one bit is enough for two runs of one seed to part.
    """
    for layer in cache.layers:
        assert isinstance(layer, DynamicLayer) and layer.keys is not None and layer.values is not None
        layer.keys = layer.keys.index_select(0, prompt_of_B)
        layer.values = layer.values.index_select(0, prompt_of_B)
