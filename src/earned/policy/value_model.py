"""A value model: the body of a causal language model with one number a token on top."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from earned.errors import PolicyError
from earned.policy.load import Policy, load_policy
from earned.policy.logprobs import PromptLayout, shared_prompt_hidden


class ValueModel(nn.Module):
    """Forecasts, before every token of a completion, the reward that is still to come."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.body = model
        self.head = nn.Linear(model.config.get_text_config().hidden_size, 1, device=model.device)
        # A forecast of exactly 0 at first: the advantage is then the reward itself, not noise.
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def values(self, token_ids_BT: Tensor, wanted_BT: Tensor, layout: PromptLayout) -> Tensor:
        """Return `values_BT` in units of reward: the forecast before each wanted token, 0 elsewhere.

        The number on top is computed in float32 or wider, whatever the precision of the body.
        """
        hidden_NH = shared_prompt_hidden(self.body, token_ids_BT, wanted_BT, layout).hidden_NH
        with torch.autocast(hidden_NH.device.type, enabled=False):
            values_N = self.head(hidden_NH.to(self.head.weight.dtype))[:, 0]
        zeros_BT = torch.zeros(token_ids_BT.shape, dtype=values_N.dtype, device=token_ids_BT.device)
        return zeros_BT.masked_scatter(wanted_BT, values_N)

    def trainable(self) -> dict[str, nn.Parameter]:
        """Return the parameters by name; the language model's own head predicts no value and is not among them."""
        body = self.body.base_model.named_parameters(prefix="body")
        return {**dict(body), **dict(self.head.named_parameters(prefix="head"))}

    def save(self, file: Path) -> None:
        """Write the weights as safetensors."""
        save_file({name: value.detach().contiguous() for name, value in self.trainable().items()}, file)

    @torch.no_grad()
    def restore(self, file: Path) -> None:
        """Read the weights that `save` wrote."""
        stored = load_file(file)
        for name, value in self.trainable().items():
            value.copy_(stored[name])


def load_value_model(name: str, policy: Policy) -> ValueModel:
    """Return a value model on the body of the model called `name`, which may be smaller than the policy.

    Raises:
        PolicyError: no such model, or its tokeniser numbers tokens in another way than the policy's.
    """
    loaded = load_policy(name)
    if loaded.tokenizer.get_vocab() != policy.tokenizer.get_vocab():
        raise PolicyError(
            f"critic.model: {name!r} has another vocabulary than the policy {policy.name!r}, so the value model would "
            "read other tokens than were sampled. Choose a model of the same family, or leave critic.model out"
        )
    return ValueModel(loaded.model)
