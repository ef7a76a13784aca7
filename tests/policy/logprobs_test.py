import copy
import math
from collections.abc import Sequence

import pytest
import torch
from tests.policy.models import FAMILIES, LLAMA_LIKE, VOCABULARY, tiny_policy
from torch import Tensor, nn
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaForCausalLM,
    PreTrainedModel,
)

from earned.errors import PolicyError
from earned.policy import logprobs
from earned.policy.load import Policy
from earned.policy.logprobs import head_logits, require_plain_head, token_scores
from earned.policy.tiny import EOS_ID

SECOND_EOS = 97
PROMPT_LENGTHS = (1, 6, 3)
ROWS = (
    (0, 20, 14, 20, 32, EOS_ID),
    (0, 50, 51, EOS_ID, 53, 54, 20, 21, 22, 23, 24, SECOND_EOS),
    (0, 80, 81, 82, 83, 84, 85, 86, 87),
)
"""Rows of prompt and completion; padded with the EOS id, so a mask built from ids would be wrong."""


def batch(rows: Sequence[Sequence[int]] = ROWS, extra: int = 0) -> tuple[Tensor, Tensor]:
    width = max(len(row) for row in rows) + extra
    token_ids_BT = torch.full((len(rows), width), EOS_ID)
    wanted_BT = torch.zeros((len(rows), width), dtype=torch.bool)
    for index, (row, prompt_length) in enumerate(zip(rows, PROMPT_LENGTHS, strict=True)):
        token_ids_BT[index, : len(row)] = torch.tensor(row)
        wanted_BT[index, prompt_length : len(row)] = True
    return token_ids_BT, wanted_BT


def brute_force(model: PreTrainedModel, temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies of all wanted tokens in a row, from one plain forward pass a row."""
    chosen, entropies = [], []
    for row, prompt_length in zip(ROWS, PROMPT_LENGTHS, strict=True):
        logits_TV = model(input_ids=torch.tensor([row]), use_cache=False).logits[0]
        logprobs_TV = torch.log_softmax(logits_TV.double() / temperature, dim=-1)
        for t in range(prompt_length, len(row)):
            chosen.append(logprobs_TV[t - 1, row[t]])
            entropies.append(-(logprobs_TV[t - 1].exp() * logprobs_TV[t - 1]).sum())
    return torch.stack(chosen), torch.stack(entropies)


def gradients(policy: Policy, loss: Tensor) -> Tensor:
    return torch.cat([g.flatten().double() for g in torch.autograd.grad(loss, list(policy.parameters().values()))])


def weights(count: int) -> Tensor:
    return torch.linspace(-1, 1, count)


@pytest.fixture
def head_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Records how many positions each call of the head sees."""
    seen: list[int] = []
    inner = logprobs.head_logits

    def counted(model: PreTrainedModel, hidden_NH: Tensor) -> Tensor:
        seen.append(len(hidden_NH))
        return inner(model, hidden_NH)

    monkeypatch.setattr(logprobs, "head_logits", counted)
    return seen


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_those_of_every_row_alone(family, temperature):
    policy = tiny_policy(family)
    token_ids_BT, wanted_BT = batch()
    with torch.no_grad():
        scores = token_scores(policy.model, token_ids_BT, wanted_BT, temperature)
        expected_logprobs, expected_entropy = brute_force(copy.deepcopy(policy.model).double(), temperature)
    torch.testing.assert_close(scores.logprobs_BT[wanted_BT].double(), expected_logprobs, atol=2e-5, rtol=0)
    torch.testing.assert_close(scores.entropy_BT[wanted_BT].double(), expected_entropy, atol=2e-5, rtol=0)
    assert scores.logprobs_BT[~wanted_BT].eq(0).all() and scores.entropy_BT[~wanted_BT].eq(0).all()


def test_a_shift_by_one_more_would_be_seen():
    policy = tiny_policy("llama")
    token_ids_BT, wanted_BT = batch()
    with torch.no_grad():
        scores = token_scores(policy.model, token_ids_BT, wanted_BT, 1.0)
        expected, _ = brute_force(policy.model, 1.0)
    assert (scores.logprobs_BT[wanted_BT][1:] - expected[:-1]).abs().max() > 1


def test_first_and_last_tokens_are_scored_and_position_0_is_refused():
    policy = tiny_policy("llama")
    token_ids_BT, wanted_BT = batch()
    scores = token_scores(policy.model, token_ids_BT, wanted_BT, 1.0)
    for index, (row, prompt_length) in enumerate(zip(ROWS, PROMPT_LENGTHS, strict=True)):
        assert scores.logprobs_BT[index, prompt_length] < 0 and scores.logprobs_BT[index, len(row) - 1] < 0
    wanted_BT[2, 0] = True
    with pytest.raises(AssertionError, match="position 0"):
        token_scores(policy.model, token_ids_BT, wanted_BT, 1.0)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_those_of_every_row_alone(family, temperature):
    policy = tiny_policy(family)
    token_ids_BT, wanted_BT = batch()
    scores = token_scores(policy.model, token_ids_BT, wanted_BT, temperature)
    expected_logprobs, _ = brute_force(policy.model, temperature)
    ours = gradients(policy, (weights(len(expected_logprobs)) * scores.logprobs_BT[wanted_BT]).sum())
    expected = gradients(policy, (weights(len(expected_logprobs)) * expected_logprobs).sum())
    assert (ours - expected).norm() < 1e-5 * expected.norm()
    assert not scores.entropy_BT.requires_grad


@pytest.mark.parametrize("family", FAMILIES)
def test_chunks_change_neither_values_nor_gradients(family, monkeypatch, head_rows):
    policy = tiny_policy(family)
    token_ids_BT, wanted_BT = batch()
    wanted = int(wanted_BT.sum())

    def scored() -> tuple[Tensor, Tensor, Tensor]:
        scores = token_scores(policy.model, token_ids_BT, wanted_BT, 0.6)
        loss = (weights(wanted) * scores.logprobs_BT[wanted_BT]).sum()
        return scores.logprobs_BT.detach(), scores.entropy_BT, gradients(policy, loss)

    whole = scored()
    assert head_rows == [wanted]
    head_rows.clear()
    monkeypatch.setattr(logprobs, "CHUNK_LOGITS", 3 * VOCABULARY + 1)
    parts = scored()
    assert max(head_rows) == 3 and sum(head_rows) == 2 * wanted, "once forward, once again for the gradient"
    torch.testing.assert_close(parts[0], whole[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(parts[1], whole[1], atol=1e-5, rtol=0)
    assert (parts[2] - whole[2]).norm() < 1e-5 * whole[2].norm()


def test_a_vocabulary_larger_than_a_chunk_goes_row_by_row(monkeypatch, head_rows):
    monkeypatch.setattr(logprobs, "CHUNK_LOGITS", 1)
    with torch.no_grad():
        token_scores(tiny_policy("llama").model, *batch(), 1.0)
    assert set(head_rows) == {1}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("pad_id", [EOS_ID, 0, 60])
def test_extra_padding_changes_nothing(family, pad_id):
    policy = tiny_policy(family)
    token_ids_BT, wanted_BT = batch()
    wide_ids_BT, wide_wanted_BT = batch(extra=50)
    for index, row in enumerate(ROWS):
        wide_ids_BT[index, len(row) :] = pad_id
    with torch.no_grad():
        narrow = token_scores(policy.model, token_ids_BT, wanted_BT, 1.0)
        wide = token_scores(policy.model, wide_ids_BT, wide_wanted_BT, 1.0)
    assert wide.logprobs_BT.shape == wide_ids_BT.shape
    torch.testing.assert_close(wide.logprobs_BT[wide_wanted_BT], narrow.logprobs_BT[wanted_BT], atol=1e-5, rtol=0)
    torch.testing.assert_close(wide.entropy_BT[wide_wanted_BT], narrow.entropy_BT[wanted_BT], atol=1e-5, rtol=0)


def with_distribution(probabilities: Sequence[float]) -> PreTrainedModel:
    """A model that gives its first tokens these probabilities everywhere and all others exactly 0."""
    model = tiny_policy("llama").model
    head = nn.Linear(model.config.hidden_size, VOCABULARY)
    with torch.no_grad():
        head.weight.zero_()
        head.bias.fill_(-math.inf)
        head.bias[: len(probabilities)] = torch.tensor(probabilities).log()
    model.set_output_embeddings(head)
    return model


@pytest.mark.parametrize(
    ("temperature", "entropy", "logprob_of_1"),
    [
        (1.0, 1.75 * math.log(2), math.log(1 / 4)),
        # Squared and normalised: 16, 4, 1, 1 of 22.
        (0.5, math.log(22) - (16 * math.log(16) + 4 * math.log(4)) / 22, math.log(4 / 22)),
    ],
)
def test_entropy_by_hand(temperature, entropy, logprob_of_1):
    model = with_distribution([1 / 2, 1 / 4, 1 / 8, 1 / 8])
    scores = token_scores(model, torch.tensor([[0, 1]]), torch.tensor([[False, True]]), temperature)
    assert scores.entropy_BT[0, 1].item() == pytest.approx(entropy, abs=1e-6)
    assert scores.logprobs_BT[0, 1].item() == pytest.approx(logprob_of_1, abs=1e-6)


def test_the_head_is_float32_whatever_the_body_is():
    model = tiny_policy("llama").model
    token_ids_BT, wanted_BT = batch()
    kinds = []
    model.get_output_embeddings().register_forward_hook(lambda _, __, output: kinds.append(output.dtype))
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        scores = token_scores(model, token_ids_BT, wanted_BT, 1.0)
        body = model.base_model(input_ids=token_ids_BT[:, :2]).last_hidden_state
        inside = model.base_model.layers[0].mlp.up_proj(body)
    assert inside.dtype is torch.bfloat16
    assert kinds == [torch.float32] and scores.logprobs_BT.dtype is torch.float32


@pytest.mark.parametrize("family", FAMILIES)
def test_known_families_have_a_plain_head(family):
    require_plain_head(tiny_policy(family).model)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (CohereForCausalLM, CohereConfig(**LLAMA_LIKE, num_attention_heads=2, logit_scale=0.25)),
        (GraniteForCausalLM, GraniteConfig(**LLAMA_LIKE, num_attention_heads=2, logits_scaling=4.0)),
    ],
)
def test_a_scale_in_the_config_is_applied(kind, config):
    model = kind(config).eval()
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(30)
        own = model(input_ids=torch.tensor([[5, 6]])).logits[0]
        hidden = model.base_model(input_ids=torch.tensor([[5, 6]])).last_hidden_state[0]
    require_plain_head(model)
    torch.testing.assert_close(head_logits(model, hidden), own)
    assert (model.get_output_embeddings()(hidden) - own).abs().max() > 1


class DoubledLlama(LlamaForCausalLM):
    def forward(self, *args, **kwargs):
        output = super().forward(*args, **kwargs)
        output.logits = output.logits * 2
        return output


def test_an_unknown_change_of_the_logits_is_refused():
    plain = tiny_policy("llama").model
    model = DoubledLlama(plain.config)
    model.load_state_dict(plain.state_dict())
    with pytest.raises(PolicyError, match="DoubledLlama changes its logits") as raised:
        require_plain_head(model.eval())
    assert raised.value.exit_code == 2
