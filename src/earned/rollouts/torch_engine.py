"""The reference engine: batched key/value-cache sampling of any Hugging Face causal language model, in torch.

Shapes: P prompts, G samples each, R rows still being sampled, L prompt length, V vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from earned.policy.cache import sampling_cache
from earned.policy.load import Policy
from earned.policy.logprobs import head_logits
from earned.randomness import uniforms
from earned.rollouts.engine import Draw, SamplingSettings
from earned.vocabulary import Completion, Prompt, Segment, StopReason

KEEP_FINISHED_SHARE = 0.25
"""Finished rows leave the batch once they are this share of it; leaving copies the cache, so not at every token."""


class TorchEngine:
    """Samples from the very weights that are trained, so loading weights only moves a pointer."""

    def __init__(self, policy: Policy, *, batch_size: int, precision: torch.dtype = torch.float32) -> None:
        self._policy = policy
        self._version = 0
        self._batch_size = batch_size
        self._precision = precision

    def load_weights(self, policy: Policy, version: int) -> None:
        """See `Engine.load_weights`."""
        self._policy, self._version = policy, version

    def close(self) -> None:
        """See `Engine.close`; there is nothing to free."""

    @torch.no_grad()
    def generate(
        self, prompts: Sequence[Prompt], settings: SamplingSettings, draw: Draw
    ) -> list[tuple[Completion, ...]]:
        """See `Engine.generate`."""
        prompts_per_batch = max(1, self._batch_size // settings.group_size)
        completions: list[tuple[Completion, ...]] = []
        for start in range(0, len(prompts), prompts_per_batch):
            batch = prompts[start : start + prompts_per_batch]
            with self._policy.computing_in(self._precision):
                sampled = _Sampling(self._policy, batch, settings, draw).run()
            completions += self._completions(*sampled, group_size=settings.group_size)
        return completions

    def _completions(
        self, token_ids_BT: Tensor, logprobs_BT: Tensor, lengths_B: Tensor, group_size: int
    ) -> list[tuple[Completion, ...]]:
        rows = [
            self._completion(tuple(ids[:length]), tuple(logprobs[:length]))
            for ids, logprobs, length in zip(
                token_ids_BT.tolist(), logprobs_BT.tolist(), lengths_B.tolist(), strict=True
            )
        ]
        return [tuple(rows[start : start + group_size]) for start in range(0, len(rows), group_size)]

    def _completion(self, token_ids: tuple[int, ...], logprobs: tuple[float, ...]) -> Completion:
        return Completion(
            segments=(Segment(token_ids=token_ids, sampled=True, sampler_logprobs=logprobs),),
            text=self._policy.decode(token_ids),
            stop_reason=StopReason.EOS if token_ids[-1] in self._policy.eos_ids else StopReason.LENGTH,
            policy_version=self._version,
        )


class _Sampling:
    """One batch being sampled: the prompts are read once, then their G rows grow by a token at a time."""

    def __init__(self, policy: Policy, prompts: Sequence[Prompt], settings: SamplingSettings, draw: Draw) -> None:
        self.model = policy.model
        self.device = policy.device
        self.settings = settings
        self.group_size = settings.group_size
        self.eos_E = torch.tensor(sorted(policy.eos_ids), device=self.device)
        keys = [f"{prompt.problem.id}/{attempt}" for prompt in prompts for attempt in range(self.group_size)]
        drawn = uniforms(draw.seed, draw.step, draw.purpose, keys, settings.max_new_tokens)
        self.uniforms_BT = torch.from_numpy(drawn).to(self.device)
        self.prompt_PL, self.real_PL = _left_padded(prompts, self.device)

    def run(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return token ids [B, T], sampler log-probabilities [B, T] and lengths [B]; past a row's length: zeros."""
        total, limit = len(self.uniforms_BT), self.settings.max_new_tokens
        token_ids_BT = torch.zeros((total, limit), dtype=torch.int64, device=self.device)
        logprobs_BT = torch.zeros((total, limit), device=self.device)
        lengths_B = torch.full((total,), limit, device=self.device)
        row_R = torch.arange(total, device=self.device)
        going_R = torch.ones(total, dtype=torch.bool, device=self.device)
        hidden_RH = self._read_prompts()
        for t in range(limit):
            token_R, logprob_R = self._sample(hidden_RH, self.uniforms_BT[row_R, t])
            token_ids_BT[row_R[going_R], t] = token_R[going_R]
            logprobs_BT[row_R[going_R], t] = logprob_R[going_R]
            ended_R = going_R & torch.isin(token_R, self.eos_E)
            lengths_B[row_R[ended_R]] = t + 1
            going_R = going_R & ~ended_R
            going = int(going_R.sum())
            if going == 0 or t == limit - 1:
                break
            if going < (1 - KEEP_FINISHED_SHARE) * len(going_R):
                self._keep(going_R)
                row_R, token_R, going_R = row_R[going_R], token_R[going_R], going_R[going_R]
            hidden_RH = self._read_token(token_R)
        return token_ids_BT, logprobs_BT, lengths_B

    def _read_prompts(self) -> Tensor:
        """Read every prompt once, then give each of its G rows a copy of its keys and values."""
        length = self.prompt_PL.shape[1]
        self.cache = sampling_cache(self.model, length + self.settings.max_new_tokens)
        positions_PL = (self.real_PL.cumsum(1) - 1).clamp(min=0)
        hidden_PLH = self.model.base_model(
            input_ids=self.prompt_PL,
            attention_mask=self.real_PL,
            position_ids=positions_PL,
            cache=self.cache,
            use_cache=True,
        ).last_hidden_state
        self.cache.batch_repeat_interleave(self.group_size)
        self.next_position_R = (positions_PL[:, -1] + 1).repeat_interleave(self.group_size)
        new_PT = torch.ones((len(self.real_PL), self.settings.max_new_tokens), dtype=torch.int64, device=self.device)
        self.real_RL = torch.cat([self.real_PL, new_PT], dim=1).repeat_interleave(self.group_size, dim=0)
        self.read = length
        return hidden_PLH[:, -1].repeat_interleave(self.group_size, dim=0)

    def _read_token(self, token_R: Tensor) -> Tensor:
        self.read += 1
        hidden_R1H = self.model.base_model(
            input_ids=token_R[:, None],
            attention_mask=self.real_RL[:, : self.read],
            position_ids=self.next_position_R[:, None],
            cache=self.cache,
            use_cache=True,
        ).last_hidden_state
        self.next_position_R = self.next_position_R + 1
        return hidden_R1H[:, -1]

    def _keep(self, going_R: Tensor) -> None:
        kept = going_R.nonzero()[:, 0]
        self.cache.batch_select_indices(kept)
        self.real_RL, self.next_position_R = self.real_RL[kept], self.next_position_R[kept]

    def _sample(self, hidden_RH: Tensor, uniform_R: Tensor) -> tuple[Tensor, Tensor]:
        settings = self.settings
        logprobs_RV = torch.log_softmax(head_logits(self.model, hidden_RH) / (settings.temperature or 1.0), dim=-1)
        if settings.temperature == 0:
            token_R = logprobs_RV.argmax(-1)
        else:
            logprobs_RV = most_likely(logprobs_RV, settings.top_k, settings.top_p)
            token_R = inverse_distribution(logprobs_RV, uniform_R)
        return token_R, logprobs_RV.gather(-1, token_R[:, None])[:, 0]


def most_likely(logprobs_RV: Tensor, top_k: int, top_p: float) -> Tensor:
    """Return the log-probabilities [R, V] of what is left of the distributions, -inf for the tokens that are not.

    First the `top_k` most likely tokens stay (0 for all), of equal ones the smaller ids. Of their distribution then the
    fewest most likely tokens stay that together have the probability `top_p` or more, which is at least one.

    Source: Fan et al. 2018 (top-k) and Holtzman et al. 2020 (top-p), in the order of Hugging Face.

    >>> most_likely(torch.tensor([[0.5, 0.3, 0.2]]).log(), top_k=2, top_p=1.0).exp()
    tensor([[0.6250, 0.3750, 0.0000]])
    >>> most_likely(torch.tensor([[0.5, 0.3, 0.2]]).log(), top_k=0, top_p=0.4).exp()
    tensor([[1., 0., 0.]])
    """
    if top_k == 0 and top_p == 1:
        return logprobs_RV
    sorted_RV, token_RV = logprobs_RV.sort(dim=-1, descending=True, stable=True)
    if top_k > 0:
        sorted_RV[:, top_k:] = -torch.inf
    if top_p < 1:
        probabilities_RV = sorted_RV.double().softmax(-1)
        likelier_RV = probabilities_RV.cumsum(-1) - probabilities_RV
        sorted_RV[likelier_RV >= top_p] = -torch.inf
    return torch.empty_like(logprobs_RV).scatter(-1, token_RV, sorted_RV.log_softmax(-1))


def inverse_distribution(logprobs_RV: Tensor, uniform_R: Tensor) -> Tensor:
    """Return the tokens [R] at which the cumulative distribution first passes the uniforms [R] in [0, 1).

    Summed in float64, since float32 sums over a large vocabulary lose the rare tokens.
    """
    cumulative_RV = logprobs_RV.double().exp().cumsum(-1)
    target_R1 = uniform_R[:, None] * cumulative_RV[:, -1:]
    return torch.searchsorted(cumulative_RV, target_R1, right=True)[:, 0].clamp(max=logprobs_RV.shape[-1] - 1)


def _left_padded(prompts: Sequence[Prompt], device: torch.device) -> tuple[Tensor, Tensor]:
    length = max(len(prompt.token_ids) for prompt in prompts)
    ids_PL = torch.zeros((len(prompts), length), dtype=torch.int64)
    real_PL = torch.zeros((len(prompts), length), dtype=torch.int64)
    for row, prompt in enumerate(prompts):
        ids_PL[row, length - len(prompt.token_ids) :] = torch.tensor(prompt.token_ids)
        real_PL[row, length - len(prompt.token_ids) :] = 1
    return ids_PL.to(device), real_PL.to(device)
