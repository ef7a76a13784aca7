import pytest
import torch

from earned.policy.load import fingerprint
from earned.policy.tiny import BOS_ID, CHARACTERS, EOS_ID, PAD_ID, character_tokenizer, untrained_policy
from earned.pretrain_recipe import PretrainModel

SHAPE = PretrainModel(hidden_size=32, layers=2, heads=2, intermediate_size=64)


@pytest.mark.parametrize(
    "text", ["lambda x: 3*x+2", "{1:5,2:8}[x]", "check ok", "0123456789", "12+30=42;\n\n  7", "".join(CHARACTERS)]
)
def test_texts_survive_the_round_trip(text):
    tokenizer = character_tokenizer()
    token_ids = tokenizer(text)["input_ids"]
    assert token_ids[0] == BOS_ID and len(token_ids) == len(text) + 1
    assert tokenizer.decode(token_ids[1:]) == text


def test_ids_are_stable():
    tokenizer = character_tokenizer()
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (0, 1, 2)
    assert (BOS_ID, EOS_ID, PAD_ID) == (0, 1, 2)
    assert tokenizer(" 09=~\n", add_special_tokens=False)["input_ids"] == [3, 19, 28, 32, 97, 98]
    assert len(tokenizer) == 99


def test_other_characters_are_dropped_not_guessed():
    tokenizer = character_tokenizer()
    assert tokenizer("1é2\t3")["input_ids"] == tokenizer("123")["input_ids"]


def test_weights_depend_on_the_seed_alone():
    torch.manual_seed(5)
    first = fingerprint(untrained_policy(SHAPE, seed=1))
    drawn = torch.rand(1)
    torch.manual_seed(6)
    assert fingerprint(untrained_policy(SHAPE, seed=1)) == first
    assert fingerprint(untrained_policy(SHAPE, seed=2)) != first
    torch.manual_seed(5)
    assert torch.rand(1) == drawn, "making a model must not move the global random numbers"


def test_the_model_has_the_shape_asked_for():
    policy = untrained_policy(PretrainModel(hidden_size=24, layers=3, heads=2, intermediate_size=40, context=64), 0)
    config = policy.model.config
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (24, 3, 2)
    assert (config.intermediate_size, policy.context, policy.eos_ids) == (40, 64, {EOS_ID})


def test_the_default_shape_is_small():
    policy = untrained_policy(PretrainModel(), seed=0)
    assert sum(value.numel() for value in policy.parameters().values()) <= 2_000_000
