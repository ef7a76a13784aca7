"""Reading a prompt once for all its rows changes neither values nor gradients."""

import pytest
import torch
from tests.policy.models import FAMILIES, tiny_policy

from earned.policy.logprobs import PromptLayout, shared_prompt_scores, token_scores

PROMPTS = ((0, 20, 14, 20, 32), (0, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60))
COMPLETIONS = (((20, 21, 1), (30,), (40, 41, 42, 43, 44, 45, 46, 47, 48, 1)), ((61, 62, 1), (70, 71, 72, 73, 74)))
ROWS = [(prompt, completion) for prompt, group in zip(PROMPTS, COMPLETIONS, strict=True) for completion in group]


def batch():
    width = max(len(prompt) + len(completion) for prompt, completion in ROWS)
    token_ids_BT = torch.zeros((len(ROWS), width), dtype=torch.int64)
    wanted_BT = torch.zeros((len(ROWS), width), dtype=torch.bool)
    for index, (prompt, completion) in enumerate(ROWS):
        end = len(prompt) + len(completion)
        token_ids_BT[index, :end] = torch.tensor(prompt + completion)
        wanted_BT[index, len(prompt) : end] = True
    prompts = PromptLayout(
        first_row_P=torch.tensor([0, 3]),
        prompt_of_B=torch.tensor([0, 0, 0, 1, 1]),
        lengths_B=torch.tensor([len(prompt) for prompt, _ in ROWS]),
        completion_width=16,
    )
    return token_ids_BT, wanted_BT, prompts


def gradient(policy, scores):
    weights_BT = torch.linspace(-1, 1, scores.logprobs_BT.numel()).reshape(scores.logprobs_BT.shape)
    loss = (scores.logprobs_BT * weights_BT).sum()
    found = torch.autograd.grad(loss, list(policy.parameters().values()))
    return torch.cat([part.flatten() for part in found])


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_reading_every_row_whole(family, temperature):
    policy = tiny_policy(family)
    token_ids_BT, wanted_BT, prompts = batch()
    plain = token_scores(policy.model, token_ids_BT, wanted_BT, temperature)
    shared = shared_prompt_scores(policy.model, token_ids_BT, wanted_BT, prompts, temperature)
    torch.testing.assert_close(shared.logprobs_BT, plain.logprobs_BT, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(shared.entropy_BT, plain.entropy_BT, atol=1e-4, rtol=1e-5)
    expected = gradient(policy, plain)
    assert (gradient(policy, shared) - expected).norm() < 1e-4 * expected.norm()


def test_a_row_that_is_given_the_wrong_prompt_is_seen():
    policy = tiny_policy("llama")
    token_ids_BT, wanted_BT, prompts = batch()
    plain = token_scores(policy.model, token_ids_BT, wanted_BT, 1.0)
    wrong = prompts._replace(prompt_of_B=torch.tensor([0, 0, 1, 1, 1]))
    shared = shared_prompt_scores(policy.model, token_ids_BT, wanted_BT, wrong, 1.0)
    assert (shared.logprobs_BT[2] - plain.logprobs_BT[2]).abs().max() > 1e-2
