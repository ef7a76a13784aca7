"""A policy: any Hugging Face causal language model with its tokeniser, built in, from a folder or from the hub."""

import hashlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from earned.errors import PolicyError, did_you_mean
from earned.policy.catalog import BUILT_IN, CATALOG, pulled_folder
from earned.policy.hub import hub_source
from earned.policy.logprobs import require_plain_head

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json")

transformers_logging.set_verbosity_error()
transformers_logging.disable_progress_bar()


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A model that samples and is trained, always in evaluation mode: dropout would make the ratio differ from 1."""

    name: str
    model: PreTrainedModel
    """Weights in float32."""
    tokenizer: PreTrainedTokenizerBase
    eos_ids: frozenset[int]
    """Every id that ends a completion, from the generation settings and the tokeniser."""

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.device

    @property
    def context(self) -> int:
        """Most tokens of prompt and completion together."""
        return int(getattr(self.model.config, "max_position_embeddings", None) or 1_000_000)

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """Trainable parameters by name, each once."""
        return {name: value for name, value in self.model.named_parameters() if value.requires_grad}

    def computing_in(self, precision: torch.dtype) -> AbstractContextManager[object]:
        """Return the context of a forward pass in float32, or with its products in a narrower type."""
        if precision is torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=precision)

    def decode(self, token_ids: tuple[int, ...]) -> str:
        """Text for people and checkers, without special tokens."""
        return str(self.tokenizer.decode(list(token_ids), skip_special_tokens=True))


def load_policy(name: str) -> Policy:
    """Load a policy with float32 weights onto the GPU if there is one, else the CPU.

    Args:
        name: a built-in name (`tiny`), a pulled one (`smollm2-135m`), a folder written by `save_pretrained`, or a hub
            id.

    Raises:
        PolicyError: no such model, a hub that cannot be reached, no tokeniser beside it, no end-of-sequence token, or
            logits that are changed after the head in a way that is not known.
    """
    source = _resolve(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
    except Exception as error:
        reason = f"no usable tokeniser in it ({_first_line(error)})"
        raise PolicyError(f"model {name!r}: {reason}{_advice(name)}") from None
    try:
        AutoConfig.from_pretrained(source)
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    except Exception as error:
        reason = f"is no loadable causal language model ({_first_line(error)})"
        raise PolicyError(f"model {name!r}: {reason}{_advice(name)}") from None
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    policy = make_policy(name, model.to(device), tokenizer)  # pyright: ignore[reportArgumentType]
    require_plain_head(policy.model)
    return policy


def make_policy(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Policy:
    """Return a policy from parts already in memory; raises PolicyError when nothing can end a completion."""
    model.eval()
    configured = model.generation_config.eos_token_id if model.generation_config else None
    listed = configured if isinstance(configured, list) else [configured]
    eos_ids = frozenset(i for i in [*listed, tokenizer.eos_token_id] if isinstance(i, int))
    if not eos_ids:
        raise PolicyError(f"model {name!r}: neither its generation settings nor its tokeniser name an EOS token")
    return Policy(name=name, model=model, tokenizer=tokenizer, eos_ids=eos_ids)


def save_policy(policy: Policy, folder: Path) -> None:
    """Write an ordinary Hugging Face model folder: weights as safetensors, tokeniser, generation settings."""
    policy.model.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)


def fingerprint(policy: Policy) -> str:
    """Return a hash of all trainable weights: equal exactly when every bit is equal."""
    digest = hashlib.blake2b(digest_size=16)
    for name, value in sorted(policy.parameters().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _resolve(name: str) -> str:
    built_in = sorted(config.parent.name for config in BUILT_IN.glob("*/config.json"))
    if name in built_in:
        return str(BUILT_IN / name)
    if name in CATALOG:
        return str(pulled_folder(name))
    folder = Path(name)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise PolicyError(f"model {name!r}: the folder holds no config.json, so it is no Hugging Face model folder")
        if not any((folder / file).is_file() for file in TOKENIZER_FILES):
            raise PolicyError(f"model {name!r}: the folder holds no tokeniser; save tokenizer.json beside the model")
        return name
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        known = [*built_in, *CATALOG]
        raise PolicyError(
            f"model {name!r}: no such folder, and not built in or to be pulled.{did_you_mean(name, known)} "
            f"Known: {', '.join(known)}; or a hub id OWNER/NAME"
        )
    return hub_source(name)


def _advice(name: str) -> str:
    return f". Mend it with: earned models pull {name}" if name in CATALOG else ""


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
