"""Two gradients of the same batch are equal to the bit, at a size where torch works with several threads."""

import torch

from earned.policy.logprobs import PromptLayout, shared_prompt_scores
from earned.policy.tiny import untrained_policy
from earned.pretrain_recipe import PretrainModel

PROMPTS, GROUP, PROMPT_LENGTH, COMPLETION_LENGTH = 16, 16, 16, 32
TRIES = 6


def gradients():
    policy = untrained_policy(PretrainModel(hidden_size=64, layers=2, heads=2, intermediate_size=128), seed=0)
    generator = torch.Generator().manual_seed(0)
    prompts_PL = torch.randint(3, 90, (PROMPTS, PROMPT_LENGTH), generator=generator)
    completions_BT = torch.randint(3, 90, (PROMPTS * GROUP, COMPLETION_LENGTH), generator=generator)
    token_ids_BT = torch.cat([prompts_PL.repeat_interleave(GROUP, dim=0), completions_BT], dim=1)
    wanted_BT = torch.zeros_like(token_ids_BT, dtype=torch.bool)
    wanted_BT[:, PROMPT_LENGTH:] = True
    prompts = PromptLayout(
        first_row_P=torch.arange(0, PROMPTS * GROUP, GROUP),
        prompt_of_B=torch.arange(PROMPTS).repeat_interleave(GROUP),
        lengths_B=torch.full((PROMPTS * GROUP,), PROMPT_LENGTH),
        completion_width=COMPLETION_LENGTH,
    )
    weights_BT = torch.randn(token_ids_BT.shape, generator=generator)
    for _ in range(TRIES):
        scores = shared_prompt_scores(policy.model, token_ids_BT, wanted_BT, prompts, 1.0)
        loss = (scores.logprobs_BT * weights_BT).sum()
        found = torch.autograd.grad(loss, list(policy.parameters().values()))
        yield torch.cat([part.flatten() for part in found])


def test_the_same_batch_gives_the_same_bits():
    first, *others = gradients()
    assert all(torch.equal(first, other) for other in others)
