"""Which weights sample a batch, which problems go into it, and what becomes of those without signal."""

import pytest
from tests.training.runs import RANDOM, SAME, SAMPLING, Witness

from earned.assembly import training_of
from earned.errors import RecipeError
from earned.policy.load import fingerprint
from earned.training.loop import train
from earned.training.progress import Progress


@pytest.fixture
def run_of(assembled_of):
    """Run a recipe to its end; return its parts, every outcome, and where it ended."""

    def run(rewards=RANDOM, **changes):
        parts, witness = assembled_of(rewards, **changes), Witness()
        return parts, witness.outcomes, train(training_of(parts, witness), Progress())

    return run


def versions(outcome):
    return {rollout.completion.policy_version for group in outcome.groups for rollout in group.rollouts}


@pytest.mark.parametrize("lag", [0, 1, 2, 9])
def test_batch_k_is_sampled_by_the_weights_lag_versions_older(run_of, lag):
    _, outcomes, end = run_of(steps=6, sampling={**SAMPLING, "max_policy_lag": lag})
    assert [versions(outcome) for outcome in outcomes] == [{max(0, k - 1 - lag)} for k in range(1, 7)]
    assert [len(outcome.progress.pending) for outcome in outcomes] == [min(lag, 6 - k) for k in range(1, 7)]
    assert end.pending == () and end.step == 6


def test_a_lag_changes_what_is_learned_but_not_which_problems_are_tried(run_of):
    at_once, lagging = (run_of(sampling={**SAMPLING, "max_policy_lag": lag}) for lag in (0, 1))
    tried = [[[g.prompt.problem.id for g in o.groups] for o in outcomes] for _, outcomes, _ in (at_once, lagging)]
    assert tried[0] == tried[1]
    assert fingerprint(at_once[0].policy) != fingerprint(lagging[0].policy)


def test_samples_of_older_weights_show_in_the_measured_mismatch(run_of):
    key = "sampler/logprob_difference_max"
    optim = {"learning_rate": 1e-2, "warmup_steps": 0}
    _, at_once, _ = run_of(optim=optim)
    _, lagging, _ = run_of(optim=optim, sampling={**SAMPLING, "max_policy_lag": 1})
    assert max(outcome.report.metrics[key] for outcome in at_once) < 1e-4
    assert lagging[0].report.metrics[key] < 1e-4, "the first batch is of the first weights whatever the lag"
    assert min(outcome.report.metrics[key] for outcome in lagging[1:]) > 1e-2
    assert all(0 < outcome.report.metrics["sampler/effective_sample_share"] <= 1 for outcome in lagging)


def test_a_lag_without_a_correction_is_refused(assembled_of):
    with pytest.raises(RecipeError, match=r"max_policy_lag: 1, but 'grpo' does not correct .*sampler_correction"):
        assembled_of(RANDOM, algorithm={"name": "grpo"}, sampling={**SAMPLING, "max_policy_lag": 1})


def test_groups_without_signal_are_replaced_by_other_problems(run_of):
    _, outcomes, _ = run_of(algorithm={"name": "default", "refill_rounds": 3}, sampling={**SAMPLING, "group_size": 2})
    assert any(outcome.discarded for outcome in outcomes)
    for outcome in outcomes:
        tried = [group.prompt.problem.id for group in (*outcome.groups, *outcome.discarded)]
        assert len(set(tried)) == len(tried), "nothing is tried twice in a step"
        assert all(len({r.score.value for r in group.rollouts}) == 1 for group in outcome.discarded)
        assert all(len({r.score.value for r in group.rollouts}) > 1 for group in outcome.groups)
        assert len(outcome.groups) <= 3


def test_a_filter_that_refuses_every_group_ends_at_its_bound(run_of):
    """Never a silent hang: three prompts and two refills are nine tried problems, and the step taught nothing."""
    _, outcomes, end = run_of(SAME, steps=2, algorithm={"name": "default", "refill_rounds": 2})
    assert [len(outcome.discarded) for outcome in outcomes] == [9, 9]
    assert all(outcome.groups == () and outcome.report.empty for outcome in outcomes)
    assert end.empty_steps == 2 and end.policy_version == 0


def test_a_refill_ends_when_no_problem_is_left(run_of):
    _, outcomes, _ = run_of(SAME, steps=1, algorithm={"name": "default", "refill_rounds": 50})
    assert len(outcomes[0].discarded) == 12, "all the training problems, each once"


def test_a_curriculum_counts_every_attempt_and_parks_what_is_never_solved(run_of):
    refused = {"answer": {"check": "number"}, "luck": {"check": "random", "weight": 0.5}, "allow": ["random_reward"]}
    _, outcomes, end = run_of(refused, steps=6, curriculum={"park_after": 4, "recheck_share": 0.0})
    tried = [group.prompt.problem.id for outcome in outcomes[:4] for group in outcome.groups]
    never_solved = {name for name, tally in end.curriculum.tallies.items() if tally.right == 0}
    assert len(tried) == 12 and sum(tally.attempts for tally in end.curriculum.tallies.values()) == 6 * 12
    assert len(set(tried) & never_solved) == len(never_solved), "a parked problem is not tried again before the others"
