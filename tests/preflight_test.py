"""The pre-flight on real models: what it lets through, what it stops, and that training never notices it."""

import re

import pytest

from earned import api
from earned.algorithms.named import resolve
from earned.assembly import assemble
from earned.errors import PreflightError, RecipeError
from earned.observer import Silence
from earned.preflight import must_teach, outlook, preflight, teaches
from earned.recipe import Recipe
from earned.recipe_file import validate
from earned.records.reader import RunReader
from earned.reward_probe import check_reward
from earned.sandbox.workers import WorkerPool
from earned.task import task_of
from earned.vocabulary import (
    Completion,
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

ANSWER = {"answer": {"check": "number"}}
LUCK = {"allow": ["random_reward"], "luck": {"check": "random"}}
MEANT = {
    "allow": ["pays_null_answer", "pays_wrong_answer", "pays_listed_answers", "pays_echoed_prompt"],
    "length": {"check": "python"},
}
"""For rewards that do not look at the answer, on purpose."""
SAME = {"allow": ["constant_reward"], "same": {"check": "constant"}}
LEARNING, FROZEN = {"learning_rate": 1e-3, "precision": "float32"}, {"learning_rate": 0.0, "precision": "float32"}


@pytest.fixture
def recipe_of(small_model):
    def build(rewards=ANSWER, **sections):
        table = {
            "steps": 2,
            "model": small_model,
            "preflight_tries": 40,
            "problems": {"options": {"terms": [2, 2], "digits": 1}, "train": 16, "validation": 0, "held_out": 4},
            "rewards": rewards,
            "sampling": {"prompts_per_step": 3, "group_size": 4, "max_new_tokens": 6},
            "optim": LEARNING,
            "evaluation": {"samples": 1, "watched": 2},
        }
        return validate(Recipe, {**table, **sections})

    return build


@pytest.fixture
def parts_of():
    with WorkerPool(1) as pool:
        yield lambda recipe: assemble(task_of(recipe, pool), recipe.model)


class Counting:
    """A reward that pays for length and counts what it judged."""

    def __init__(self, equal=False):
        self.judged, self.equal = 0, equal

    def __call__(self, completions, **kwargs):
        self.judged += len(completions)
        return [1.0 if self.equal else float(len(text)) for text in completions]


def rollout_group(place, rewards):
    problem = Problem(id=f"p{place}", prompt="?", gold="1", source="sums", split=Split.TRAIN)
    completion = Completion(
        segments=(Segment(token_ids=(5,), sampled=True, sampler_logprobs=(-1.0,)),),
        text="",
        stop_reason=StopReason.EOS,
        policy_version=0,
    )
    rollouts = tuple(
        Rollout(
            id=f"preflight/1/p{place}/{attempt}",
            attempt=attempt,
            completion=completion,
            score=Score(value=value, status=ScoreStatus.UNSCORED if value is None else ScoreStatus.SCORED, parts=()),
        )
        for attempt, value in enumerate(rewards)
    )
    return RolloutGroup(prompt=Prompt(problem=problem, token_ids=(1,)), rollouts=rollouts)


def groups_of(*rewards_PG):
    return [rollout_group(place, rewards) for place, rewards in enumerate(rewards_PG)]


@pytest.mark.parametrize("algorithm", ["grpo", "dr_grpo", "rloo", "default"])
def test_siblings_teach_by_a_difference_within_a_group(algorithm):
    chosen = resolve(algorithm)
    assert teaches(groups_of([0, 0], [1, 0]), chosen)
    assert not teaches(groups_of([0, 0], [1, 1]), chosen)
    assert not teaches(groups_of([0, None], [None, 1]), chosen)
    assert not teaches(groups_of([0.1] * 7, [1.0] * 7), chosen)


def test_a_batch_teaches_by_any_difference_and_plain_rewards_by_any_reward():
    batch, plain = resolve("reinforce_baseline"), resolve("reinforce")
    assert teaches(groups_of([0, 0], [1, 1]), batch) and teaches(groups_of([0], [1]), batch)
    assert not teaches(groups_of([1, 1], [1, 1]), batch)
    assert teaches(groups_of([1], [1]), plain) and teaches(groups_of([-1, -1]), plain)
    assert not teaches(groups_of([0, 0], [0, 0]), plain) and not teaches(groups_of([0, None]), plain)


@pytest.mark.parametrize(
    ("sections", "algorithm", "must"),
    [
        ({}, "grpo", True),
        ({"rewards": LUCK}, "grpo", False),
        ({"rewards": SAME}, "reinforce", False),
        ({"rewards": {"allow": ["constant_reward"], **ANSWER}}, "grpo", True),
        ({"rewards": {"luck": {"check": "random", "weight": 0.1}, **ANSWER}}, "grpo", True),
        ({"rewards": {"allow": ["constant_reward"], "answer": {"check": "number", "weight": 0}}}, "grpo", False),
        ({"sampling": {"prompts_per_step": 3, "group_size": 1}}, "grpo", False),
        ({"sampling": {"prompts_per_step": 3, "group_size": 1}}, "reinforce_baseline", True),
        ({"rewards": {"allow": ["zero_learning_rate"], **ANSWER}, "optim": FROZEN}, "grpo", False),
    ],
)
def test_only_what_is_meant_to_learn_has_to(recipe_of, sections, algorithm, must):
    assert must_teach(recipe_of(**sections), resolve(algorithm)) is must


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_hopeless_start_is_refused_and_nothing_is_written(recipe_of, tmp_path, overwrite):
    with pytest.raises(PreflightError) as refused:
        api.train(recipe_of(), api.RunOptions(runs=tmp_path / "runs", name="a", overwrite=overwrite))
    said = str(refused.value)
    assert "40 attempts (preflight_tries) at 10 training problems taught nothing" in said
    assert "cut off before they could give an answer. Raise sampling.max_new_tokens" in said
    assert 'rewards.allow = ["no_signal"]' in said and refused.value.exit_code == 1
    assert not (tmp_path / "runs").exists()


def test_without_the_guard_the_same_run_trains_on_nothing(recipe_of, tmp_path):
    recipe = recipe_of({"allow": ["no_signal"], **ANSWER}, max_empty_steps=1)
    result = api.train(recipe, api.RunOptions(runs=tmp_path))
    assert result.finished and not result.weights_changed
    assert [event.kind for event in RunReader(result.run).events()] == ["estimate", "no_signal", "no_signal"]


@pytest.mark.parametrize(
    "sections",
    [
        {"rewards": SAME},
        {"rewards": {"allow": ["random_reward"], "luck": {"check": "random", "options": {"p": 0.0}}}},
        {"rewards": {"allow": ["single_sample"], **ANSWER}, "sampling": {"prompts_per_step": 3, "group_size": 1}},
        {"rewards": {"allow": ["zero_learning_rate"], **ANSWER}, "optim": FROZEN},
        {"rewards": SAME, "algorithm": {"name": "reinforce"}},
    ],
    ids=["constant", "never lucky", "one attempt", "no learning rate", "constant and plain"],
)
def test_controls_stay_possible(recipe_of, tmp_path, sections):
    assert api.train(recipe_of(**sections), api.RunOptions(runs=tmp_path)).finished


def test_every_reward_right_is_refused_too(recipe_of, tmp_path):
    with pytest.raises(PreflightError, match=r"taught nothing: .*cut off|every attempt was right at 100%"):
        api.train(recipe_of(MEANT), api.RunOptions(runs=tmp_path / "runs"), reward=Counting(equal=True))
    assert not (tmp_path / "runs").exists()
    plain = recipe_of(MEANT, algorithm={"name": "reinforce"})
    assert api.train(plain, api.RunOptions(runs=tmp_path), reward=Counting(equal=True)).weights_changed


def test_it_costs_one_batch_where_there_is_signal_and_a_resumed_run_none(recipe_of, tmp_path):
    recipe, reward, tried = recipe_of(MEANT), Counting(), Counting()
    check_reward(recipe, reward=tried)
    stopped = api.train(recipe, api.RunOptions(runs=tmp_path), reward=reward, stop_requested=lambda: True)
    assert reward.judged == tried.judged + 3 * 4, "after the reward was tried one batch, whatever the tries"
    resumed = Counting()
    assert api.resume(stopped.run, reward=resumed).finished
    assert resumed.judged == 2 * 3 * 4


def test_no_more_than_the_tries_are_sampled(recipe_of, parts_of):
    measured = preflight(parts_of(recipe_of(LUCK, preflight_tries=9)))
    assert measured is not None and measured.attempts == 8, "whole groups"
    alone = preflight(parts_of(recipe_of(LUCK, preflight_tries=1)))
    assert alone is not None and alone.attempts == 4, "one group at least"
    with pytest.raises(PreflightError, match=r"36 attempts .* at 9 training problems"):
        preflight(parts_of(recipe_of(preflight_tries=39)))


def test_training_never_notices(recipe_of, tmp_path):
    """The same completions and rewards with and without it: its random numbers are its own."""
    runs = [
        api.train(recipe_of({**LUCK, "allow": allow}), api.RunOptions(runs=tmp_path, name="-".join(allow))).run
        for allow in (["random_reward"], ["random_reward", "no_signal"])
    ]
    first, second = (RunReader(run).completions() for run in runs)
    assert first == second and len(first) > 2 * 3 * 4


def test_the_estimate_is_of_what_was_seen(recipe_of, parts_of, tmp_path):
    measured = preflight(parts_of(recipe_of(LUCK)))
    result = api.train(recipe_of(LUCK), api.RunOptions(runs=tmp_path))
    (event,) = RunReader(result.run).events()
    length = re.search(r"present length of ([\d.]+)", event.text)
    assert measured is not None and length is not None
    assert float(length[1]) == pytest.approx(measured.tokens / measured.attempts, abs=0.05)
    assert event.text.startswith("2 steps of 12 completions: about ") and (event.step, event.kind) == (0, "estimate")
    assert min(measured.sample_seconds, measured.score_seconds, measured.read_seconds) > 0


def test_what_does_not_fit_into_the_machine_is_said_with_the_key_to_lower(recipe_of, parts_of):
    huge = {"prompts_per_step": 16, "group_size": 10**7, "max_new_tokens": 6}
    parts = parts_of(recipe_of({"allow": ["no_signal"], **ANSWER}, sampling=huge | {"batch_size": 10**9}))
    estimate, warning = outlook(parts, None).sentences
    assert "no pre-flight, so no time is known" in estimate
    assert re.fullmatch(r"[\d.]+ GB is more memory than the [\d.]+ GB .* has: lower sampling\.batch_size", warning)
    parts = parts_of(recipe_of({"allow": ["no_signal"], **ANSWER}, sampling=huge))
    assert len(outlook(parts, None).sentences) == 1, "by default a billion attempts are sampled in turns"


def test_a_reward_without_gold_is_refused_before_the_model_is_loaded(recipe_of, tmp_path):
    (tmp_path / "my.jsonl").write_text("".join(f'{{"question": "{n}+1="}}\n' for n in range(40)))
    source = {"source": str(tmp_path / "my.jsonl"), "validation": 0}
    with pytest.raises(
        RecipeError, match=r"not one of its \d+ training problems has an answer that the check 'number'"
    ):
        api.train(recipe_of(problems=source, model="nowhere"), api.RunOptions(runs=tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()


class Sentences(Silence):
    def __init__(self):
        self.said_, self.evaluations = [], []

    def said(self, text):
        self.said_.append(text)

    def evaluated(self, result):
        self.evaluations.append(result)


@pytest.mark.parametrize("golds", [0, 40])
def test_accuracy_is_left_out_where_no_gold_can_be_read(recipe_of, tmp_path, golds):
    rows = [f'{{"question": "{n}+1=", "answer": "{n + 1 if n < golds else "who knows"}"}}\n' for n in range(40)]
    (tmp_path / "my.jsonl").write_text("".join(rows))
    listener = Sentences()
    recipe = recipe_of(MEANT, problems={"source": str(tmp_path / "my.jsonl")})
    result = api.train(recipe, api.RunOptions(runs=tmp_path), reward=Counting(), listener=listener)
    reader = RunReader(result.run)
    told = [text for text in listener.said_ if text.startswith("no accuracy for the validation and held-out problems")]
    assert len(told) == (golds == 0) and bool(reader.evaluations()) == bool(golds) == bool(listener.evaluations)
    assert (result.after is None) == (golds == 0) and result.weights_changed
    assert len(told) == sum(event.text in told for event in reader.events())
    watched = reader.completions(phase="watched")
    assert {row.step for row in watched} == {0, 2} and len(watched) == 2 * 2 * 2, "seen changing all the same"
    assert {row.reward is None for row in watched} == {golds == 0}


class Stopping(Sentences):
    def __init__(self, last):
        super().__init__()
        self.last, self.step = last, 0

    def stepped(self, step, metrics):
        self.step = step

    def stop_requested(self):
        return self.step >= self.last


def test_the_time_is_said_anew_at_step_5_of_a_long_run(recipe_of, tmp_path):
    listener = Stopping(last=6)
    recipe = recipe_of(LUCK, steps=20_000, evaluation={"every": 20_000, "samples": 1, "watched": 0})
    options = api.RunOptions(runs=tmp_path)
    result = api.train(recipe, options, listener=listener, stop_requested=listener.stop_requested)
    events = [event for event in RunReader(result.run).events() if event.kind == "estimate" and event.step == 5]
    assert len(events) == 1 and re.match(r"at this pace about [\d.]+ (min|h) in all, ", events[0].text)
    assert f"step 5: {events[0].text}" in listener.said_
