"""PPO's value model: what it forecasts, how it learns, and what the policy is trained on in its first steps."""

from itertools import pairwise

import pytest
import torch
from tests.training.runs import RANDOM, Witness

from earned.assembly import assigner, forward, training_of
from earned.errors import RecipeError
from earned.policy.load import fingerprint
from earned.training.forward import scored_rows
from earned.training.loop import train
from earned.training.progress import Progress

PPO = {"name": "ppo", "mini_batches": 1}


@pytest.fixture
def parts_of(assembled_of):
    def build(critic=None, algorithm=None, **changes):
        return assembled_of(RANDOM, algorithm=algorithm or PPO, critic=critic or {}, **changes)

    return build


def test_it_forecasts_0_at_first_so_the_advantage_is_the_reward(parts_of, mixed_groups):
    parts = parts_of()
    credit = assigner(parts).assign(mixed_groups, 0.0)
    for group in mixed_groups:
        for rollout in group.rollouts:
            assert not credit.values[rollout.id].any()
            assert credit.by_token[rollout.id].tolist() == [rollout.score.value] * rollout.completion.length
            assert credit.returns[rollout.id].tolist() == [rollout.score.value] * rollout.completion.length


def test_a_missing_end_costs_its_penalty_once(parts_of, mixed_groups):
    credit = assigner(parts_of(algorithm={**PPO, "missing_eos_penalty": 0.25})).assign(mixed_groups, 0.0)
    for group in mixed_groups:
        for rollout in group.rollouts:
            expected = rollout.score.value - (0.25 if rollout.completion.truncated else 0.0)
            assert set(credit.returns[rollout.id].tolist()) == {expected}


def test_an_unscored_attempt_is_not_trained_on(parts_of, groups_of):
    (group,) = groups_of([[1.0, None, 0.0, None]])
    credit = assigner(parts_of()).assign([group], 0.0)
    scored, unscored = group.rollouts[::2], group.rollouts[1::2]
    assert all(not credit.by_token[rollout.id].any() and rollout.id not in credit.values for rollout in unscored)
    assert all(rollout.id in credit.values for rollout in scored)


def test_its_forecasts_learn_the_rewards(parts_of, mixed_groups):
    parts = parts_of(critic={"learning_rate": 1e-2, "updates": 2})
    rows = scored_rows(mixed_groups)
    returns = {row.rollout.id: torch.full((row.rollout.completion.length,), row.rollout.score.value) for row in rows}
    losses, measured = [], {}
    for _ in range(40):
        measured = parts.critic.update(rows, parts.critic.values(rows), returns, 1e-2)
        losses.append(measured["critic/loss"])
    assert losses[-1] < 0.1 * losses[0]
    assert measured["critic/explained_variance"] > 0.8


def test_values_do_not_depend_on_padding_or_micro_batches(parts_of, mixed_groups):
    parts = parts_of()
    with torch.no_grad():
        parts.critic.model.head.weight.normal_()
    rows = scored_rows(mixed_groups)
    together = parts.critic.values(rows)
    for row in rows:
        alone = parts.critic.values([row])[row.rollout.id]
        assert together[row.rollout.id].numpy() == pytest.approx(alone.numpy(), abs=1e-5)


def test_the_first_steps_train_the_value_model_alone(parts_of):
    parts = parts_of(critic={"warmup_steps": 2, "learning_rate": 1e-3})
    before = fingerprint(parts.policy)
    seen = []

    def look(_):
        seen.append((fingerprint(parts.policy), float(parts.critic.model.head.weight.detach().abs().sum())))

    witness = Witness(save_at=(1, 2, 3, 4), saver=look)
    train(training_of(parts, witness), Progress())
    assert [name == before for name, _ in seen] == [True, True, False, False]
    assert all(earlier != later for (_, earlier), (_, later) in pairwise(seen)), "the value model at every step"
    reports = [outcome.report for outcome in witness.outcomes]
    assert all("critic/loss" in report.metrics and not report.empty for report in reports)


def test_the_divergence_of_every_token_is_taken_off_its_own_reward(parts_of, mixed_groups):
    """P2 of PPO with a reference: at lambda 1 the return at t is the reward less what is still to pay."""
    choice = {**PPO, "divergence": "k1", "divergence_in": "reward", "divergence_weight": 0.1}
    parts = parts_of(algorithm=choice)
    with torch.no_grad():
        for parameter in parts.policy.parameters().values():
            parameter.add_(0.01 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    credit = assigner(parts).assign(mixed_groups, 0.1)
    rows = scored_rows(mixed_groups)
    reading = forward(parts.recipe, parts.policy)
    mine = reading.policy_logprobs(rows)
    there = reading.by_rollout(rows, lambda batch: reading.reference_logprobs(parts.reference, batch))
    for row in rows:
        nats = (mine[row.rollout.id] - there[row.rollout.id]).double()
        still_to_pay = nats.flip(0).cumsum(0).flip(0)
        expected = row.rollout.score.value - 0.1 * still_to_pay
        assert credit.returns[row.rollout.id].tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    assert abs(credit.metrics["divergence/completion_nats"]) > 1e-3


@pytest.mark.parametrize(
    ("algorithm", "critic", "message"),
    [
        ({"name": "grpo"}, {"updates": 2}, r"critic: 'grpo' has no value model"),
        ({"name": "ppo", "advantage": "group_relative"}, {}, r"algorithm\.advantage: 'ppo' takes its advantages from"),
    ],
)
def test_what_does_not_go_with_a_value_model_is_refused(parts_of, algorithm, critic, message):
    with pytest.raises(RecipeError, match=message):
        parts_of(critic=critic, algorithm=algorithm)
