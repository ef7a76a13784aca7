import pytest
import torch
from tests.policy.models import FAMILIES, tiny_policy

from earned.policy.cache import RoomyLayer, sampling_cache

TOKENS = torch.tensor([[0, 20, 14, 20, 32, 50, 60, 70, 33, 44, 55, 66], [0, 9, 8, 7, 6, 5, 4, 3, 90, 91, 92, 93]])


def states(length: int, rows: int = 2) -> torch.Tensor:
    return torch.randn(rows, 3, length, 4, generator=torch.Generator().manual_seed(length))


def filled(capacity: int = 10) -> RoomyLayer:
    layer = RoomyLayer(capacity)
    layer.update(states(4), -states(4))
    return layer


def test_appended_keys_and_values_follow_those_before():
    layer = filled()
    keys, values = layer.update(states(2), -states(2))
    assert torch.equal(keys, torch.cat([states(4), states(2)], dim=-2))
    assert torch.equal(values, -keys)
    assert layer.get_seq_length() == 6


def test_appending_copies_nothing_before_it():
    layer = filled()
    first, _ = layer.update(states(1), states(1))
    second, _ = layer.update(states(1), states(1))
    assert first.data_ptr() == second.data_ptr()


def test_the_last_position_fits_and_one_more_is_refused():
    layer = filled(capacity=5)
    layer.update(states(1), states(1))
    with pytest.raises(AssertionError, match="too small"):
        layer.update(states(1), states(1))


def test_rows_are_repeated_side_by_side_and_selected():
    layer = filled()
    layer.batch_repeat_interleave(3)
    keys, _ = layer.update(states(1, rows=6), states(1, rows=6))
    assert torch.equal(keys[:, ..., :4, :], states(4)[[0, 0, 0, 1, 1, 1]])
    layer.batch_select_indices(torch.tensor([1, 5]))
    keys, _ = layer.update(states(2), states(2))
    assert torch.equal(keys[..., :4, :], states(4))
    assert torch.equal(keys[..., 4:5, :], states(1, rows=6)[[1, 5]])
    assert torch.equal(keys[..., 5:, :], states(2))


@pytest.mark.parametrize("family", FAMILIES)
def test_reading_token_by_token_is_reading_at_once(family):
    body = tiny_policy(family).model.base_model
    cache = sampling_cache(tiny_policy(family).model, capacity=TOKENS.shape[1])
    with torch.no_grad():
        expected = body(input_ids=TOKENS, use_cache=False).last_hidden_state
        parts = [body(input_ids=TOKENS[:, :5], cache=cache, use_cache=True).last_hidden_state]
        for t in range(5, TOKENS.shape[1]):
            parts.append(body(input_ids=TOKENS[:, t : t + 1], cache=cache, use_cache=True).last_hidden_state)
    torch.testing.assert_close(torch.cat(parts, dim=1), expected, atol=2e-5, rtol=2e-5)


def test_full_attention_gets_room_and_sliding_windows_keep_their_own_class():
    full = [type(layer) is RoomyLayer for layer in sampling_cache(tiny_policy("llama").model, 8).layers]
    mixed = [type(layer) is RoomyLayer for layer in sampling_cache(tiny_policy("gemma2").model, 8).layers]
    assert full == [True, True]
    assert mixed == [False, True]
