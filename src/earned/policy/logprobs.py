"""Log-probabilities of tokens under a policy. The one shift of the project is here.

Shapes: B rows, T tokens, N wanted tokens, H hidden size, V vocabulary. Rows are padded on the right, so under causal
attention no wanted token ever sees padding and no attention mask is needed.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache, PreTrainedModel

from earned.errors import PolicyError
from earned.policy.cache import hand_out

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


class PromptLayout(NamedTuple):
    """Which rows of a batch begin with the same prompt."""

    first_row_P: Tensor
    """int64, for every distinct prompt a row that begins with it."""
    prompt_of_B: Tensor
    """int64, index of the row's prompt among the P."""
    lengths_B: Tensor
    """int64, tokens of the row's prompt."""
    completion_width: int
    """Most tokens that follow a prompt, rounded up."""


class WantedTokens(NamedTuple):
    """The N wanted tokens of a batch, row by row, and the hidden states that predict them."""

    hidden_NH: Tensor
    """With gradient: of the position before each token."""
    token_ids_N: Tensor


def shared_prompt_scores(
    model: PreTrainedModel, token_ids_BT: Tensor, wanted_BT: Tensor, layout: PromptLayout, temperature: float
) -> TokenScores:
    """Return what `token_scores` returns, reading every distinct prompt once.

    The prompts are read with gradient, and their keys and values are handed to every row that begins with them, so a
    group of G rows pays for one prompt instead of G. Nothing in a prompt may be wanted but the token after it.
    """
    wanted = shared_prompt_hidden(model, token_ids_BT, wanted_BT, layout)
    scores_N = _head_scores(model, wanted.hidden_NH, wanted.token_ids_N, temperature)
    zeros_BT = torch.zeros(token_ids_BT.shape, dtype=scores_N[0].dtype, device=token_ids_BT.device)
    return TokenScores(*(zeros_BT.masked_scatter(wanted_BT, values_N) for values_N in scores_N))


def shared_prompt_hidden(
    model: PreTrainedModel, token_ids_BT: Tensor, wanted_BT: Tensor, layout: PromptLayout
) -> WantedTokens:
    """Return the states that predict the wanted tokens; see `shared_prompt_scores`."""
    length = int(layout.lengths_B.max())
    lengths_P1 = layout.lengths_B[layout.first_row_P, None]
    # Padded on the left, as when sampling: a sliding window then ends with the prompt and not with padding.
    place_PL = torch.arange(length, device=token_ids_BT.device) - (length - lengths_P1)
    real_PL = place_PL >= 0
    cache = DynamicCache(config=model.config)
    hidden_PLH = model.base_model(
        input_ids=token_ids_BT[layout.first_row_P].gather(1, place_PL.clamp(min=0)),
        attention_mask=real_PL.long(),
        position_ids=place_PL.clamp(min=0),
        cache=cache,
        use_cache=True,
    ).last_hidden_state
    hand_out(cache, layout.prompt_of_B)
    place_S = torch.arange(layout.completion_width, device=token_ids_BT.device)
    place_BS = layout.lengths_B[:, None] + place_S
    column_BS = place_BS.clamp(max=token_ids_BT.shape[1] - 1)
    token_ids_BS = token_ids_BT.gather(1, column_BS)
    wanted_BS = wanted_BT.gather(1, column_BS) & (place_BS < token_ids_BT.shape[1])
    hidden_BSH = model.base_model(
        input_ids=token_ids_BS,
        attention_mask=torch.cat([real_PL[layout.prompt_of_B], torch.ones_like(wanted_BS)], dim=1).long(),
        position_ids=column_BS,
        cache=cache,
        use_cache=True,
    ).last_hidden_state
    before_B1H = hidden_PLH[:, -1:].index_select(0, layout.prompt_of_B)
    predicting_BSH = torch.cat([before_B1H, hidden_BSH[:, :-1]], dim=1)
    return WantedTokens(predicting_BSH[wanted_BS], token_ids_BS[wanted_BS])


def head_logits(model: PreTrainedModel, hidden_NH: Tensor) -> Tensor:
    """Return the model's own logits [N, V] in float32 or wider, with the scaling or capping its family applies."""
    head = model.get_output_embeddings()
    assert head is not None, "a causal language model has a head"
    with torch.autocast(hidden_NH.device.type, enabled=False):
        logits_NV = head(hidden_NH.to(head.weight.dtype))
    logits_NV = logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32))
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
