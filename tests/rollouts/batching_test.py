from dataclasses import dataclass
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.models import FAMILIES, tiny_policy
from tests.rollouts.builders import CPU, completion, problem, prompts_of, segment, training_row

from earned.policy.logprobs import shared_prompt_scores, token_scores
from earned.policy.tiny import BOS_ID, EOS_ID, PAD_ID, character_tokenizer
from earned.rollouts.batching import LENGTH_STEP, TrainingRow, by_length, micro_batches, padded_width, token_batch
from earned.vocabulary import Prompt

LENGTHS = st.lists(st.integers(1, 100), max_size=40)


@dataclass(frozen=True)
class Item:
    name: int
    length: int


def row(prompt_length: int, completion_length: int, advantage: float = 1.0, id: str = "r") -> TrainingRow:
    prompt = Prompt(problem=problem("p"), token_ids=tuple(range(100, 100 + prompt_length)))
    return training_row(prompt, completion(segment(range(200, 200 + completion_length))), advantage, id)


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 400))
def test_every_item_is_in_exactly_one_batch_within_the_budget(lengths, max_tokens):
    items = [Item(name, length) for name, length in enumerate(lengths)]
    batches = list(by_length(items, max_tokens))
    assert sorted(item.name for batch in batches for item in batch) == list(range(len(items)))
    for batch in batches:
        width = padded_width(max(item.length for item in batch))
        assert len(batch) == 1 or len(batch) * width <= max_tokens


@settings(deadline=None)
@given(LENGTHS.filter(any), st.integers(1, 400))
def test_batches_are_as_full_as_the_budget_allows(lengths, max_tokens):
    batches = list(by_length([Item(name, length) for name, length in enumerate(lengths)], max_tokens))
    for batch, following in pairwise(batches):
        assert (len(batch) + 1) * padded_width(following[0].length) > max_tokens
        assert max(item.length for item in batch) <= min(item.length for item in following)


@pytest.mark.parametrize(("length", "width"), [(1, 16), (15, 16), (16, 16), (17, 32), (160, 160), (161, 176)])
def test_widths_are_multiples(length, width):
    assert padded_width(length) == width
    assert token_batch([row(1, length - 1)], CPU).token_ids_BT.shape == (1, width)


def test_index_t_speaks_about_token_t():
    batch = token_batch([row(3, 4, advantage=2.0), row(1, 18, advantage=-0.5)], CPU)
    assert batch.token_ids_BT.shape == (2, 32)
    assert batch.token_ids_BT[0].tolist() == [100, 101, 102, 200, 201, 202, 203] + [0] * 25
    assert batch.trained_BT[0].tolist() == [False] * 3 + [True] * 4 + [False] * 25
    assert batch.sampler_logprobs_BT[0].tolist() == [0.0] * 3 + [-0.5, -1.0, -1.5, -2.0] + [0.0] * 25
    assert batch.advantages_BT[0].tolist() == [0.0] * 3 + [2.0] * 4 + [0.0] * 25
    assert batch.token_ids_BT[1].tolist() == [100, *range(200, 218)] + [0] * 13
    assert batch.trained_BT[1].tolist() == [False] + [True] * 18 + [False] * 13
    assert batch.advantages_BT[1].tolist() == [0.0] + [-0.5] * 18 + [0.0] * 13
    assert not batch.trained_BT[:, 0].any()


def test_types():
    batch = token_batch([row(1, 1)], CPU)
    assert batch.token_ids_BT.dtype is torch.int64 and batch.trained_BT.dtype is torch.bool
    assert batch.advantages_BT.dtype is torch.float32 and batch.sampler_logprobs_BT.dtype is torch.float32


def test_only_sampled_tokens_are_trained():
    prompt = Prompt(problem=problem("p"), token_ids=(0, 9))
    middle = completion(segment([5, 6]), segment([7, 8, 9], sampled=False), segment([10, EOS_ID]))
    asked = training_row(prompt, middle, advantage=3.0)
    batch = token_batch([asked], CPU)
    trained = [False, False, True, True, False, False, False, True, True] + [False] * 7
    assert batch.trained_BT[0].tolist() == trained
    assert batch.token_ids_BT[0, :9].tolist() == [0, 9, 5, 6, 7, 8, 9, 10, EOS_ID]
    assert batch.advantages_BT[0].tolist() == [3.0 * each for each in trained]
    assert batch.sampler_logprobs_BT[0, :9].tolist() == [0, 0, -0.5, -1.0, 0, 0, 0, -0.5, -1.0]
    assert (asked.length, asked.trained_tokens) == (9, 4)


def test_pad_ids_in_a_completion_are_trained_and_padding_is_not():
    prompt = Prompt(problem=problem("p"), token_ids=(0, 0))
    batch = token_batch([training_row(prompt, completion(segment([0, 0, PAD_ID, EOS_ID])))], CPU)
    assert batch.trained_BT[0].tolist() == [False] * 2 + [True] * 4 + [False] * 10


ADVERSARIAL = {
    "special tokens spelled out": character_tokenizer()("<", add_special_tokens=False)["input_ids"]
    + [character_tokenizer().convert_tokens_to_ids(letter) for letter in "eos>"],
    "special tokens sampled in the middle": [20, BOS_ID, PAD_ID, 21, BOS_ID, EOS_ID],
    "nothing but the end": [EOS_ID],
}


@pytest.mark.parametrize("token_ids", ADVERSARIAL.values(), ids=ADVERSARIAL)
def test_what_was_sampled_is_trained_and_never_encoded_again(token_ids):
    policy = tiny_policy("llama")
    (prompt,) = prompts_of(policy, ["1+1="])
    text = policy.decode(tuple(token_ids))
    assert policy.tokenizer(text, add_special_tokens=False)["input_ids"] != token_ids
    batch = token_batch([training_row(prompt, completion(segment(token_ids), text=text))], CPU)
    assert batch.token_ids_BT[0][batch.trained_BT[0]].tolist() == token_ids


def test_the_values_of_a_completion_are_cut_out_row_by_row():
    batch = token_batch([row(3, 2), row(1, 5)], CPU)
    positions_BT = torch.arange(LENGTH_STEP).repeat(2, 1)
    assert batch.completion_values(positions_BT) == [[3, 4], [1, 2, 3, 4, 5]]
    ids = batch.completion_values(batch.token_ids_BT)
    assert ids == [list(each.rollout.completion.token_ids) for each in batch.rows]


def test_the_layout_says_which_rows_share_a_prompt():
    one, other = (Prompt(problem=problem("p"), token_ids=token_ids) for token_ids in ((0, 9), (0, 8, 7)))
    answers = [completion(segment(range(length))) for length in (3, 4, 17, 1)]
    prompts = [one, other, one, other]
    rows = [training_row(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]
    layout = token_batch(rows, CPU).prompts
    assert layout.first_row_P.tolist() == [0, 1]
    assert layout.prompt_of_B.tolist() == [0, 1, 0, 1]
    assert layout.lengths_B.tolist() == [2, 3, 2, 3]
    assert layout.completion_width == 32


@pytest.mark.parametrize("family", FAMILIES)
def test_a_long_prompt_and_a_long_completion_share_a_batch(family):
    # Together they are longer than the context, which matters where positions are learned.
    policy = tiny_policy(family)
    long, short = prompts_of(policy, ["1" * 235, "2"])
    rows = [training_row(long, completion(segment([5] * 20))), training_row(short, completion(segment([6] * 200)))]
    batch = token_batch(rows, CPU)
    assert batch.token_ids_BT.shape[1] == policy.context
    with torch.no_grad():
        whole = token_scores(policy.model, batch.token_ids_BT, batch.trained_BT, 1.0)
        shared = shared_prompt_scores(policy.model, batch.token_ids_BT, batch.trained_BT, batch.prompts, 1.0)
    torch.testing.assert_close(shared.logprobs_BT, whole.logprobs_BT, atol=1e-4, rtol=0)


def test_micro_batches_hold_every_row_once():
    rows = [row(2, 3 + 7 * index, advantage=float(index), id=str(index)) for index in range(9)]
    batches = list(micro_batches(rows, 96, CPU))
    assert len(batches) > 3
    assert sorted(each.rollout.id for batch in batches for each in batch.rows) == [str(index) for index in range(9)]
    assert all(batch.token_ids_BT.numel() <= 96 for batch in batches)
    for batch in batches:
        assert batch.advantages_BT.amax(1).tolist() == [each.advantages.max() for each in batch.rows]
        assert batch.trained_BT.sum(1).tolist() == [each.trained_tokens for each in batch.rows]


def test_a_row_over_the_budget_is_a_batch_of_its_own():
    batches = list(micro_batches([row(2, 3), row(2, 300), row(2, 4)], 64, CPU))
    assert [batch.token_ids_BT.shape for batch in batches] == [(2, 16), (1, 304)]
    assert list(micro_batches([], 64, CPU)) == []
