"""A run that was interrupted and went on ends with the same weights, to the bit, as one that was not."""

import pytest
from tests.training.runs import RANDOM, SAMPLING, Witness

from earned.assembly import training_of, training_prompts
from earned.policy.load import fingerprint
from earned.training.checkpoints import load_progress, save_checkpoint
from earned.training.loop import train
from earned.training.progress import Progress

CHANGES = {
    "plain": {},
    "ppo": {"algorithm": {"name": "ppo", "mini_batches": 2}, "critic": {"warmup_steps": 1}},
    "lag 1": {"sampling": {**SAMPLING, "max_policy_lag": 1}},
    "refill": {"algorithm": {"name": "dapo", "mini_batches": 1}},
    "curriculum": {"curriculum": {"park_after": 4}},
    "adapted divergence": {
        "algorithm": {
            "name": "rloo",
            "divergence": "k1",
            "divergence_in": "reward",
            "divergence_weight": 0.05,
            "divergence_target": 0.5,
        }
    },
}


def run(parts, folder, progress, *, stop_after=None):
    """Train on, and save after the second step."""
    witness = Witness(
        save_at=(2,),
        stop_after=stop_after,
        saver=lambda reached: save_checkpoint(folder, parts.learners, reached, keep_last=1),
    )
    return train(training_of(parts, witness), progress)


@pytest.mark.parametrize("kind", CHANGES)
def test_going_on_from_a_checkpoint_is_the_same_run_to_the_bit(kind, assembled_of, tmp_path):
    whole = assembled_of(RANDOM, **CHANGES[kind])
    ended = run(whole, tmp_path / "whole", Progress())

    first = assembled_of(RANDOM, **CHANGES[kind])
    half = run(first, tmp_path / "half", Progress(), stop_after=2)
    assert half.step == 2 and fingerprint(first.policy) != fingerprint(whole.policy)

    checkpoint = tmp_path / "half" / "step_000002"
    again = assembled_of(RANDOM, continued=str(checkpoint), **CHANGES[kind])
    progress = load_progress(checkpoint, again.learners, training_prompts(again))
    assert progress == half
    assert run(again, tmp_path / "again", progress) == ended
    assert fingerprint(again.policy) == fingerprint(whole.policy)
    if whole.critic is not None and again.critic is not None:
        mine, other = (dict(parts.critic.model.trainable()) for parts in (again, whole))
        assert all(bool((mine[name] == other[name]).all()) for name in other)


def test_a_checkpoint_of_a_lagging_run_holds_the_batch_that_waits(assembled_of, tmp_path):
    parts = assembled_of(RANDOM, **CHANGES["lag 1"])
    run(parts, tmp_path, Progress(), stop_after=2)
    progress = load_progress(tmp_path / "step_000002", parts.learners, training_prompts(parts))
    assert [batch.step for batch in progress.pending] == [3]
    assert {r.completion.policy_version for group in progress.pending[0].groups for r in group.rollouts} == {1}
