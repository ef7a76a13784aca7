"""What goes in comes out, for every table."""

import math
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from earned.errors import RecordError
from earned.records.reader import RunReader
from earned.records.rows import EventRow, FindingRow, StepRow, StepSeconds
from earned.records.writer import RecordWriter
from earned.vocabulary import EvaluationResult, Problem, ScoreStatus, Split, StopReason


def evaluation(step, split, mean):
    return EvaluationResult(
        step=step,
        split=split,
        problems=64,
        units=32,
        samples=4,
        mean=mean,
        low=mean - 0.1,
        high=mean + 0.1,
        greedy=0.5,
        pass_at_k=0.75,
        maj_at_k=0.625,
        length_mean=12.5,
        truncated_share=0.125,
    )


def test_meta_and_its_replacement(database):
    with RecordWriter(database) as records:
        records.meta("status", "running")
        records.meta("status", "finished")
    assert RunReader(database).meta() == {"schema_version": "3", "status": "finished"}


def test_problems(database):
    problems = [
        Problem(id="b", prompt="2+2=", gold="4", source="sums", split=Split.TRAIN, cluster="2+2"),
        Problem(id="a", prompt="why?", gold=None, source="talk.jsonl", split=Split.HELD_OUT),
    ]
    with RecordWriter(database) as records:
        records.problems(problems)
        records.problems(problems)
    assert RunReader(database).problems() == problems
    assert RunReader(database).problems(Split.HELD_OUT) == problems[1:]


def test_steps_and_metrics(database):
    seconds = StepSeconds(sample=1, score=2, update=3, evaluate=4, record=5, checkpoint=6, total=21)
    rows = [StepRow(step=step, policy_version=step, seconds=seconds) for step in (1, 2)]
    with RecordWriter(database) as records:
        records.step(rows[0], {"reward/mean": 0.25, "update/loss": 0.5})
        records.step(rows[1], {"reward/mean": 0.75})
    reader = RunReader(database)
    assert reader.steps() == rows
    assert reader.metric("reward/mean") == [(1, 0.25), (2, 0.75)]
    assert reader.metrics_at(1) == {"reward/mean": 0.25, "update/loss": 0.5}


def test_the_seconds_of_saving_are_known_only_after_the_step(database):
    with RecordWriter(database) as records:
        records.step(StepRow(step=3, policy_version=3, seconds=StepSeconds(total=2)), {})
        records.checkpoint_seconds(3, 0.5)
    reader = RunReader(database)
    assert reader.metrics_at(3) == {"time/checkpoint_seconds": 0.5}
    assert reader.steps()[0].seconds == StepSeconds(total=2, checkpoint=0.5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_metric_that_is_not_finite_is_null_and_left_out_of_curves(database, value):
    with RecordWriter(database) as records:
        records.step(StepRow(step=1, policy_version=1, seconds=StepSeconds()), {"update/grad_norm": value})
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT key, value FROM metrics").fetchall() == [("update/grad_norm", None)]
    assert RunReader(database).metric("update/grad_norm") == []
    assert RunReader(database).metrics_at(1) == {}


def test_an_undeclared_metric_is_refused_and_its_step_is_not_recorded(database):
    with RecordWriter(database) as records, pytest.raises(RecordError, match="not declared"):
        records.step(StepRow(step=1, policy_version=1, seconds=StepSeconds()), {"reward/avarage": 1.0})
    assert RunReader(database).steps() == []


def test_evaluations_by_split(database):
    results = [evaluation(0, Split.HELD_OUT, 0.25), evaluation(0, Split.VALIDATION, 0.5)]
    with RecordWriter(database) as records:
        for result in results:
            records.evaluation(result)
    assert RunReader(database).evaluations() == results
    assert RunReader(database).evaluations(Split.VALIDATION) == results[1:]


def test_an_evaluation_without_a_number_reads_back_as_nan(database):
    with RecordWriter(database) as records:
        records.evaluation(evaluation(0, Split.HELD_OUT, math.nan))
    (result,) = RunReader(database).evaluations()
    assert math.isnan(result.mean) and result.greedy == 0.5


def test_completions_with_their_reasons(database, group_of):
    group = group_of(3, [1.0, None])
    with RecordWriter(database) as records:
        records.rollouts(3, "train", [group], {"train/3/sums-1/0": 0.5}, [], keep_tokens=False)
    right, unscored = RunReader(database).completions()
    assert (right.id, right.step, right.phase, right.problem_id) == ("train/3/sums-1/0", 3, "train", "sums-1")
    assert (right.attempt, right.policy_version, right.text, right.tokens) == (0, 2, "it is 0", 2)
    assert (right.stop_reason, right.truncated, right.status) == (StopReason.EOS, False, ScoreStatus.SCORED)
    assert (right.reward, right.advantage, right.extracted) == (1.0, 0.5, "0")
    assert right.parts == group.rollouts[0].score.parts
    assert right.explanation == "answer: compared numbers"
    assert (unscored.stop_reason, unscored.truncated, unscored.status) == (
        StopReason.LENGTH,
        True,
        ScoreStatus.UNSCORED,
    )
    assert (unscored.reward, unscored.advantage) == (None, None)
    assert unscored.parts == group.rollouts[1].score.parts


def test_the_contribution_of_a_part_is_read_back(database, group_of):
    group = group_of(3, [1.0])
    (rollout,) = group.rollouts
    part = replace(rollout.score.parts[0], contribution=-0.125)
    credited = replace(group, rollouts=(replace(rollout, score=replace(rollout.score, parts=(part,))),))
    with RecordWriter(database) as records:
        records.rollouts(3, "train", [credited], {rollout.id: -0.125}, [], keep_tokens=False)
    (row,) = RunReader(database).completions()
    assert row.parts == (part,) and row.parts[0].contribution == row.advantage


def test_completions_can_be_filtered_ordered_and_limited(database, group_of):
    with RecordWriter(database) as records:
        records.rollouts(1, "train", [group_of(1, [0.0, None, 1.0])], None, [], keep_tokens=False)
        records.rollouts(2, "train", [group_of(2, [0.5], problem="sums-2")], None, [], keep_tokens=False)
        records.rollouts(2, "watched", [group_of(2, [0.25], phase="watched")], None, [], keep_tokens=False)
    reader = RunReader(database)
    assert [row.reward for row in reader.completions(step=1)] == [0.0, None, 1.0]
    assert [row.reward for row in reader.completions(order="reward")] == [1.0, 0.5, 0.25, 0.0, None]
    assert [row.reward for row in reader.completions(order="reward", limit=2)] == [1.0, 0.5]
    assert [row.reward for row in reader.completions(phase="watched")] == [0.25]
    assert [row.reward for row in reader.completions(problem_id="sums-2")] == [0.5]
    assert reader.completions(step=1, phase="watched") == []


def test_tokens_are_kept_for_every_rollout_and_details_for_trained_ones(database, group_of, detail_of):
    group = group_of(1, [1.0, 0.0, 0.0])
    first, second, third = group.rollouts
    with RecordWriter(database) as records:
        records.rollouts(1, "train", [group], None, [detail_of(second), detail_of(first, after=True)], keep_tokens=True)
    reader = RunReader(database)
    detail = reader.token_detail(first.id)
    assert (detail.ids, detail.sampler_logprobs) == ((10, 11), (-0.5, -1.0))
    assert (detail.old_logprobs, detail.entropy, detail.ratio) == ((-0.25, -0.25), (0.5, 0.5), (1.5, 1.5))
    assert (detail.clipped, detail.after_logprobs) == ((True, False), (-0.125, -0.125))
    assert reader.token_detail(second.id).after_logprobs is None
    untrained = reader.token_detail(third.id)
    assert untrained.ids == (10, 11, 12, 13)
    assert (untrained.old_logprobs, untrained.entropy, untrained.ratio, untrained.clipped) == (None,) * 4


def test_without_keep_tokens_the_completion_stays_and_its_tokens_do_not(database, group_of, detail_of):
    group = group_of(1, [1.0])
    with RecordWriter(database) as records:
        records.rollouts(1, "train", [group], None, [detail_of(group.rollouts[0])], keep_tokens=False)
    reader = RunReader(database)
    assert len(reader.completions()) == 1
    assert reader.token_detail("train/1/sums-1/0") is None


def test_numbers_of_another_rollout_or_length_are_refused(database, group_of, detail_of):
    group, other = group_of(1, [1.0]), group_of(2, [1.0])
    with RecordWriter(database) as records:
        with pytest.raises(AssertionError, match="train/2/sums-1/0"):
            records.rollouts(1, "train", [group], None, [detail_of(other.rollouts[0])], keep_tokens=True)
        with pytest.raises(AssertionError, match="train/2/sums-1/0"):
            records.rollouts(1, "train", [group], {"train/2/sums-1/0": 1.0}, [], keep_tokens=True)
        longer = group_of(1, [0.0, 1.0]).rollouts[1]
        with pytest.raises(AssertionError, match="2 numbers for 3 tokens"):
            swapped = replace(detail_of(group.rollouts[0]), rollout_id=longer.id)
            records.rollouts(1, "train", [group_of(1, [0.0, 1.0])], None, [swapped], keep_tokens=True)


def test_events_and_findings(database):
    finding = FindingRow(
        step=2,
        source="held_out",
        check="empty answer",
        result="refused",
        number=0.0,
        low=-0.1,
        high=0.1,
        text="an empty answer earns nothing",
        change="",
    )
    with RecordWriter(database) as records:
        records.event(2, "skipped", "the gradient was not finite", {"norm": math.inf, "rows": [1, 2]})
        records.finding(finding)
    reader = RunReader(database)
    expected = EventRow(step=2, kind="skipped", text="the gradient was not finite", data={"norm": None, "rows": [1, 2]})
    assert reader.events() == [expected]
    assert reader.findings() == [finding]


def test_text_that_is_not_valid_unicode_does_not_end_the_run(database):
    with RecordWriter(database) as records:
        records.event(1, "note", "half a \ud83d pair", {"text": "\ud83d", "word": "naïve 数"})
    (event,) = RunReader(database).events()
    assert event.text == "half a \\ud83d pair"
    assert event.data["word"] == "naïve 数"
