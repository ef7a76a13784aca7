"""Group shares, step metrics and advice on groups small enough to count by hand."""

import math
import subprocess
import sys
from dataclasses import replace

import pytest

from earned.diagnostics.groups import (
    GroupShares,
    group_shares,
    is_right,
    no_signal_advice,
    no_signal_at_the_start,
    outcomes,
)
from earned.diagnostics.step_metrics import rollout_metrics
from earned.records.metrics import require_declared
from earned.vocabulary import (
    Completion,
    PartScore,
    Problem,
    Prompt,
    Rollout,
    RolloutGroup,
    Score,
    ScoreStatus,
    Segment,
    Split,
    StopReason,
)

PROBLEM = Problem(id="sums-1", prompt="1+1=", gold="2", source="sums", split=Split.TRAIN)


def score(answer, style=None, extracted="2"):
    """One part of weight 1, or two with the second of weight 0.25; an answer of None is unscored."""
    parts = [PartScore(name="answer", weight=1.0, value=answer, extracted=extracted, explanation="")]
    if style is not None:
        parts.append(PartScore(name="style", weight=0.25, value=style, extracted=None, explanation=""))
    if answer is None:
        return Score(value=None, status=ScoreStatus.UNSCORED, parts=tuple(parts))
    value = sum(part.weight * part.value for part in parts)
    return Score(value=value, status=ScoreStatus.SCORED, parts=tuple(parts))


def group(*scores, lengths=None, truncated=()):
    rollouts = []
    for attempt, (one, length) in enumerate(zip(scores, lengths or [2] * len(scores), strict=True)):
        completion = Completion(
            segments=(Segment(token_ids=(5,) * length, sampled=True, sampler_logprobs=(-1.0,) * length),),
            text="",
            stop_reason=StopReason.LENGTH if attempt in truncated else StopReason.EOS,
            policy_version=0,
        )
        rollouts.append(Rollout(id=f"train/1/sums-1/{attempt}", attempt=attempt, completion=completion, score=one))
    return RolloutGroup(prompt=Prompt(problem=PROBLEM, token_ids=(1,)), rollouts=tuple(rollouts))


RIGHT, WRONG, UNSCORED = score(1.0), score(0.0), score(None)


def test_shares_by_hand():
    groups = [
        group(RIGHT, WRONG),
        group(RIGHT, RIGHT),
        group(WRONG, WRONG),
        group(WRONG, WRONG, UNSCORED),
        group(RIGHT, UNSCORED),
    ]
    assert group_shares(groups) == GroupShares(mixed=0.2, all_right=0.2, all_wrong=0.4, zero_signal=0.6, unusable=1)


def test_outcomes_are_the_verdicts_on_what_could_be_judged():
    assert outcomes([group(RIGHT, UNSCORED, WRONG)]) == {"sums-1": (True, False)}
    assert outcomes([group(UNSCORED)]) == {"sums-1": ()}
    assert outcomes([group(RIGHT), group(WRONG)]) == {"sums-1": (True, False)}, "attempts at one problem add up"
    assert outcomes([]) == {}


def test_no_groups_have_no_shares():
    assert group_shares([]) == GroupShares(mixed=0.0, all_right=0.0, all_wrong=0.0, zero_signal=0.0, unusable=0)


def test_signal_is_about_rewards_and_right_about_the_answer():
    different_style = group(score(1.0, style=1.0), score(1.0, style=0.0))
    same_reward = group(score(0.5), score(0.5))
    assert group_shares([different_style]) == GroupShares(
        mixed=0.0, all_right=1.0, all_wrong=0.0, zero_signal=0.0, unusable=0
    )
    assert group_shares([same_reward]) == GroupShares(
        mixed=0.0, all_right=0.0, all_wrong=1.0, zero_signal=1.0, unusable=0
    )


def test_the_heaviest_part_decides_what_is_right():
    assert is_right(score(1.0, style=0.0))
    assert not is_right(score(0.0, style=1.0))
    assert not is_right(score(0.99))
    assert not is_right(UNSCORED)
    assert not is_right(Score(value=0.0, status=ScoreStatus.SCORED, parts=()))


def test_metrics_by_hand():
    groups = [
        group(score(1.0, style=1.0), score(0.0, style=0.0, extracted="3"), lengths=[4, 8], truncated={1}),
        group(score(1.0, style=0.0), score(None, extracted=None), lengths=[2, 10], truncated={1}),
    ]
    assert rollout_metrics(groups, {"a": 0.5, "b": -1.5, "c": 0.0, "d": 0.0}) == pytest.approx(
        {
            "reward/mean": 0.75,
            "reward/deviation": math.sqrt((0.5**2 + 0.75**2 + 0.25**2) / 3),
            "reward/part/answer": 2 / 3,
            "reward/part/style": 1 / 3,
            "reward/unscored_share": 0.25,
            "groups/mixed_share": 0.5,
            "groups/all_right_share": 0.0,
            "groups/all_wrong_share": 0.0,
            "groups/zero_signal_share": 0.0,
            "groups/unusable": 1.0,
            "completions/length_mean": 6.0,
            "completions/length_max": 10.0,
            "completions/length_right_mean": 3.0,
            "completions/length_wrong_mean": 8.0,
            "completions/truncated_share": 0.5,
            "completions/distinct_answers_mean": 1.5,
            "advantage/absolute_mean": 0.5,
        }
    )


def credited(one, *contributions):
    pairs = zip(one.parts, contributions, strict=True)
    return replace(one, parts=tuple(replace(part, contribution=number) for part, number in pairs))


def test_the_size_of_the_contributions_by_part():
    both, neither = credited(score(1.0, style=1.0), 0.5, 0.125), credited(score(0.0, style=0.0), -0.5, -0.25)
    metrics = rollout_metrics([group(both, neither, UNSCORED)], {})
    assert metrics["reward/contribution/answer"] == 0.5 and metrics["reward/contribution/style"] == 0.1875
    assert not any(key.startswith("reward/contribution") for key in rollout_metrics([group(RIGHT, WRONG)], {}))


def test_every_key_is_declared():
    for key in rollout_metrics([group(credited(RIGHT, 0.5), WRONG)], {"a": 1.0}):
        require_declared(key)


def test_means_of_nothing_are_left_out():
    metrics = rollout_metrics([group(UNSCORED, UNSCORED)], {})
    assert metrics["reward/unscored_share"] == 1.0
    assert metrics["groups/unusable"] == 1.0
    absent = {"reward/mean", "reward/deviation", "completions/length_right_mean", "advantage/absolute_mean"}
    assert not absent & metrics.keys()
    assert rollout_metrics([], {}) == {}


def test_equal_rewards_deviate_by_exactly_nothing():
    assert rollout_metrics([group(*[score(0.1)] * 7)], {})["reward/deviation"] == 0.0


@pytest.mark.parametrize(
    ("groups", "truncated_share", "words"),
    [
        ([group(RIGHT, RIGHT)] * 3 + [group(WRONG, WRONG)], 0.0, ["right at 75%", "harder", "problems.options"]),
        ([group(WRONG, WRONG)] * 4, 0.0, ["wrong at 100%", "easier", "sampling.group_size", "imitation"]),
        ([group(WRONG, WRONG)] * 4, 0.6, ["60%", "cut off", "sampling.max_new_tokens"]),
        ([group(UNSCORED, UNSCORED, WRONG)], 0.9, ["67%", "could not be scored", "check"]),
        ([group(RIGHT), group(WRONG)], 0.9, ["1 attempt", "sampling.group_size"]),
        ([group(score(1.0, style=0.0), score(0.25, style=3.0))], 0.0, ["same reward at 100%", "[rewards]"]),
    ],
    ids=["all right", "all wrong", "truncated", "unscored", "single sample", "same reward"],
)
def test_advice_names_the_cause_the_number_and_the_key(groups, truncated_share, words):
    advice = no_signal_advice(groups, truncated_share, 20)
    assert advice.startswith("20 steps in a row taught nothing: ")
    for word in words:
        assert word in advice


def test_a_start_without_signal_names_the_tries_the_problems_the_cause_and_the_way_round():
    said = no_signal_at_the_start([group(WRONG, WRONG), group(WRONG, WRONG, truncated={0})])
    assert said.startswith(
        "there is nothing to learn from at the start: 4 attempts (preflight_tries) at 1 training problem "
    )
    assert "every attempt was wrong at 100% of the problems" in said and "Nothing was written" in said
    assert said.endswith('rewards.allow = ["no_signal"]')
    assert "75% of the completions were cut off" in no_signal_at_the_start([group(*[WRONG] * 4, truncated={0, 1, 2})])


def test_diagnostics_import_without_torch():
    script = (
        "import sys, earned.diagnostics.estimate, earned.diagnostics.groups, earned.diagnostics.step_metrics\n"
        "print(sorted({'torch', 'transformers', 'earned.records'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
