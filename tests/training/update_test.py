"""What an update does to the weights, and what it says about it."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from earned.algorithms.named import resolve
from earned.errors import EngineError
from earned.policy.logprobs import token_scores
from earned.rollouts.batching import TrainingRow, token_batch
from earned.training.advantages import group_advantages
from earned.vocabulary import StopReason

DEFAULT = resolve("default")


def with_sampler_logprobs(rollout, values):
    (segment,) = rollout.completion.segments
    segment = replace(segment, sampler_logprobs=tuple(values))
    return replace(rollout, completion=replace(rollout.completion, segments=(segment,)))


def with_rollouts(group, rollouts):
    return replace(group, rollouts=tuple(rollouts))


def fresh_logprobs(bench, group, rollout):
    """The completion's log-probabilities under the weights as they are now, one row alone."""
    batch = token_batch(
        [TrainingRow(rollout=rollout, prompt=group.prompt, advantages=torch.ones(rollout.completion.length))],
        bench.policy.device,
    )
    with torch.no_grad():
        scores = token_scores(bench.policy.model, batch.token_ids_BT, batch.trained_BT, 0.9)
    return batch.completion_values(scores.logprobs_BT)[0]


def on_policy(bench, groups):
    """The same groups with the sampler log-probabilities that the trainer itself gives."""
    return tuple(
        with_rollouts(
            group, [with_sampler_logprobs(rollout, fresh_logprobs(bench, group, rollout)) for rollout in group.rollouts]
        )
        for group in groups
    )


def test_without_any_advantage_nothing_is_computed(bench_of, groups_of):
    bench = bench_of(groups_of([[1.0, 1.0], [0.0, 0.0]]))
    before = bench.weights
    advantages = group_advantages(bench.groups, DEFAULT)
    assert set(advantages.values()) == {0.0}
    report = bench.update(advantages)
    assert report.updates == 0 and report.details == ()
    assert report.metrics == {"update/empty": 1.0, "update/trained_rows_share": 0.0}
    assert torch.equal(bench.weights, before) and not bench.optimizer.gradients
    assert bench.update({**advantages, "train/1/p0/0": 1e-3}).updates == 1, "one advantage is enough"
    assert not torch.equal(bench.weights, before)


def test_an_ordinary_update_moves_the_weights_and_reports_it(bench_of, mixed_groups):
    bench = bench_of(mixed_groups)
    before = bench.weights
    report = bench.update(group_advantages(mixed_groups, DEFAULT), learning_rate=2e-3)
    assert report.updates == 1 and not torch.equal(bench.weights, before)
    metrics = report.metrics
    assert metrics["update/empty"] == 0 and metrics["update/skipped"] == 0 and metrics["update/learning_rate"] == 2e-3
    assert metrics["update/trained_rows_share"] == 8 / 12, "the group of equal rewards was left out"
    assert metrics["update/grad_norm"] == pytest.approx(float(bench.optimizer.gradients[0].norm()), rel=1e-5)
    assert metrics["update/weights_changed_share"] > 0.5
    trained = {detail.rollout_id for detail in report.details}
    assert trained == {rollout.id for place in (0, 2) for rollout in mixed_groups[place].rollouts}


def test_a_learning_rate_of_zero_changes_nothing_and_says_so(bench_of, mixed_groups):
    bench = bench_of(mixed_groups)
    before = bench.weights
    report = bench.update(group_advantages(mixed_groups, DEFAULT), learning_rate=0.0)
    assert torch.equal(bench.weights, before) and report.metrics["update/weights_changed_share"] == 0


def test_a_completion_with_a_good_advantage_becomes_likelier(bench_of, groups_of):
    bench = bench_of(groups_of([[1.0, 0.0]]))
    good, bad = bench.groups[0].rollouts
    before = [sum(fresh_logprobs(bench, bench.groups[0], rollout)) for rollout in (good, bad)]
    bench.update(group_advantages(bench.groups, DEFAULT), learning_rate=1e-4)
    after = [sum(fresh_logprobs(bench, bench.groups[0], rollout)) for rollout in (good, bad)]
    assert after[0] > before[0] and after[1] < before[1]


def test_with_one_update_the_ratio_is_exactly_one(bench_of, mixed_groups):
    report = bench_of(mixed_groups).update(group_advantages(mixed_groups, DEFAULT))
    assert report.metrics["update/ratio_deviation_max"] == 0 and report.metrics["update/approx_kl_nats"] == 0
    assert {ratio for detail in report.details for ratio in detail.ratio} == {1.0}


def test_four_updates_a_batch_share_the_log_probabilities_from_before_the_first(bench_of, groups_of):
    groups = groups_of([[1.0, 0.0, 1.0, 0.0]] * 4)
    bench = bench_of(groups, resolve("default", mini_batches=4))
    expected = {r.id: fresh_logprobs(bench, group, r) for group in groups for r in group.rollouts}
    report = bench.update(group_advantages(groups, DEFAULT))
    assert report.updates == 4
    before_each = [*bench.optimizer.weights, bench.weights]
    assert all(not torch.equal(first, second) for first, second in pairwise(before_each))
    assert report.metrics["update/ratio_deviation_max"] > 1e-3 and report.metrics["update/approx_kl_nats"] > 0
    for detail in report.details:
        assert detail.old_logprobs == pytest.approx(expected[detail.rollout_id], abs=1e-5)
    moved = [detail for detail in report.details if detail.rollout_id.startswith("train/1/p3/")]
    assert all(max(abs(ratio - 1) for ratio in detail.ratio) > 1e-3 for detail in moved), "the last of four moved most"


def test_a_second_pass_is_clipped_when_the_first_went_far(bench_of, groups_of):
    (group,) = groups_of([[1.0, 0.0, 1.0, 0.0]])
    twins = (group, replace(group, rollouts=tuple(replace(r, id=r.id + "/again") for r in group.rollouts)))
    advantages = group_advantages(twins, DEFAULT)
    far = bench_of(twins, resolve("default", mini_batches=2)).update(advantages, learning_rate=3e-2)
    assert far.metrics["update/clipped_share"] > 0
    assert any(any(detail.clipped) for detail in far.details)
    near = bench_of(twins, resolve("default", mini_batches=2)).update(advantages, learning_rate=1e-6)
    assert near.metrics["update/clipped_share"] == 0


def test_weights_that_are_not_numbers_skip_the_update(bench_of, mixed_groups):
    bench = bench_of(mixed_groups)
    advantages = group_advantages(mixed_groups, DEFAULT)
    name, poisoned = next(iter(bench.policy.parameters().items()))
    with torch.no_grad():
        poisoned[5, 0] = float("nan")
    others = {key: value.detach().clone() for key, value in bench.policy.parameters().items() if key != name}
    report = bench.update(advantages)
    assert report.updates == 0 and report.metrics["update/skipped"] == 1 and report.metrics["update/empty"] == 0
    assert all(torch.equal(bench.policy.parameters()[key], value) for key, value in others.items())
    bench.update(advantages)
    with pytest.raises(EngineError, match=r"3 updates in a row had a gradient that is not finite"):
        bench.update(advantages)


def test_at_the_start_the_policy_is_its_reference(bench_of, mixed_groups):
    for name in ("k2", "k3"):
        algorithm = resolve("default", divergence=name, divergence_weight=0.04)
        report = bench_of(mixed_groups, algorithm).update(group_advantages(mixed_groups, algorithm))
        assert report.metrics["divergence/reference_nats"] == pytest.approx(0, abs=1e-6)
        assert report.metrics["update/trained_rows_share"] == 1, "a divergence touches rows without advantage too"


@pytest.mark.parametrize("name", ["k2", "k3"])
def test_a_divergence_brings_the_weights_back(bench_of, groups_of, name):
    algorithm = resolve("default", divergence=name, divergence_weight=1.0)
    bench = bench_of(groups_of([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]), algorithm)
    away = bench.weights
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in bench.policy.parameters().values():
            parameter += 0.02 * torch.randn(parameter.shape, generator=generator)
    away = bench.weights - away
    no_advantages = group_advantages(bench.groups, algorithm)
    assert set(no_advantages.values()) == {0.0}
    nats = [bench.update(no_advantages).metrics["divergence/reference_nats"] for _ in range(20)]
    assert nats[0] > 1e-3 and nats[-1] < nats[0] / 3
    assert float(bench.optimizer.gradients[0] @ away) > 0, "downhill is towards the reference"
    assert bench_of(bench.groups).update(no_advantages).updates == 0, "without it such rewards teach nothing"


def test_one_group_keeps_its_log_probabilities_after_the_update(bench_of, mixed_groups):
    bench = bench_of(mixed_groups)
    report = bench.update(group_advantages(mixed_groups, DEFAULT))
    kept = [detail for detail in report.details if detail.after_logprobs is not None]
    (problem,) = {detail.rollout_id.split("/")[2] for detail in kept}
    group = next(group for group in mixed_groups if group.prompt.problem.id == problem)
    assert {detail.rollout_id for detail in kept} == {rollout.id for rollout in group.rollouts}
    for detail in kept:
        rollout = next(rollout for rollout in group.rollouts if rollout.id == detail.rollout_id)
        assert detail.after_logprobs == pytest.approx(fresh_logprobs(bench, group, rollout), abs=1e-5)
        assert detail.after_logprobs != pytest.approx(detail.old_logprobs, abs=1e-5), "the update changed them"


def test_details_are_the_completion_token_by_token(bench_of, mixed_groups):
    bench = bench_of(mixed_groups)
    fresh = {rollout.id: fresh_logprobs(bench, group, rollout) for group in mixed_groups for rollout in group.rollouts}
    for detail in bench.update(group_advantages(mixed_groups, DEFAULT)).details:
        assert detail.old_logprobs == pytest.approx(fresh[detail.rollout_id], abs=1e-5)
        assert len(detail.entropy) == len(detail.ratio) == len(detail.clipped) == len(detail.old_logprobs)
        assert all(4 < nats < 4.6 for nats in detail.entropy), "an untrained model is near log 99 = 4.595"


def test_the_sampler_correction_is_capped(bench_of, groups_of):
    bench = bench_of(groups_of([[1.0, 0.0, 1.0, 0.0]]), dtype=torch.float64)
    exact = on_policy(bench, bench.groups)
    off = [
        with_sampler_logprobs(rollout, [value - torch.tensor(3.0).log().item() for value in logprobs])
        for rollout in exact[0].rollouts
        if (logprobs := rollout.completion.sampler_logprobs)
    ]
    advantages = group_advantages(exact, DEFAULT)
    threefold = (with_rollouts(exact[0], off),)
    one, two = (bench_of(groups, dtype=torch.float64) for groups in (exact, threefold))
    ratio = two.gradient(advantages).norm() / one.gradient(advantages).norm()
    assert float(ratio) == pytest.approx(2, rel=1e-5), "three times likelier counts twice"
    assert torch.allclose(two.optimizer.gradients[0], 2 * one.optimizer.gradients[0], rtol=1e-4, atol=1e-7)
    uncorrected = resolve("default", sampler_correction_cap=10.0)
    wide = bench_of(threefold, uncorrected, dtype=torch.float64)
    assert float(wide.gradient(advantages).norm() / one.gradient(advantages).norm()) == pytest.approx(3, rel=1e-5)


def test_the_sampler_metrics_are_hand_numbers(bench_of, groups_of):
    bench = bench_of(groups_of([[1.0, 0.0]]))
    exact = on_policy(bench, bench.groups)
    one, two = exact[0].rollouts
    shifted = with_sampler_logprobs(one, [value - 1.0 for value in one.completion.sampler_logprobs])
    advantages = group_advantages(exact, DEFAULT)
    bench = bench_of((with_rollouts(exact[0], [shifted, two]),))
    metrics = bench.update(advantages).metrics
    n, m = len(one.completion.token_ids), len(two.completion.token_ids)
    assert metrics["sampler/logprob_difference_mean"] == pytest.approx(n / (n + m), abs=1e-5)
    assert metrics["sampler/logprob_difference_max"] == pytest.approx(1, abs=1e-5)
    assert metrics["sampler/capped_share"] == pytest.approx(n / (n + m)), "exp(1) is above the cap of 2"
    worth = (2 * n + m) ** 2 / ((n + m) * (4 * n + m))
    assert metrics["sampler/effective_sample_share"] == pytest.approx(worth, abs=1e-5)
    clean = bench_of(exact).update(advantages).metrics
    assert clean["sampler/logprob_difference_max"] < 1e-5 and clean["sampler/capped_share"] == 0


def test_truncated_completions_and_end_of_sequence_are_in_the_groups(mixed_groups):
    reasons = {rollout.completion.stop_reason for group in mixed_groups for rollout in group.rollouts}
    assert reasons == {StopReason.EOS, StopReason.LENGTH}, "what the other tests rely on"
