from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from earned.records.reader import RunReader
from earned.records.rows import StepRow, StepSeconds
from earned.records.writer import RecordWriter
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
    TokenDetail,
)


def build_group(
    step: int, values: Sequence[float | None], phase: str = "train", problem: str = "sums-1"
) -> RolloutGroup:
    """Attempts at one problem, one for each reward value; attempt i has i + 2 tokens."""
    rollouts = []
    for attempt, value in enumerate(values):
        ids = tuple(range(10, 12 + attempt))
        logprobs = tuple(-0.5 * (place + 1) for place in range(len(ids)))
        status = ScoreStatus.UNSCORED if value is None else ScoreStatus.SCORED
        part = PartScore(name="answer", weight=1.0, value=value, extracted=str(attempt), explanation="compared numbers")
        rollouts.append(
            Rollout(
                id=f"{phase}/{step}/{problem}/{attempt}",
                attempt=attempt,
                completion=Completion(
                    segments=(Segment(token_ids=ids, sampled=True, sampler_logprobs=logprobs),),
                    text=f"it is {attempt}",
                    stop_reason=StopReason.LENGTH if attempt == 1 else StopReason.EOS,
                    policy_version=step - 1,
                ),
                score=Score(value=value, status=status, parts=(part,)),
            )
        )
    asked = Problem(id=problem, prompt="47+58=", gold="105", source="sums", split=Split.TRAIN)
    return RolloutGroup(prompt=Prompt(problem=asked, token_ids=(1, 2)), rollouts=tuple(rollouts))


def build_detail(rollout: Rollout, after: bool = False) -> TokenDetail:
    length = len(rollout.completion.token_ids)
    return TokenDetail(
        rollout_id=rollout.id,
        old_logprobs=(-0.25,) * length,
        entropy=(0.5,) * length,
        ratio=(1.5,) * length,
        clipped=(True,) + (False,) * (length - 1),
        after_logprobs=(-0.125,) * length if after else None,
    )


def write_step(records: RecordWriter, step: int) -> None:
    """One step as the loop records it, of a run whose rollouts depend on the step alone."""
    group = build_group(step, [1.0, 0.0, None])
    right, wrong, _ = group.rollouts
    advantages = {right.id: 1.0, wrong.id: -1.0}
    records.rollouts(step, "train", [group], advantages, [build_detail(right, after=True), build_detail(wrong)], True)
    row = StepRow(step=step, policy_version=step, seconds=StepSeconds(sample=0.5, total=1.0))
    records.step(row, {"reward/mean": step / 8, "reward/part/answer": 0.5})
    records.event(step, "note", f"step {step}", {"step": step})


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


@pytest.fixture
def group_of() -> Callable[..., RolloutGroup]:
    return build_group


@pytest.fixture
def detail_of() -> Callable[..., TokenDetail]:
    return build_detail


@pytest.fixture
def record_step() -> Callable[[RecordWriter, int], None]:
    return write_step


@pytest.fixture
def recorded(database: Path) -> RunReader:
    """A finished run of two steps."""
    with RecordWriter(database) as records:
        for step in (1, 2):
            write_step(records, step)
    return RunReader(database)
