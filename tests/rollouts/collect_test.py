from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch
from tests.policy.models import tiny_policy
from tests.rollouts.builders import completion, problem, prompts_of, segment

from earned.rollouts.batching import TrainingRow, micro_batches
from earned.rollouts.collect import scored_groups
from earned.rollouts.engine import Draw, SamplingSettings
from earned.rollouts.torch_engine import TorchEngine
from earned.vocabulary import GREEDY_ATTEMPT, Attempt, Completion, Prompt, Score, ScoreStatus, StopReason

STAMP = Draw(seed=5, step=12, purpose="train")
PROMPTS = [Prompt(problem=problem("a"), token_ids=(0, 1)), Prompt(problem=problem("b"), token_ids=(0, 2))]


def groups_of(texts: list[list[str]]) -> list[tuple[Completion, ...]]:
    return [tuple(completion(segment([10, 11]), text=text) for text in group) for group in texts]


def score_of(text: str) -> Score:
    return Score(value=float(text), status=ScoreStatus.SCORED, parts=())


def backwards(attempts: Mapping[str, Attempt]) -> dict[str, Score]:
    return {rollout_id: score_of(attempt.text) for rollout_id, attempt in reversed(list(attempts.items()))}


def test_scores_are_matched_by_id_whatever_their_order():
    groups = scored_groups(PROMPTS, groups_of([["1", "2", "3"], ["4", "5", "6"]]), backwards, STAMP)
    assert [[rollout.score.value for rollout in group.rollouts] for group in groups] == [[1, 2, 3], [4, 5, 6]]
    for group in groups:
        assert all(rollout.score == score_of(rollout.completion.text) for rollout in group.rollouts)


def test_ids_name_phase_step_problem_and_attempt():
    groups = scored_groups(PROMPTS, groups_of([["1", "2"], ["3"]]), backwards, STAMP)
    assert [group.prompt for group in groups] == PROMPTS
    ids = [rollout.id for group in groups for rollout in group.rollouts]
    assert ids == ["train/12/a/0", "train/12/a/1", "train/12/b/0"]
    assert [rollout.attempt for group in groups for rollout in group.rollouts] == [0, 1, 0]


def test_a_check_sees_the_problem_the_text_and_the_address_alone():
    seen: dict[str, Attempt] = {}

    def watching(attempts: Mapping[str, Attempt]) -> dict[str, Score]:
        seen.update(attempts)
        return backwards(attempts)

    scored_groups(PROMPTS, groups_of([["1"], ["2"]]), watching, STAMP)
    assert seen["train/12/b/0"] == Attempt(
        problem=PROMPTS[1].problem, text="2", truncated=True, tokens=2, seed=5, step=12, rollout_id="train/12/b/0"
    )
    ended = replace(groups_of([["1"]])[0][0], stop_reason=StopReason.EOS)
    scored_groups(PROMPTS[:1], [(ended,)], watching, STAMP)
    assert not seen["train/12/a/0"].truncated
    assert all(attempt.rollout_id == rollout_id for rollout_id, attempt in seen.items())


def test_greedy_attempts_are_numbered_minus_one():
    groups = scored_groups(PROMPTS, groups_of([["1"], ["2"]]), backwards, STAMP, first_attempt=GREEDY_ATTEMPT)
    assert [(rollout.id, rollout.attempt) for group in groups for rollout in group.rollouts] == [
        ("train/12/a/-1", -1),
        ("train/12/b/-1", -1),
    ]


def test_a_missing_score_is_an_error():
    with pytest.raises(KeyError, match="train/12/b/1"):
        scored_groups(
            PROMPTS,
            groups_of([["1"], ["2", "3"]]),
            lambda attempts: {key: score_of(each.text) for key, each in attempts.items() if each.text != "3"},
            STAMP,
        )


def test_a_group_too_many_is_an_error():
    with pytest.raises(ValueError, match="zip"):
        scored_groups(PROMPTS, groups_of([["1"], ["2"], ["3"]]), backwards, STAMP)


def test_what_the_engine_drew_arrives_in_the_training_batch():
    policy = tiny_policy("llama", eos_ids=(1, 20, 50))
    prompts = prompts_of(policy, ["1+1=", "123+45="])
    settings = SamplingSettings(group_size=4, temperature=1.0, max_new_tokens=12)
    completions = TorchEngine(policy, batch_size=64).generate(prompts, settings, STAMP)
    groups = scored_groups(
        prompts,
        completions,
        lambda attempts: {key: score_of(str(len(each.text))) for key, each in attempts.items()},
        STAMP,
    )
    rows = [
        TrainingRow(rollout=rollout, prompt=group.prompt, advantages=torch.ones(rollout.completion.length))
        for group in groups
        for rollout in group.rollouts
    ]
    trained = {
        each.rollout.id: tuple(ids[mask].tolist())
        for batch in micro_batches(rows, 64, torch.device("cpu"))
        for each, ids, mask in zip(batch.rows, batch.token_ids_BT, batch.trained_BT, strict=True)
    }
    assert trained == {
        f"train/12/{prompt.problem.id}/{attempt}": each.token_ids
        for prompt, group in zip(prompts, completions, strict=True)
        for attempt, each in enumerate(group)
    }
