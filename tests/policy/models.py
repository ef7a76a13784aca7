"""Tiny random policies of four families that read the characters of the built-in tokeniser.

They differ in what usually breaks: Llama (rotary positions), GPT-2 (learned positions, dropout), Gemma 2 (capped
logits, a sliding window shorter than the texts), Qwen 2 (two query heads share a key head; untied head).
"""

from collections.abc import Callable, Sequence

import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from earned.policy.load import Policy, make_policy
from earned.policy.tiny import BOS_ID, EOS_ID, PAD_ID, character_tokenizer, untrained_policy
from earned.pretrain_recipe import PretrainModel

SHAPE = PretrainModel(hidden_size=32, layers=2, heads=2, intermediate_size=64)
VOCABULARY = len(character_tokenizer())
SHARPER = 15
"""Freshly made weights give almost uniform tokens, which would hide a wrong position or a lost key."""

COMMON = {"vocab_size": VOCABULARY, "bos_token_id": BOS_ID, "eos_token_id": EOS_ID, "pad_token_id": PAD_ID}
LLAMA_LIKE = {
    **COMMON,
    "hidden_size": SHAPE.hidden_size,
    "num_hidden_layers": SHAPE.layers,
    "intermediate_size": SHAPE.intermediate_size,
    "max_position_embeddings": SHAPE.context,
}


def _llama() -> PreTrainedModel:
    return untrained_policy(SHAPE, torch.initial_seed()).model


def _gpt2() -> PreTrainedModel:
    return GPT2LMHeadModel(GPT2Config(**COMMON, n_embd=32, n_layer=2, n_head=2, n_positions=SHAPE.context))


def _gemma2() -> PreTrainedModel:
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    return Gemma2ForCausalLM(Gemma2Config(**LLAMA_LIKE, **heads, sliding_window=8, final_logit_softcapping=3.0))


def _qwen2() -> PreTrainedModel:
    return Qwen2ForCausalLM(Qwen2Config(**LLAMA_LIKE, num_attention_heads=4, num_key_value_heads=2))


FAMILIES: dict[str, Callable[[], PreTrainedModel]] = {
    "llama": _llama,
    "gpt2": _gpt2,
    "gemma2": _gemma2,
    "qwen2": _qwen2,
}


def tiny_policy(family: str, seed: int = 0, eos_ids: Sequence[int] = (EOS_ID,)) -> Policy:
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        model = FAMILIES[family]()
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(SHARPER)
    model.generation_config = GenerationConfig(bos_token_id=BOS_ID, eos_token_id=list(eos_ids), pad_token_id=PAD_ID)
    return make_policy(family, model, character_tokenizer())
