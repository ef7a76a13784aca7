"""Reads a Llama out of a GGUF file into an ordinary model with float32 weights."""

from pathlib import Path

import torch
from gguf import MODEL_ARCH, GGUFReader, dequantize, get_tensor_name_map
from tokenizers import pre_tokenizers
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

from earned.errors import PolicyError
from earned.policy.load import Policy, make_policy

DIGIT_BY_DIGIT = "smollm"
"""The kind of pre-tokeniser, as GGUF names it, that takes every digit for itself."""


def load_gguf(path: Path) -> Policy:
    """Return the model and tokeniser of a GGUF file of the Llama architecture.

    Transformers reads the settings and the vocabulary. The weights are read here: its own way of loading them keeps a
    mark of quantisation that refuses to be saved, and needs one more package; tests hold the two equal to the bit.

    Raises:
        PolicyError: the file is not GGUF, of another architecture, or incomplete.
    """
    try:
        reader = GGUFReader(path)
    except ValueError as error:
        raise PolicyError(f"{path.name}: is no GGUF file ({error})") from None
    architecture = reader.fields["general.architecture"].contents()
    if architecture != "llama":
        raise PolicyError(f"{path.name}: its architecture is {architecture!r}, only 'llama' can be read")
    config = AutoConfig.from_pretrained(path.parent, gguf_file=path.name)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    _read_weights(reader, model)
    return make_policy(path.stem, model, _tokenizer(path, reader))


@torch.no_grad()
def _read_weights(reader: GGUFReader, model: PreTrainedModel) -> None:
    stored = {tensor.name: tensor for tensor in reader.tensors}
    names = get_tensor_name_map(MODEL_ARCH.LLAMA, model.config.num_hidden_layers)
    for name, parameter in model.named_parameters():
        found = stored.get(names.get_name(name, try_suffixes=(".weight", ".bias")) or name)
        if found is None:
            raise PolicyError(f"the GGUF file holds no values for {name}")
        values = torch.tensor(dequantize(found.data, found.tensor_type))
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            values = _halves_apart(values, model.config.head_dim)
        parameter.copy_(values)


def _halves_apart(values: Tensor, head_dim: int) -> Tensor:
    """Undo the order of rows in GGUF, where the two numbers that a rotary position turns are neighbours.

    Hugging Face's Llama keeps them half a head apart. Shapes: [heads * head_dim, hidden] -> the same.
    """
    return values.reshape(-1, head_dim // 2, 2, values.shape[1]).transpose(1, 2).reshape(values.shape)


def _tokenizer(path: Path, reader: GGUFReader) -> PreTrainedTokenizerFast:
    tokenizer: PreTrainedTokenizerFast = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    kind = reader.fields.get("tokenizer.ggml.pre")
    if kind is not None and kind.contents() == DIGIT_BY_DIGIT:
        # Lost on the way through transformers; without it, spaces before a digit are cut differently.
        by_digit = pre_tokenizers.Digits(individual_digits=True)
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [by_digit, pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    return tokenizer
