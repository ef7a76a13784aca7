"""The order of things in a run, and the counters that carry it from step to step."""

from dataclasses import replace

import pytest
from tests.training.runs import RANDOM, SAME, Witness

from earned.algorithms.named import resolve
from earned.assembly import training_of as training_of_parts
from earned.policy.load import fingerprint
from earned.training.clock import Clock
from earned.training.loop import advanced, due, train
from earned.training.progress import Batch, Progress
from earned.training.update import UpdateReport


@pytest.fixture
def training_of(assembled_of):
    def build(witness, rewards=RANDOM, **changes):
        return training_of_parts(assembled_of(rewards, **changes), witness)

    return build


def test_the_order_of_a_run(training_of):
    witness = Witness(save_at=(2, 4))
    assert train(training_of(witness), Progress()).step == 4
    assert witness.calls == [
        "evaluate 0",
        "record 1",
        "evaluate 2",
        "record 2",
        "save 2",
        "record 3",
        "evaluate 4",
        "record 4",
        "save 4",
    ]
    assert witness.saved == [witness.outcomes[1].progress, witness.outcomes[3].progress]


def test_the_last_step_is_always_evaluated(training_of):
    witness = Witness()
    train(training_of(witness, steps=3), Progress())
    assert [call for call in witness.calls if "evaluate" in call] == ["evaluate 0", "evaluate 2", "evaluate 3"]


def test_going_on_repeats_nothing(training_of):
    witness = Witness()
    train(training_of(witness), Progress(step=3, policy_version=3))
    assert witness.calls == ["evaluate 4", "record 4"]
    assert {r.completion.policy_version for group in witness.outcomes[0].groups for r in group.rollouts} == {3}
    assert train(training_of(Witness()), Progress(step=4)) == Progress(step=4), "a finished run does nothing"


def test_a_stop_request_ends_the_run_after_the_step(training_of):
    witness = Witness(stop_after=2)
    assert train(training_of(witness), Progress()).step == 2
    assert witness.calls[-1] == "record 2"
    witness = Witness(stop_after=0)
    assert train(training_of(witness), Progress()) == Progress() and witness.calls == ["evaluate 0"]


def test_a_step_samples_with_the_weights_of_the_one_before(training_of):
    witness = Witness()
    training = training_of(witness)
    before = fingerprint(training.policy)
    train(training, Progress())
    versions = [
        {r.completion.policy_version for group in outcome.groups for r in group.rollouts}
        for outcome in witness.outcomes
    ]
    assert versions == [{0}, {1}, {2}, {3}]
    assert [outcome.progress.policy_version for outcome in witness.outcomes] == [1, 2, 3, 4]
    assert fingerprint(training.policy) != before


def test_an_outcome_holds_every_rollout_under_the_id_of_its_step(training_of):
    witness = Witness()
    train(training_of(witness), Progress())
    for step, outcome in enumerate(witness.outcomes, start=1):
        rollouts = [rollout for group in outcome.groups for rollout in group.rollouts]
        assert len(rollouts) == 12 == len(outcome.advantages)
        assert all(rollout.id.startswith(f"train/{step}/") for rollout in rollouts)
        assert set(outcome.seconds) - {"evaluate"} == {"sample", "score", "update", "total"}
        assert ("evaluate" in outcome.seconds) == (step % 2 == 0)
        parts = sum(value for part, value in outcome.seconds.items() if part != "total")
        assert parts <= outcome.seconds["total"] + 1e-6


def test_rewards_that_are_all_equal_are_empty_steps(training_of):
    witness = Witness()
    training = training_of(witness, SAME)
    before = fingerprint(training.policy)
    assert train(training, Progress(empty_steps=3)) == Progress(step=4, policy_version=0, empty_steps=7)
    assert [outcome.progress.empty_steps for outcome in witness.outcomes] == [4, 5, 6, 7]
    assert fingerprint(training.policy) == before


def test_one_update_ends_a_row_of_empty_steps():
    empty, useful = (UpdateReport(updates=n, empty=n == 0, metrics={}, details=()) for n in (0, 4))
    pending = Batch(step=6, groups=()), Batch(step=7, groups=())
    progress = Progress(step=5, policy_version=8, empty_steps=2, pending=pending)
    once = advanced(progress, empty, resolve("default"))
    assert once == Progress(step=6, policy_version=8, empty_steps=3, pending=pending[1:])
    twice = advanced(once, useful, resolve("default"))
    assert twice == Progress(step=7, policy_version=12, empty_steps=0)


def test_due_every_so_often_and_at_the_end():
    assert [step for step in range(1, 11) if due(step, 4, 10)] == [4, 8, 10]
    assert [step for step in range(1, 5) if due(step, 50, 4)] == [4]


def test_the_learning_rate_warms_up(training_of):
    witness = Witness()
    train(training_of(witness), Progress())
    rates = [outcome.report.metrics["update/learning_rate"] for outcome in witness.outcomes]
    assert rates == [5e-4, 1e-3, 1e-3, 1e-3]


def test_the_same_run_twice_is_the_same_run(training_of):
    ends = []
    for seed in (0, 0, 1):
        training = training_of(Witness(), seed=seed)
        train(training, Progress())
        ends.append(fingerprint(training.policy))
    assert ends[0] == ends[1] != ends[2]


def test_a_clock_adds_up_the_parts():
    clock = Clock()
    for _ in range(2):
        with clock.part("score"):
            pass
    first, second = clock.read(), clock.read()
    assert set(first) == {"score", "total"} and 0 <= first["score"] <= first["total"] <= second["total"]
    clock = replace(clock, seconds={"score": 1.5})
    with clock.part("score"):
        pass
    assert clock.read()["score"] >= 1.5
