"""Makes an untrained Llama with a character tokeniser, saved and loaded by the ordinary Hugging Face classes."""

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from earned.policy.load import Policy, make_policy
from earned.pretrain_recipe import PretrainModel

BOS, EOS, PAD = "<bos>", "<eos>", "<pad>"
BOS_ID, EOS_ID, PAD_ID = range(3)
CHARACTERS = [chr(code) for code in range(32, 127)] + ["\n"]
"""Printable ASCII and the newline: digits and `+=;`, and also small programs and remarks."""


def character_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokeniser with one id a character and one BOS put before every text; other characters are dropped.

    >>> character_tokenizer()("1+1=")["input_ids"]
    [0, 20, 14, 20, 32]
    """
    vocabulary = {token: index for index, token in enumerate([BOS, EOS, PAD, *CHARACTERS])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, vocabulary[BOS])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        clean_up_tokenization_spaces=False,
    )


def untrained_policy(shape: PretrainModel, seed: int) -> Policy:
    """Return a Llama of the given shape with random float32 weights that depend on `seed` alone."""
    tokenizer = character_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        intermediate_size=shape.intermediate_size,
        max_position_embeddings=shape.context,
        tie_word_embeddings=True,
        bos_token_id=BOS_ID,
        eos_token_id=EOS_ID,
        pad_token_id=PAD_ID,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(bos_token_id=BOS_ID, eos_token_id=EOS_ID, pad_token_id=PAD_ID)
    return make_policy("untrained", model, tokenizer)
