"""It learns from answers, and it does not learn from coin flips: the built-in model, minutes cut to seconds."""

import math
from statistics import fmean, stdev

import pytest

from earned import api
from earned.recipe import Recipe
from earned.recipe_file import load, shipped

SHORT = {
    "steps": "16",
    "sampling.prompts_per_step": "16",
    "sampling.group_size": "8",
    "problems.train": "1024",
    "problems.validation": "0",
    "problems.held_out": "96",
    "evaluation.every": "16",
    "evaluation.watched": "0",
    "checkpoint.every": "16",
    "records.tokens": "none",
}
STUDENT_T_2 = 4.303
"""97.5 % quantile with two degrees of freedom: three seeds."""


def run(folder, recipe, seed, **changes):
    flags = {**SHORT, "seed": str(seed), **changes}
    result = api.train(load(Recipe, shipped(recipe), flags, environment={}), api.RunOptions(runs=folder))
    assert result.before is not None and result.after is not None
    return result


def test_rewarding_answers_raises_held_out_accuracy_and_length(tmp_path):
    result = run(tmp_path, "tiny_sums", 0)
    assert result.after.low > result.before.high
    assert result.after.mean > result.before.mean + 0.1
    assert result.after.length_mean > 1.3 * result.before.length_mean
    assert result.weights_changed


def test_rewarding_coin_flips_teaches_nothing(tmp_path):
    """No gain in accuracy and no change in length; noise may cost accuracy, and at this learning rate it does."""
    results = [run(tmp_path / str(seed), "tiny_sums_random", seed) for seed in range(3)]
    gains = [result.after.mean - result.before.mean for result in results]
    half = STUDENT_T_2 * stdev(gains) / math.sqrt(len(gains))
    longer = [result.after.length_mean / result.before.length_mean for result in results]
    assert all(result.weights_changed for result in results)
    assert fmean(gains) + half < 0.05
    assert 0.9 < fmean(longer) < 1.1


@pytest.mark.parametrize("algorithm", ["reinforce_baseline", "rloo", "dr_grpo", "default"])
@pytest.mark.slow
def test_every_algorithm_with_a_baseline_learns(tmp_path, algorithm):
    result = run(tmp_path, "tiny_sums", 0, **{"algorithm.name": algorithm})
    assert result.after.low > result.before.high
