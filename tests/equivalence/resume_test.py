"""A run that was stopped, killed or crashed and then resumed equals an uninterrupted one, bit for bit."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file

from earned import api
from earned.cli.main import main
from earned.errors import RecipeError, RecordError
from earned.observer import Silence
from earned.policy.load import fingerprint, load_policy, save_policy
from earned.policy.tiny import untrained_policy
from earned.pretrain_recipe import PretrainModel
from earned.recipe import Recipe
from earned.recipe_file import load
from earned.records.reader import RunReader

STEPS = 10
RECIPE = """
seed = 0
steps = 10
model = "{model}"
[problems]
options = {{ terms = [2, 3], digits = 1 }}
train = 24
validation = 8
held_out = 6
[rewards]
allow = ["random_reward"]
[rewards.luck]
check = "random"
[sampling]
prompts_per_step = 4
group_size = 4
max_new_tokens = 12
[optim]
learning_rate = 1e-3
[evaluation]
every = 4
samples = 2
watched = 2
[checkpoint]
every = 2
"""
NOT_COMPARED = ("time/", "throughput/", "records/")
TABLES = {
    "completions": "SELECT * FROM completions ORDER BY id",
    "tokens": "SELECT * FROM tokens ORDER BY completion_id",
    "evaluations": "SELECT * FROM evaluations ORDER BY step, split",
    "problems": "SELECT * FROM problems ORDER BY rowid",
    "events": "SELECT * FROM events WHERE kind != 'estimate' ORDER BY rowid",
    "steps": "SELECT step, policy_version FROM steps ORDER BY step",
    "metrics": "SELECT key, step, value FROM metrics ORDER BY key, step",
}


@pytest.fixture(scope="module")
def recipe_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipe")
    shape = PretrainModel(hidden_size=32, layers=2, heads=2, intermediate_size=64)
    save_policy(untrained_policy(shape, seed=0), folder / "model")
    file = folder / "luck.toml"
    file.write_text(RECIPE.format(model=(folder / "model").as_posix()))
    return file


@pytest.fixture(scope="module")
def uninterrupted(recipe_file, tmp_path_factory):
    return api.train(recipe_of(recipe_file), options(tmp_path_factory.mktemp("runs"))).run


def recipe_of(file, **flags):
    return load(Recipe, file, {key.replace("__", "."): value for key, value in flags.items()}, environment={})


def options(folder, name="b"):
    return api.RunOptions(runs=folder, name=name, recipe_name="luck")


def tables(run):
    """Every table's rows, without the numbers that are about the machine."""
    with closing(sqlite3.connect(run / "run.sqlite")) as connection:
        found = {name: connection.execute(sql).fetchall() for name, sql in TABLES.items()}
    found["metrics"] = [row for row in found["metrics"] if not row[0].startswith(NOT_COMPARED)]
    return found


def weights(run):
    return fingerprint(load_policy(str(run / "checkpoints" / f"step_{STEPS:06d}")))


def require_equal(run, other):
    ours, theirs = tables(run), tables(other)
    for name in TABLES:
        assert ours[name] == theirs[name], name
    assert weights(run) == weights(other)
    names = [sorted(path.name for path in (folder / "checkpoints").iterdir()) for folder in (run, other)]
    assert names[0] == names[1]
    for name in names[0]:
        one, two = (
            load_file(r / "checkpoints" / name / "trainer_state" / "optimizer.safetensors") for r in (run, other)
        )
        assert one.keys() == two.keys() and all(one[key].equal(two[key]) for key in one)
    assert RunReader(run).meta() == RunReader(other).meta()


def start(recipe_file, runs, *more):
    """`earned train` in a process of its own."""
    command = [sys.executable, "-m", "earned", "train", recipe_file, "--runs", runs, "--run", "b", *more]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_step(process, run, step, seconds=120.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        if (run / "run.sqlite").is_file() and steps_of(run) >= step:
            return
        time.sleep(0.005)
    pytest.fail(f"the run never got to step {step}: {process.communicate()[0]}")


def steps_of(run):
    try:
        return max((row.step for row in RunReader(run).steps()), default=0)
    except RecordError:
        return 0


class StopAfter(Silence):
    """Asks for a stop, or crashes, once so many steps are done."""

    def __init__(self, step, crash=False):
        self.step, self.crash, self.done = step, crash, 0

    def stepped(self, step, metrics):
        self.done = step
        if self.crash and step == self.step:
            raise RuntimeError("by design")

    def stop_requested(self):
        return self.done >= self.step


def test_the_run_moves_its_weights_and_keeps_every_completion(recipe_file, uninterrupted):
    assert weights(uninterrupted) != fingerprint(load_policy(str(recipe_file.parent / "model")))
    assert RunReader(uninterrupted).steps()[-1].policy_version == STEPS, "random rewards teach at every step"
    assert [step for step, share in RunReader(uninterrupted).metric("groups/mixed_share") if share > 0.5]
    assert len([row for row in tables(uninterrupted)["completions"] if "train" in row]) == STEPS * 4 * 4


def test_killed_and_resumed_is_uninterrupted(recipe_file, uninterrupted, tmp_path):
    run = tmp_path / "b"
    process = start(recipe_file, tmp_path)
    wait_for_step(process, run, 3)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL and 3 <= steps_of(run) < STEPS
    resumed = start(recipe_file, tmp_path, "--resume")
    assert "no change shown" in resumed.communicate()[0]
    assert resumed.returncode == 0
    require_equal(run, uninterrupted)


def test_terminated_saves_itself_exits_75_and_goes_on(recipe_file, uninterrupted, tmp_path):
    run = tmp_path / "b"
    process = start(recipe_file, tmp_path, "--json")
    wait_for_step(process, run, 3)
    process.terminate()
    output = process.communicate()[0]
    assert process.returncode == 75
    assert "stopped and saved. Go on with --run b --resume" in output
    reached = steps_of(run)
    assert 3 <= reached < STEPS and RunReader(run).meta()["status"] == "stopped"
    assert (run / "checkpoints" / f"step_{reached:06d}").is_dir()
    assert not (run / "run.sqlite-wal").exists()
    assert api.resume(run, expected=recipe_of(recipe_file)).finished
    require_equal(run, uninterrupted)


@pytest.mark.parametrize("step", [0, 7])
def test_stopped_at_any_step(recipe_file, uninterrupted, tmp_path, step):
    stop = StopAfter(step)
    first = api.train(recipe_of(recipe_file), options(tmp_path), listener=stop, stop_requested=stop.stop_requested)
    assert not first.finished and steps_of(first.run) == step
    assert step == 0 or (first.run / "checkpoints" / f"step_{step:06d}").is_dir()
    second = api.resume(first.run)
    assert second.finished and second.weights_changed
    require_equal(first.run, uninterrupted)


def test_a_crash_after_the_last_checkpoint_forgets_what_came_later(recipe_file, uninterrupted, tmp_path):
    with pytest.raises(RuntimeError, match="by design"):
        api.train(recipe_of(recipe_file), options(tmp_path), listener=StopAfter(5, crash=True))
    run = tmp_path / "b"
    assert steps_of(run) == 5 and RunReader(run).meta()["status"] == "failed"
    assert not (run / "checkpoints" / "step_000005").exists()
    api.resume(run)
    require_equal(run, uninterrupted)


def test_a_divergence_is_still_measured_from_the_start_of_the_run(recipe_file, tmp_path):
    recipe = recipe_of(recipe_file, algorithm__divergence="k3", algorithm__divergence_weight="1.0")
    whole = api.train(recipe, options(tmp_path, "a")).run
    stop = StopAfter(5)
    run = api.train(recipe, options(tmp_path), listener=stop, stop_requested=stop.stop_requested).run
    api.resume(run)
    nats = dict(RunReader(whole).metric("divergence/reference_nats"))
    assert nats[1] == pytest.approx(0, abs=1e-6) and nats[6] > 1e-4
    require_equal(run, whole)


def test_a_resumed_run_still_knows_its_best_checkpoint(recipe_file, tmp_path):
    stop = StopAfter(5)
    run = api.train(recipe_of(recipe_file), options(tmp_path), listener=stop, stop_requested=stop.stop_requested).run
    with closing(sqlite3.connect(run / "run.sqlite")) as connection, connection:
        connection.execute("UPDATE evaluations SET mean = 0.9 WHERE step = 4 AND split = 'validation'")
    api.resume(run)
    kept = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert kept == ["step_000004", "step_000008", "step_000010"], "keep_last is 2"


def test_another_seed_is_another_run(recipe_file, uninterrupted, tmp_path):
    other = api.train(recipe_of(recipe_file, seed="1"), options(tmp_path)).run
    ours, theirs = tables(uninterrupted), tables(other)
    assert {name for name in TABLES if ours[name] == theirs[name]} <= {"events", "steps"}
    assert weights(uninterrupted) != weights(other)


def test_a_finished_run_has_nothing_to_resume_and_stays_as_it_is(recipe_file, uninterrupted):
    before = tables(uninterrupted)
    again = api.resume(uninterrupted)
    assert again.finished and again.weights_changed, "they changed in the part that is behind it"
    assert again.before is not None and again.before.step == 0
    assert tables(uninterrupted) == before


def test_a_finished_run_is_read_even_when_its_checkpoints_are_gone(recipe_file, tmp_path):
    """Without its weights it could only be started again, over the records there are."""
    first = api.train(recipe_of(recipe_file, steps="2"), options(tmp_path))
    shutil.rmtree(first.run / "checkpoints")
    before = tables(first.run)
    assert api.resume(first.run) == replace(first, model=None)
    assert tables(first.run) == before


def test_seconds_are_those_of_all_sessions(recipe_file, tmp_path):
    stop = StopAfter(5)
    first = api.train(recipe_of(recipe_file), options(tmp_path), listener=stop, stop_requested=stop.stop_requested)
    second = api.resume(first.run)
    parts = [row.seconds for row in RunReader(first.run).steps()]
    sessions = [
        sum(part.total + part.record + part.checkpoint for part in session) for session in (parts[:5], parts[5:])
    ]
    assert first.seconds == pytest.approx(sessions[0]) and min(sessions) > 0
    assert second.seconds == pytest.approx(sum(sessions))
    assert api.resume(first.run).seconds == second.seconds


def test_resuming_with_another_recipe_is_refused(recipe_file, uninterrupted, capsys):
    before = tables(uninterrupted)
    with pytest.raises(RecipeError, match="the run was started with another recipe"):
        api.resume(uninterrupted, expected=recipe_of(recipe_file, sampling__temperature="0.7"))
    api.resume(uninterrupted, expected=recipe_of(recipe_file))
    runs = ["--runs", str(uninterrupted.parent), "--run", uninterrupted.name]
    with pytest.raises(SystemExit) as ended:
        main(["train", str(recipe_file), *runs, "--resume", "--seed", "1"])
    assert ended.value.code == 2 and "another recipe" in capsys.readouterr().err
    assert tables(uninterrupted) == before


def test_where_there_is_no_run_there_is_nothing_to_resume(tmp_path):
    with pytest.raises(RecordError, match="there is no run here to resume"):
        api.resume(Path(tmp_path) / "nowhere")
