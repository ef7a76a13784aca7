"""Makes a Llama float64 throughout; read by both sides of a comparison, so that they compute with the same model."""

import torch
from torch import nn
from transformers.models.llama.modeling_llama import LlamaRMSNorm


def in_double_precision(model: nn.Module) -> None:
    """Convert in place: the library's own normalisation rounds to float32 whatever it is given, so it is replaced."""
    model.double()
    for parent in list(model.modules()):
        for name, norm in parent.named_children():
            if isinstance(norm, LlamaRMSNorm):
                double = nn.RMSNorm(norm.weight.shape, eps=norm.variance_epsilon, dtype=torch.float64)
                double.load_state_dict(norm.state_dict())
                setattr(parent, name, double)
