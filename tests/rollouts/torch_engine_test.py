import math
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.models import FAMILIES, tiny_policy
from tests.rollouts.builders import prompts_of, trainer_logprobs
from torch import Tensor
from transformers import TopKLogitsWarper, TopPLogitsWarper

from earned.errors import RecipeError
from earned.policy.load import Policy
from earned.policy.tiny import EOS_ID
from earned.randomness import uniforms
from earned.rollouts import torch_engine
from earned.rollouts.engine import Draw, Engine, SamplingSettings
from earned.rollouts.torch_engine import TorchEngine, inverse_distribution, most_likely
from earned.vocabulary import Completion, Prompt, StopReason

TEXTS = ("1+1=", "123+45+6=", "7", "what is 99+1+20?")
SETTINGS = SamplingSettings(group_size=4, temperature=1.0, max_new_tokens=20)
DRAW = Draw(seed=3, step=1, purpose="train")
ENDING = (EOS_ID, 20, 35, 50, 65, 80)
"""So many end-of-sequence ids that many rows end early."""
FEW_BFLOAT16_SECONDS = 0.01

Groups = list[tuple[Completion, ...]]


def sampled(policy: Policy, texts=TEXTS, settings=SETTINGS, draw=DRAW, batch_size=1024) -> Groups:
    engine: Engine = TorchEngine(policy, batch_size=batch_size)
    return engine.generate(prompts_of(policy, texts), settings, draw)


def ids(groups: Groups) -> list[list[tuple[int, ...]]]:
    return [[completion.token_ids for completion in group] for group in groups]


def logits_after(policy: Policy, token_ids: tuple[int, ...]) -> Tensor:
    """The logits [V] of the next token from one plain forward pass, without a cache."""
    with torch.no_grad():
        return policy.model(input_ids=torch.tensor([token_ids]), use_cache=False).logits[0, -1].double()


def assert_same(groups: Groups, others: Groups) -> None:
    assert ids(groups) == ids(others)
    for group, other in zip(groups, others, strict=True):
        for one, two in zip(group, other, strict=True):
            assert one.sampler_logprobs == pytest.approx(two.sampler_logprobs, abs=1e-5)
            assert (one.stop_reason, one.text) == (two.stop_reason, two.text)


@pytest.mark.parametrize("family", FAMILIES)
class TestEveryFamily:
    def test_the_same_call_gives_the_same_ids(self, family):
        policy = tiny_policy(family, eos_ids=ENDING)
        first = sampled(policy)
        engine = TorchEngine(policy, batch_size=1024)
        assert ids(engine.generate(prompts_of(policy, TEXTS), SETTINGS, DRAW)) == ids(first)
        assert ids(engine.generate(prompts_of(policy, TEXTS), SETTINGS, DRAW)) == ids(first)
        engine.close()

    @pytest.mark.parametrize("temperature", [1.0, 0.6])
    def test_the_sampler_agrees_with_the_trainer(self, family, temperature):
        policy = tiny_policy(family, eos_ids=ENDING)
        groups = sampled(policy, settings=replace(SETTINGS, temperature=temperature))
        batch, logprobs_BT = trainer_logprobs(policy, prompts_of(policy, TEXTS), groups, temperature)
        trained_BT = batch.trained_BT
        assert len({completion.token_ids for group in groups for completion in group}) > 8
        torch.testing.assert_close(batch.sampler_logprobs_BT[trained_BT], logprobs_BT[trained_BT], atol=1e-4, rtol=0)
        _, at_another = trainer_logprobs(policy, prompts_of(policy, TEXTS), groups, 0.8 * temperature)
        assert (at_another - logprobs_BT)[trained_BT].abs().max() > 1e-2

    def test_a_sample_does_not_depend_on_who_shares_the_batch(self, family):
        policy = tiny_policy(family, eos_ids=ENDING)
        together = sampled(policy)
        engine = TorchEngine(policy, batch_size=1024)
        alone = [engine.generate([prompt], SETTINGS, DRAW)[0] for prompt in prompts_of(policy, TEXTS)]
        assert_same(together, alone)
        single = [
            engine.generate([prompt], replace(SETTINGS, group_size=1), DRAW)[0] for prompt in prompts_of(policy, TEXTS)
        ]
        assert_same([group[:1] for group in together], single)

    @pytest.mark.parametrize("share", [0.0, 2.0])
    def test_rows_that_end_leave_without_changing_the_others(self, family, share, monkeypatch):
        policy = tiny_policy(family, eos_ids=ENDING)
        expected = sampled(policy)
        batch_rows: list[int] = []
        policy.model.get_input_embeddings().register_forward_hook(
            lambda _, __, output: batch_rows.append(output.shape[0])
        )
        monkeypatch.setattr(torch_engine, "KEEP_FINISHED_SHARE", share)
        assert_same(sampled(policy), expected)
        rows = len(TEXTS) * SETTINGS.group_size
        assert batch_rows[0] == len(TEXTS), "a prompt is read once for all its samples"
        assert (min(batch_rows[1:]) < rows) == (share == 0.0)

    def test_tokens_follow_the_uniforms_through_the_inverse_distribution(self, family):
        policy = tiny_policy(family)
        settings = SamplingSettings(group_size=2, temperature=0.7, max_new_tokens=8)
        prompt = prompts_of(policy, TEXTS)[1]
        completion = sampled(policy, settings=settings)[1][1]
        drawn = uniforms(DRAW.seed, DRAW.step, DRAW.purpose, [f"{prompt.problem.id}/1"], 8)[0]
        for t, token in enumerate(completion.token_ids):
            distribution = torch.softmax(logits_after(policy, prompt.token_ids + completion.token_ids[:t]) / 0.7, -1)
            assert token == int((distribution.cumsum(-1) <= drawn[t]).sum())

    def test_greedy_takes_the_most_likely_token(self, family):
        policy = tiny_policy(family)
        settings = SamplingSettings(group_size=1, temperature=0.0, max_new_tokens=8)
        for prompt, (completion,) in zip(prompts_of(policy, TEXTS), sampled(policy, settings=settings), strict=True):
            for t, token in enumerate(completion.token_ids):
                logits = logits_after(policy, prompt.token_ids + completion.token_ids[:t])
                assert token == int(logits.argmax())
                expected = torch.log_softmax(logits, -1)[token].item()
                assert completion.sampler_logprobs[t] == pytest.approx(expected, abs=1e-4)

    def test_bfloat16_stays_near_the_trainer(self, family):
        if slow_bfloat16():
            pytest.skip("this CPU only emulates bfloat16 products")
        policy = tiny_policy(family)
        prompts = prompts_of(policy, TEXTS)
        settings = SamplingSettings(group_size=16, temperature=1.0, max_new_tokens=32)
        groups = TorchEngine(policy, batch_size=1024, precision=torch.bfloat16).generate(prompts, settings, DRAW)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            batch, logprobs_BT = trainer_logprobs(policy, prompts, groups, 1.0)
        difference = (batch.sampler_logprobs_BT - logprobs_BT)[batch.trained_BT]
        assert difference.abs().mean() <= 2e-2
        assert difference.abs().quantile(0.99) <= 0.1
        assert difference.mean().abs() <= 2e-3


def slow_bfloat16() -> bool:
    matrix = torch.ones((64, 64), dtype=torch.bfloat16)
    torch.mm(matrix, matrix)
    start = time.perf_counter()
    torch.mm(matrix, matrix)
    return time.perf_counter() - start > FEW_BFLOAT16_SECONDS


@pytest.mark.parametrize("other", [replace(DRAW, seed=4), replace(DRAW, step=2), replace(DRAW, purpose="validation")])
def test_another_address_draws_other_tokens(other):
    policy = tiny_policy("llama")
    assert ids(sampled(policy, draw=other)) != ids(sampled(policy))


def test_the_samples_of_a_group_differ():
    for group in sampled(tiny_policy("llama")):
        assert len({completion.token_ids for completion in group}) == SETTINGS.group_size


@pytest.mark.parametrize("batch_size", [1, 4, 5, 8])
def test_a_small_batch_gives_the_ids_of_a_large_one(batch_size):
    policy = tiny_policy("llama", eos_ids=ENDING)
    assert_same(sampled(policy, batch_size=batch_size), sampled(policy))


def test_no_prompts_give_no_groups():
    assert sampled(tiny_policy("llama"), texts=()) == []


def test_every_eos_id_ends_a_completion_and_is_its_last_token():
    eos_ids = {20, 50}
    policy = tiny_policy("llama", eos_ids=sorted(eos_ids))
    policy = replace(policy, eos_ids=frozenset(eos_ids))
    completions = [c for group in sampled(policy, settings=replace(SETTINGS, group_size=16)) for c in group]
    assert {StopReason.EOS, StopReason.LENGTH} == {completion.stop_reason for completion in completions}
    for completion in completions:
        *before, last = completion.token_ids
        assert not eos_ids & set(before)
        assert len(completion.sampler_logprobs) == len(completion.token_ids) == len(completion.sampled)
        assert all(value < 0 for value in completion.sampler_logprobs) and all(completion.sampled)
        assert (last in eos_ids) == (completion.stop_reason is StopReason.EOS) != completion.truncated
        if completion.truncated:
            assert len(completion.token_ids) == SETTINGS.max_new_tokens
    assert {c.token_ids[-1] for c in completions if not c.truncated} == eos_ids


def test_an_eos_at_the_limit_is_no_truncation():
    policy = tiny_policy("llama", eos_ids=range(99))
    for group in sampled(policy, settings=replace(SETTINGS, max_new_tokens=1)):
        assert all(c.stop_reason is StopReason.EOS and len(c.token_ids) == 1 for c in group)


def test_a_lower_limit_cuts_the_same_completions():
    policy = tiny_policy("llama", eos_ids=ENDING)
    short, long = sampled(policy, settings=replace(SETTINGS, max_new_tokens=5)), sampled(policy)
    for group, whole in zip(ids(short), ids(long), strict=True):
        assert group == [token_ids[:5] for token_ids in whole]


def test_the_longest_prompt_may_fill_the_context():
    policy = tiny_policy("gpt2")
    prompt: Prompt = prompts_of(policy, ["1" * 245])[0]
    settings = SamplingSettings(group_size=2, temperature=1.0, max_new_tokens=policy.context - len(prompt.token_ids))
    groups = TorchEngine(policy, batch_size=4).generate([prompt], settings, DRAW)
    assert [len(token_ids) for token_ids in ids(groups)[0]] == [10, 10]


def test_text_is_what_the_ids_say_without_special_tokens():
    policy = tiny_policy("llama", eos_ids=ENDING)
    for group in sampled(policy):
        for completion in group:
            assert completion.text == policy.tokenizer.decode(list(completion.token_ids), skip_special_tokens=True)


def test_loaded_weights_are_sampled_from_and_stamped():
    first, second = tiny_policy("llama", seed=0), tiny_policy("llama", seed=1)
    engine = TorchEngine(first, batch_size=1024)
    prompts = prompts_of(first, TEXTS)
    before = engine.generate(prompts, SETTINGS, DRAW)
    assert {c.policy_version for group in before for c in group} == {0}
    engine.load_weights(second, version=7)
    after = engine.generate(prompts, SETTINGS, DRAW)
    assert {c.policy_version for group in after for c in group} == {7}
    assert ids(after) == ids(sampled(second)) != ids(before)


def test_sampling_moves_no_global_random_numbers():
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    sampled(tiny_policy("llama"))
    assert torch.rand(1) == expected


def drawn(probabilities: list[float], values: list[float]) -> list[int]:
    logprobs_RV = torch.tensor([probabilities], dtype=torch.float64).log().float().expand(len(values), -1)
    return inverse_distribution(logprobs_RV, torch.tensor(values, dtype=torch.float64)).tolist()


def test_the_inverse_distribution_by_hand():
    below_one = np.nextafter(1.0, 0.0)
    assert drawn([0.25, 0.5, 0.25], [0.0, 0.24, 0.26, 0.74, 0.76, below_one]) == [0, 0, 1, 1, 2, 2]
    assert drawn([0.0, 0.5, 0.0, 0.5, 0.0], [0.0, 0.49, 0.51, below_one]) == [1, 1, 3, 3]
    assert drawn([0.0, 0.0, 1.0], [0.0, below_one]) == [2, 2]


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 1e-30, 1e-7, 0.1, 1.0, 3.0]), min_size=1, max_size=40).filter(any),
    st.one_of(st.floats(0, 1, exclude_max=True), st.sampled_from([0.0, float(np.nextafter(1.0, 0.0))])),
)
def test_a_token_of_no_probability_is_never_drawn(weights, uniform):
    total = sum(weights)
    (token,) = drawn([weight / total for weight in weights], [uniform])
    assert weights[token] > 0


def test_frequencies_are_the_probabilities():
    probabilities = [0.4, 0.3, 0.2, 0.09, 0.01]
    count = 20_000
    values = np.random.default_rng(0).random(count).tolist()
    observed = np.bincount(drawn(probabilities, values), minlength=5)
    expected = np.array(probabilities) * count
    # The 99.9 % point of chi-square with 4 degrees of freedom.
    assert ((observed - expected) ** 2 / expected).sum() < 18.47
    assert ((observed[::-1] - expected) ** 2 / expected).sum() > 18.47


def test_a_rare_token_after_a_nearly_certain_one_is_not_lost():
    # In float32 the sum 1 + 1e-9 is 1, and the second token could never be drawn.
    assert drawn([1.0, 1e-9], [1 - 3e-9, 1 - 5e-10]) == [0, 1]
    assert drawn([1e-9, 1.0], [5e-10, 3e-9]) == [0, 1]


def kept_by_hand(probabilities: list[float], top_k: int, top_p: float) -> list[float]:
    """The distribution that is left, token by token: a twin without tensors."""
    ranked = sorted(range(len(probabilities)), key=lambda token: (-probabilities[token], token))
    ranked = ranked[: top_k or None]
    total = sum(probabilities[token] for token in ranked)
    kept: list[int] = []
    for token in ranked:
        if sum(probabilities[other] for other in kept) / total < top_p:
            kept.append(token)
    mass = sum(probabilities[token] for token in kept)
    return [probability / mass if token in kept else 0.0 for token, probability in enumerate(probabilities)]


def kept(probabilities: list[float], top_k: int, top_p: float) -> list[float]:
    return most_likely(torch.tensor([probabilities], dtype=torch.float64).log(), top_k, top_p)[0].exp().tolist()


def test_the_most_likely_tokens_by_hand():
    probabilities = [0.1, 0.4, 0.2, 0.3]
    assert kept(probabilities, 2, 1.0) == pytest.approx([0, 4 / 7, 0, 3 / 7])
    assert kept(probabilities, 0, 0.69) == pytest.approx([0, 4 / 7, 0, 3 / 7])
    assert kept(probabilities, 0, 0.71) == pytest.approx([0, 4 / 9, 2 / 9, 3 / 9])
    assert kept(probabilities, 9, 1.0) == pytest.approx(probabilities)
    assert kept(probabilities, 0, 1e-9) == kept(probabilities, 1, 1.0) == [0, 1, 0, 0]
    assert kept([0.25] * 4, 2, 1.0) == pytest.approx([0.5, 0.5, 0, 0]), "of equal ones the smaller ids"


def test_top_k_comes_before_top_p():
    """Of the two most likely the first has 4/7 > 0.5 of what is left, but only 0.4 of everything."""
    assert kept([0.1, 0.4, 0.2, 0.3], 2, 0.5) == [0, 1, 0, 0]
    assert kept([0.1, 0.4, 0.2, 0.3], 0, 0.5) == pytest.approx([0, 4 / 7, 0, 3 / 7])


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=12),
    st.integers(0, 13),
    # Never a quotient of small numbers, so that rounding decides nothing.
    st.integers(0, 999).map(lambda thousandth: (thousandth + 1 / math.pi) / 1000),
)
def test_what_is_left_is_what_the_definition_says(weights, top_k, top_p):
    total = sum(weights)
    probabilities = [weight / total for weight in weights]
    left = kept(probabilities, top_k, top_p)
    assert left == pytest.approx(kept_by_hand(probabilities, top_k, top_p))
    assert sum(left) == pytest.approx(1.0)


@pytest.mark.parametrize(("top_k", "top_p"), [(5, 1.0), (0, 0.6), (20, 0.6), (3, 0.95), (1, 1.0), (50, 0.05)])
def test_what_is_left_is_what_hugging_face_leaves(top_k, top_p):
    logits_RV = torch.randn(8, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
    expected_RV = logits_RV
    if top_k:
        expected_RV = TopKLogitsWarper(top_k)(torch.zeros(8, 1), expected_RV)
    if top_p < 1:
        expected_RV = TopPLogitsWarper(top_p)(torch.zeros(8, 1), expected_RV)
    found_RV = most_likely(logits_RV.log_softmax(-1), top_k, top_p)
    torch.testing.assert_close(found_RV.exp(), expected_RV.softmax(-1))


@pytest.mark.parametrize(("top_k", "top_p"), [(3, 1.0), (0, 0.3), (10, 0.8)])
def test_tokens_are_drawn_from_what_is_left_and_their_log_probabilities_are_its(top_k, top_p):
    policy = tiny_policy("llama")
    cut = SamplingSettings(group_size=4, temperature=0.7, max_new_tokens=8, top_k=top_k, top_p=top_p)
    prompt = prompts_of(policy, TEXTS)[1]
    group = sampled(policy, settings=cut)[1]
    for attempt, completion in enumerate(group):
        drawn = uniforms(DRAW.seed, DRAW.step, DRAW.purpose, [f"{prompt.problem.id}/{attempt}"], 8)[0]
        for t, token in enumerate(completion.token_ids):
            whole = torch.softmax(logits_after(policy, prompt.token_ids + completion.token_ids[:t]) / 0.7, -1)
            left = torch.tensor(kept_by_hand(whole.tolist(), top_k, top_p), dtype=torch.float64)
            assert token == int((left.cumsum(-1) <= drawn[t] * left.sum()).sum())
            assert completion.sampler_logprobs[t] == pytest.approx(left[token].log().item(), abs=1e-4)
    whole_ids = [completion.token_ids for completion in sampled(policy, settings=replace(cut, top_k=0, top_p=1.0))[1]]
    assert [completion.token_ids for completion in group] != whole_ids


def test_with_all_tokens_left_nothing_changes():
    logprobs_RV = torch.randn(3, 40).log_softmax(-1)
    assert most_likely(logprobs_RV, 0, 1.0) is logprobs_RV
    torch.testing.assert_close(most_likely(logprobs_RV, 40, 1.0), logprobs_RV)


def test_the_most_likely_token_has_its_own_log_probability_whatever_is_left():
    policy = tiny_policy("llama")
    greedy = replace(SETTINGS, temperature=0.0)
    assert sampled(policy, settings=replace(greedy, top_k=1, top_p=0.1)) == sampled(policy, settings=greedy)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group_size", 0),
        ("temperature", -0.1),
        ("temperature", float("inf")),
        ("temperature", float("nan")),
        ("max_new_tokens", 0),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("top_p", float("nan")),
        ("top_k", -1),
    ],
)
def test_settings_that_cannot_be_are_refused(name, value):
    with pytest.raises(RecipeError, match=rf"{name}: {value} cannot be"):
        replace(SETTINGS, **{name: value})
