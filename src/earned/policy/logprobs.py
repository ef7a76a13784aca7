"""Log-probabilities of tokens under a policy. The one shift of the project is here.

Shapes: B rows, T tokens, N wanted tokens, H hidden size, V vocabulary. Rows are padded on the right, so under causal
attention no wanted token ever sees padding and no attention mask is needed.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from earned.errors import PolicyError

CHUNK_LOGITS = 2**24
"""Most logits held at once (64 MB in float32)."""


class TokenScores(NamedTuple):
    """What the policy says of every wanted token; 0 elsewhere."""

    logprobs_BT: Tensor
    """Nats, of the distribution at the sampling temperature."""
    entropy_BT: Tensor
    """Nats, of the distribution the token was drawn from; carries no gradient."""


def token_scores(model: PreTrainedModel, token_ids_BT: Tensor, wanted_BT: Tensor, temperature: float) -> TokenScores:
    """Return the log-probability and entropy at every wanted token, aligned with `token_ids_BT`.

    Only wanted positions reach the head, in chunks that are recomputed in the backward pass, so no [B, T, V] tensor
    is ever built. The head runs in float32 whatever the precision of the body.

    Args:
        model: a causal language model.
        token_ids_BT: int64, right-padded with any id.
        wanted_BT: bool; column 0 must be False, since no token precedes it.
        temperature: logits are divided by it, as they were when sampling.
    """
    assert not wanted_BT[:, 0].any(), "position 0 has no prediction"
    hidden_BTH = model.base_model(input_ids=token_ids_BT, use_cache=False).last_hidden_state
    predicted_BT = wanted_BT[:, 1:]
    hidden_NH = hidden_BTH[:, :-1][predicted_BT]
    target_N = token_ids_BT[:, 1:][predicted_BT]
    logprobs_N, entropy_N = _head_scores(model, hidden_NH, target_N, temperature)
    zeros_BT = torch.zeros(token_ids_BT.shape, dtype=logprobs_N.dtype, device=token_ids_BT.device)
    return TokenScores(zeros_BT.masked_scatter(wanted_BT, logprobs_N), zeros_BT.masked_scatter(wanted_BT, entropy_N))


def head_logits(model: PreTrainedModel, hidden_NH: Tensor) -> Tensor:
    """Return the model's own logits [N, V] in float32, with the scaling or capping its family applies."""
    head = model.get_output_embeddings()
    assert head is not None, "a causal language model has a head"
    with torch.autocast(hidden_NH.device.type, enabled=False):
        logits_NV = head(hidden_NH.to(head.weight.dtype)).float()
    config = model.config
    logits_NV = logits_NV * (getattr(config, "logit_scale", None) or 1.0)
    logits_NV = logits_NV / (getattr(config, "logits_scaling", None) or 1.0)
    cap = getattr(config, "final_logit_softcapping", None)
    return torch.tanh(logits_NV / cap) * cap if cap else logits_NV


def require_plain_head(model: PreTrainedModel) -> None:
    """Raise PolicyError when `head_logits` differs from the model's own forward pass on two tokens."""
    token_ids = torch.tensor([[0, 1]], device=model.device)
    with torch.no_grad():
        own = model(input_ids=token_ids, use_cache=False).logits.float()
        ours = head_logits(model, model.base_model(input_ids=token_ids, use_cache=False).last_hidden_state)
    if not torch.allclose(own, ours, atol=1e-3, rtol=1e-3):
        raise PolicyError(
            f"{type(model).__name__} changes its logits after the head in a way earned does not know, so the "
            "log-probabilities would be wrong; please report the model"
        )


def _head_scores(
    model: PreTrainedModel, hidden_NH: Tensor, target_N: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    def chunk_scores(hidden_nH: Tensor, target_n: Tensor) -> tuple[Tensor, Tensor]:
        logprobs_nV = torch.log_softmax(head_logits(model, hidden_nH) / temperature, dim=-1)
        with torch.no_grad():
            entropy_n = -(logprobs_nV.exp() * logprobs_nV.clamp(min=-1e4)).sum(-1)
        return logprobs_nV.gather(-1, target_n[:, None])[:, 0], entropy_n

    rows = max(1, CHUNK_LOGITS // model.config.get_text_config().vocab_size)
    if len(target_N) <= rows:
        return chunk_scores(hidden_NH, target_N)
    parts = [
        checkpoint(chunk_scores, hidden_nH, target_n, use_reentrant=False)
        for hidden_nH, target_n in zip(hidden_NH.split(rows), target_N.split(rows), strict=True)
    ]
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
