"""What a run tells the record and the person who watches, on an untrained model."""

import pytest

from earned import api
from earned.observer import Silence
from earned.recipe import Recipe
from earned.recipe_file import validate
from earned.records.reader import RunReader

LUCK = {"allow": ["random_reward", "zero_learning_rate"], "luck": {"check": "random"}}
SAME = {"allow": ["constant_reward"], "same": {"check": "constant"}}


class Witness(Silence):
    def __init__(self):
        self.evaluations, self.steps, self.sentences = [], [], []

    def evaluated(self, result):
        self.evaluations.append((result.step, result.split.value))

    def stepped(self, step, metrics):
        self.steps.append((step, dict(metrics)))

    def said(self, text):
        if "steps of 8 completions" not in text:
            self.sentences.append(text)


@pytest.fixture
def run_of(small_model, tmp_path):
    def run(listener=None, rewards=LUCK, **sections):
        table = {
            "steps": 4,
            "model": small_model,
            "problems": {"options": {"terms": [2, 2], "digits": 1}, "train": 16, "validation": 2, "held_out": 4},
            "rewards": rewards,
            "sampling": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 6},
            "optim": {"learning_rate": 1e-3, "precision": "float32"},
            "evaluation": {"every": 2, "samples": 2, "watched": 3},
        }
        return api.train(validate(Recipe, {**table, **sections}), api.RunOptions(runs=tmp_path), listener=listener)

    return run


def test_a_listener_hears_every_evaluation_and_every_step(run_of):
    witness = Witness()
    result = run_of(witness)
    assert witness.evaluations == [(step, split) for step in (0, 2, 4) for split in ("validation", "held_out")]
    assert [step for step, _ in witness.steps] == [1, 2, 3, 4] and witness.sentences == []
    reader = RunReader(result.run)
    for step, metrics in witness.steps:
        recorded = reader.metrics_at(step)
        assert {key: recorded[key] for key in metrics} == pytest.approx(metrics)
        assert set(recorded) - set(metrics) <= {"time/checkpoint_seconds"}
    assert (result.before, result.after) == tuple(r for r in reader.evaluations() if r.split == "held_out")[::2]
    assert result.weights_changed and result.finished and result.model is not None


def test_seconds_of_the_parts_are_recorded(run_of):
    rows = RunReader(run_of().run).steps()
    for row in rows:
        seconds = row.seconds
        assert min(seconds.sample, seconds.update, seconds.total) > 0
        assert (seconds.evaluate > 0) == (row.step % 2 == 0)


def test_what_each_part_contributed_is_recorded_and_is_a_curve(run_of):
    length = {"check": "length", "weight": 0.5, "options": {"max_tokens": 8, "buffer": 8}}
    reader = RunReader(run_of(rewards={**LUCK, "allow": [*LUCK["allow"], "form_reward"], "length": length}).run)
    for step in (1, 4):
        rows = reader.completions(step=step, phase="train")
        assert any(row.advantage for row in rows)
        for row in rows:
            assert abs(sum(part.contribution for part in row.parts) - row.advantage) < 1e-9
        for place, name in enumerate(("luck", "length")):
            sizes = [abs(row.parts[place].contribution) for row in rows]
            assert reader.metrics_at(step)[f"reward/contribution/{name}"] == pytest.approx(sum(sizes) / len(sizes))
    assert {part.contribution for row in reader.completions(phase="held_out") for part in row.parts} == {None}


def test_steps_without_signal_are_explained_every_so_often(run_of):
    witness = Witness()
    result = run_of(witness, SAME, max_empty_steps=2)
    events = [(event.step, event.kind) for event in RunReader(result.run).events() if event.kind != "estimate"]
    assert events == [(2, "no_signal"), (4, "no_signal")]
    assert witness.sentences[0].startswith("step 2: 2 steps in a row taught nothing: ")
    assert "Raise sampling.max_new_tokens" in witness.sentences[0], "an untrained model never stops by itself"
    assert not result.weights_changed


def test_weights_that_do_not_change_are_an_event(run_of):
    witness = Witness()
    result = run_of(witness, optim={"learning_rate": 0.0, "precision": "float32"})
    assert {event.kind for event in RunReader(result.run).events()} == {"estimate", "weights_unchanged"}
    assert not result.weights_changed and "optim.learning_rate" in witness.sentences[0]


def texts(reader, step, phase):
    return [(row.problem_id, row.attempt, row.text) for row in reader.completions(step=step, phase=phase)]


def test_watched_problems_change_only_with_the_weights(run_of):
    frozen = RunReader(run_of(optim={"learning_rate": 0.0, "precision": "float32"}).run)
    assert len(texts(frozen, 0, "watched")) == 3 * (2 + 1)
    assert texts(frozen, 0, "watched") == texts(frozen, 2, "watched") == texts(frozen, 4, "watched")
    assert texts(frozen, 0, "held_out") != texts(frozen, 2, "held_out"), "accuracies are drawn afresh"
    learning = RunReader(run_of().run)
    assert texts(learning, 0, "watched") != texts(learning, 4, "watched")
    assert texts(learning, 0, "watched") == texts(frozen, 0, "watched")


@pytest.mark.parametrize(("tokens", "kept"), [("all", {1, 2, 3, 4}), ("none", set()), ({"every": 3}, {3})])
def test_only_tokens_are_thinned_and_only_when_asked(run_of, tokens, kept):
    reader = RunReader(run_of(records={"tokens": tokens}).run)
    rows = reader.completions(phase="train")
    assert len(rows) == 4 * 2 * 4
    assert {row.step for row in rows if reader.token_detail(row.id) is not None} == kept
    watched = reader.completions(phase="watched")
    assert all(reader.token_detail(row.id) is not None for row in watched), "the story needs them"


def test_one_group_a_step_keeps_its_log_probabilities_after_the_update(run_of):
    reader = RunReader(run_of().run)
    for step in (1, 2, 3, 4):
        rows = reader.completions(step=step, phase="train")
        after = {row.problem_id for row in rows if reader.token_detail(row.id).after_logprobs is not None}
        assert len(after) == 1


def test_accuracy_never_depends_on_what_a_run_rewards(run_of):
    reader = RunReader(run_of(rewards=SAME).run)
    assert {row.reward for row in reader.completions(phase="train")} == {1.0}
    for row in reader.completions(phase="held_out"):
        assert row.reward == 0.0 and row.parts[0].name == "accuracy" and row.advantage is None
