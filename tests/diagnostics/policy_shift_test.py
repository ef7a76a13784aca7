"""How far an update went, by hand numbers."""

import math

import pytest
import torch

from earned.diagnostics.policy_shift import ShiftSums, TokenShift
from earned.records.metrics import require_declared

LOG2 = math.log(2)
NAN = math.nan


def shift(policy, old, sampler, *, entropy=None, clipped=None, correction=None, divergence=None, trained=None):
    """One row a list; None of the lists is read where `trained` is False."""

    def tensor(rows, fill):
        return torch.tensor(rows if rows is not None else [[fill] * len(row) for row in policy])

    return TokenShift(
        trained_BT=tensor(trained, True),
        policy_BT=torch.tensor(policy),
        old_BT=torch.tensor(old),
        sampler_BT=torch.tensor(sampler),
        entropy_BT=tensor(entropy, 0.5),
        clipped_BT=tensor(clipped, False),
        correction_BT=tensor(correction, 1.0),
        divergence_BT=None if divergence is None else torch.tensor(divergence),
    )


def measured(*shifts, cap=2.0, loss=0.25):
    sums = ShiftSums()
    for one in shifts:
        sums.add(loss, one, cap)
    return sums.metrics()


def test_a_policy_that_has_not_moved():
    metrics = measured(shift([[-1.0, -2.0]], [[-1.0, -2.0]], [[-1.0, -2.0]]))
    assert metrics == {
        "update/loss": 0.25,
        "update/entropy_nats": 0.5,
        "update/clipped_share": 0,
        "update/approx_kl_nats": 0,
        "update/ratio_deviation_max": 0,
        "update/first_ratio_deviation_max": 0,
        "sampler/logprob_difference_mean": 0,
        "sampler/logprob_difference_max": 0,
        "sampler/effective_sample_share": 1,
        "sampler/capped_share": 0,
    }


def test_ratios_of_two_and_a_half():
    moved = shift([[LOG2, -LOG2]], [[0.0, 0.0]], [[0.0, 0.0]], clipped=[[True, False]], entropy=[[1.0, 3.0]])
    metrics = measured(moved)
    assert metrics["update/ratio_deviation_max"] == pytest.approx(1.0, rel=1e-6), "2 is further from 1 than 1/2"
    assert metrics["update/approx_kl_nats"] == pytest.approx((2 - 1 - LOG2 + 0.5 - 1 + LOG2) / 2, rel=1e-6)
    assert metrics["update/clipped_share"] == 0.5 and metrics["update/entropy_nats"] == 2.0


def test_the_sampler_is_compared_with_the_old_policy():
    metrics = measured(shift([[9.0, 9.0]], [[-1.0, -1.0]], [[-1.25, -0.5]], correction=[[2.0, 1.0]]))
    assert metrics["sampler/logprob_difference_mean"] == 0.375 and metrics["sampler/logprob_difference_max"] == 0.5
    assert metrics["sampler/effective_sample_share"] == pytest.approx(1.5**2 / 2.5)
    assert metrics["sampler/capped_share"] == 0.5
    uncapped = measured(shift([[9.0]], [[0.0]], [[0.0]], correction=[[50.0]]), cap=math.inf)
    assert uncapped["sampler/capped_share"] == 0


def test_only_trained_positions_are_read():
    with_rubbish = shift(
        [[NAN, LOG2]],
        [[1.0, 0.0]],
        [[math.inf, 0.0]],
        entropy=[[NAN, 1.0]],
        clipped=[[True, False]],
        correction=[[NAN, 1.0]],
        divergence=[[NAN, 0.25]],
        trained=[[False, True]],
    )
    clean = shift([[LOG2]], [[0.0]], [[0.0]], entropy=[[1.0]], divergence=[[0.25]])
    assert measured(with_rubbish) == measured(clean)
    assert measured(clean)["divergence/reference_nats"] == 0.25


def test_micro_batches_add_up_to_one_batch():
    rows = ([[0.5, -0.5, 0.1]], [[0.0, 0.25, 0.0]], [[0.0, 0.0, 0.5]])
    whole = measured(shift(*rows, entropy=[[1.0, 2.0, 4.0]]), loss=0.5)
    parts = [
        shift(*([[value for value in row[:1]] for row in table] for table in rows), entropy=[[1.0]]),
        shift(*([[value for value in row[1:]] for row in table] for table in rows), entropy=[[2.0, 4.0]]),
    ]
    assert measured(*parts) == pytest.approx(whole)
    assert measured(*reversed(parts)) == pytest.approx(whole)


def test_every_number_is_a_declared_metric():
    for key in measured(shift([[0.0]], [[0.0]], [[0.0]], divergence=[[0.0]])):
        require_declared(key)
