"""What the gradient of an update depends on, and what it must not depend on."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn.utils import vector_to_parameters

from earned.algorithms.aggregation import Counts
from earned.algorithms.named import ALGORITHMS, resolve
from earned.rollouts.batching import TokenBatch
from earned.training.advantages import group_advantages, is_trained
from earned.training.update import Updater
from earned.vocabulary import StopReason

DEFAULT = resolve("default")
TEMPERATURE = 0.9
WITH_DIVERGENCE = resolve("grpo", divergence="k3", divergence_weight=0.04)
EVERY_ALGORITHM = [*ALGORITHMS.values(), WITH_DIVERGENCE]
LAYOUTS = {"1x8": 10**6, "8x1": 1, "packed": 100}


def relative_distance(one, other):
    return float((one - other).norm() / one.norm())


def padding_changed(batch: TokenBatch) -> TokenBatch:
    """Other ids in the padding behind every row."""
    token_ids_BT = batch.token_ids_BT.clone()
    for place, row in enumerate(batch.rows):
        token_ids_BT[place, row.length :] = 7
    return replace(batch, token_ids_BT=token_ids_BT)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=str)
@pytest.mark.parametrize("algorithm", EVERY_ALGORITHM, ids=lambda a: a.name + ("+k3" if a.divergence else ""))
def test_the_layout_of_micro_batches_does_not_matter(bench_of, mixed_groups, algorithm, dtype, bound):
    advantages = group_advantages(mixed_groups, algorithm)
    one, *others = (
        bench_of(mixed_groups, algorithm, dtype=dtype, tokens_per_micro_batch=tokens).gradient(advantages)
        for tokens in LAYOUTS.values()
    )
    assert float(one.norm()) > 1e-2
    for other in others:
        assert relative_distance(one, other) < bound


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_nor_does_it_once_the_ratio_has_left_1(bench_of, groups_of, name):
    """Where a surrogate that looked at other rows, or at padding, would show; `gspo` would clip all of this batch."""
    wider = {"clip_low": 0.5, "clip_high": 0.5} if name == "gspo" else {}
    algorithm = replace(resolve(name), mini_batches=1, epochs=2, **wider)
    groups = groups_of([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0]])
    advantages, second = group_advantages(groups, algorithm), []
    for tokens in LAYOUTS.values():
        bench = bench_of(groups, algorithm, dtype=torch.float64, tokens_per_micro_batch=tokens)
        report = bench.update(advantages, learning_rate=1e-3)
        assert report.metrics["update/ratio_deviation_max"] > 1e-2
        second.append(bench.optimizer.gradients[1])
    assert float(second[0].norm()) > 1e-2
    assert all(float((other - second[0]).norm()) <= 1e-8 * float(second[0].norm()) for other in second[1:])


def test_counts_of_a_micro_batch_alone_would_make_the_layout_matter(bench_of, mixed_groups, monkeypatch):
    def of_the_micro_batch(self, batch, counts, *others):
        return original(self, batch, self._counts(batch.rows), *others)

    original = Updater._micro_step
    monkeypatch.setattr(Updater, "_micro_step", of_the_micro_batch)
    advantages = group_advantages(mixed_groups, DEFAULT)
    one, other = (bench_of(mixed_groups, tokens_per_micro_batch=n).gradient(advantages) for n in (10**6, 1))
    assert relative_distance(one, other) > 0.1


@pytest.mark.parametrize("algorithm", EVERY_ALGORITHM, ids=lambda a: a.name + ("+k3" if a.divergence else ""))
def test_rows_that_are_skipped_would_not_have_changed_the_gradient(bench_of, mixed_groups, monkeypatch, algorithm):
    advantages = group_advantages(mixed_groups, algorithm)
    skipping = bench_of(mixed_groups, algorithm, dtype=torch.float64).gradient(advantages)
    monkeypatch.setattr(Updater, "_live", lambda self, row: True)
    computing = bench_of(mixed_groups, algorithm, dtype=torch.float64).gradient(advantages)
    assert relative_distance(skipping, computing) < 1e-10


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "rloo", "default"])
def test_skipped_rows_are_counted_in_the_divisor(bench_of, mixed_groups, monkeypatch, name):
    advantages = group_advantages(mixed_groups, resolve(name))
    counted = bench_of(mixed_groups, name).gradient(advantages)

    def live_only(self, rows):
        rows = [row for row in rows if self._live(row)]
        return Counts(sequences=len(rows), tokens=sum(row.trained_tokens for row in rows), max_length=24)

    monkeypatch.setattr(Updater, "_counts", live_only)
    uncounted = bench_of(mixed_groups, name).gradient(advantages)
    assert relative_distance(counted, uncounted) > 0.1


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_unscored_rollouts_are_as_if_they_were_not_there(bench_of, groups_of, name):
    algorithm = resolve(name)
    with_unscored = groups_of([[1.0, None, 0.5, 1.0, None], [None] * 5, [0.5, 1.0, 1.0, None, 1.0]])
    without = tuple(
        replace(group, rollouts=tuple(rollout for rollout in group.rollouts if rollout.score.value is not None))
        for group in with_unscored
    )
    advantages = group_advantages(with_unscored, algorithm)
    scored_only = {rollout.id: advantages[rollout.id] for group in without for rollout in group.rollouts}
    first, second = bench_of(with_unscored, algorithm), bench_of(without, algorithm)
    report = first.update(advantages, learning_rate=0.0)
    second.update(scored_only, learning_rate=0.0)
    assert torch.equal(first.optimizer.gradients[0], second.optimizer.gradients[0])
    taught = sum(advantage != 0 for advantage in scored_only.values())
    trained = sum(is_trained(rollout, algorithm) for group in without for rollout in group.rollouts)
    assert report.metrics["update/trained_rows_share"] == taught / trained and len(report.details) == taught
    assert len(scored_only) == 7 and trained >= taught >= 5
    wrong = tuple(replace(group, rollouts=tuple(map(as_wrong, group.rollouts))) for group in with_unscored)
    punished = bench_of(wrong, algorithm).gradient(group_advantages(wrong, algorithm))
    assert relative_distance(first.optimizer.gradients[0], punished) > 1e-3, "calling them wrong is something else"


def as_wrong(rollout):
    return replace(rollout, score=replace(rollout.score, value=rollout.score.value or 0.0))


def test_every_sampled_token_is_trained_and_no_other(bench_of, mixed_groups):
    rloo, seen = resolve("rloo"), []

    def keep(policy_BT, *others):
        policy_BT.retain_grad()
        seen.append(policy_BT)
        return rloo.surrogate(policy_BT, *others)

    advantages = group_advantages(mixed_groups, rloo)
    bench_of(mixed_groups, replace(rloo, surrogate=keep)).gradient(advantages)
    (policy_BT,) = seen
    live = [(group, rollout) for group in mixed_groups for rollout in group.rollouts if advantages[rollout.id] != 0]
    starts = [(len(group.prompt.token_ids), rollout) for group, rollout in live]
    starts.sort(key=lambda pair: pair[0] + len(pair[1].completion.token_ids))
    for grad_T, (start, rollout) in zip(policy_BT.grad, starts, strict=True):
        end = start + len(rollout.completion.token_ids)
        assert (grad_T[:start] == 0).all() and (grad_T[end:] == 0).all()
        expected = torch.full((end - start,), -advantages[rollout.id] / 12)
        assert torch.allclose(grad_T[start:end], expected), "the last token too, EOS or cut off"
    assert {rollout.completion.stop_reason for _, rollout in live} == {StopReason.EOS, StopReason.LENGTH}


def test_what_stands_in_the_padding_changes_nothing(bench_of, mixed_groups, monkeypatch):
    advantages = group_advantages(mixed_groups, DEFAULT)
    zeros = bench_of(mixed_groups).gradient(advantages)
    original = Updater._micro_step

    def padded_otherwise(self, batch, *others):
        return original(self, padding_changed(batch), *others)

    monkeypatch.setattr(Updater, "_micro_step", padded_otherwise)
    assert torch.equal(bench_of(mixed_groups).gradient(advantages), zeros)


def test_tokens_that_something_else_wrote_are_read_and_not_trained(bench_of, groups_of):
    (group,) = groups_of([[1.0, 0.0]])
    first, second = group.rollouts
    (segment,) = first.completion.segments
    tool = replace(segment, token_ids=(40, 41, 42), sampled=False, sampler_logprobs=(0.0, 0.0, 0.0))
    answered = replace(first, completion=replace(first.completion, segments=(segment, tool, segment)))
    groups = (replace(group, rollouts=(answered, second)),)
    advantages = group_advantages(groups, DEFAULT)
    bench = bench_of(groups, dtype=torch.float64)
    by_hand = gradient_by_hand(bench, groups, advantages)
    assert relative_distance(bench.gradient(advantages), by_hand) < 1e-6
    written = replace(tool, sampled=True)
    trained = replace(answered, completion=replace(answered.completion, segments=(segment, written, segment)))
    wrong = bench_of((replace(group, rollouts=(trained, second)),), dtype=torch.float64).gradient(advantages)
    assert relative_distance(wrong, by_hand) > 1e-2, "had they been trained"


@pytest.mark.parametrize("divergence_weight", [0.0, 0.5])
def test_the_gradient_is_that_of_the_whole_loss_by_finite_differences(bench_of, groups_of, divergence_weight):
    """Of the second of two updates, where the ratio is not 1, some tokens are clipped and the reference is left."""
    divergence = {"divergence": "k3", "divergence_weight": divergence_weight} if divergence_weight else {}
    algorithm = resolve("default", **divergence)
    groups = groups_of([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    advantages = group_advantages(groups, algorithm)
    bench = bench_of(groups, replace(algorithm, mini_batches=2), dtype=torch.float64)
    with torch.no_grad():
        start = sampled_logprobs(bench.policy.model, groups)
    report = bench.update(advantages, learning_rate=1e-2)
    assert 0.02 < report.metrics["update/clipped_share"] < 0.4
    gradient, weights = bench.optimizer.gradients[1], bench.optimizer.weights[1]

    def loss_at(weights):
        vector_to_parameters(weights, bench.policy.parameters().values())
        with torch.no_grad():
            return float(loss_by_hand(bench.policy.model, groups[1:], advantages, start, divergence_weight))

    def slope(direction, size):
        return (loss_at(weights + size * direction) - loss_at(weights - size * direction)) / (2 * size)

    assert slope(gradient / gradient.norm(), 1e-5) == pytest.approx(float(gradient.norm()), rel=1e-5)
    for index in gradient.abs().topk(5).indices:
        single = torch.zeros_like(gradient)
        single[index] = 1.0
        assert slope(single, 1e-5) == pytest.approx(float(gradient[index]), rel=1e-5)


def sampled_logprobs(model, groups):
    """By rollout id, [sampled tokens], from the model's own logits: an independent way to the same numbers."""
    found = {}
    for group in groups:
        for rollout in group.rollouts:
            completion, start = rollout.completion, len(group.prompt.token_ids)
            token_ids = torch.tensor((*group.prompt.token_ids, *completion.token_ids))
            logprobs_TV = torch.log_softmax(model(input_ids=token_ids[None]).logits[0].double() / TEMPERATURE, dim=-1)
            places = [start + t for t, sampled in enumerate(completion.sampled) if sampled]
            found[rollout.id] = torch.stack([logprobs_TV[place - 1, token_ids[place]] for place in places])
    return found


def loss_by_hand(model, groups, advantages, start, divergence_weight):
    """`default` written out token by token; `start` is both the old policy and the reference."""
    total, tokens = torch.zeros((), dtype=torch.float64), 0
    now = sampled_logprobs(model, groups)
    for rollout in (rollout for group in groups for rollout in group.rollouts):
        completion, advantage = rollout.completion, advantages[rollout.id]
        pairs = zip(completion.sampler_logprobs, completion.sampled, strict=True)
        drawn = [logprob for logprob, sampled in pairs if sampled]
        for logprob, old, sampler in zip(now[rollout.id], start[rollout.id].tolist(), drawn, strict=True):
            ratio = torch.exp(logprob - old)
            surrogate = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage)
            log_ratio = old - logprob
            total = total + surrogate * min(math.exp(old - sampler), 2.0)
            total = total + divergence_weight * (torch.exp(log_ratio) - 1 - log_ratio)
            tokens += 1
    return total / tokens


def gradient_by_hand(bench, groups, advantages):
    """Of the first update, where old and policy are the same."""
    with torch.no_grad():
        old = sampled_logprobs(bench.policy.model, groups)
    loss = loss_by_hand(bench.policy.model, groups, advantages, old, 0.0)
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(bench.policy.parameters().values()))])
