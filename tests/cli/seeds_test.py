"""One recipe under several seeds: the runs, the table over them, and a series that is stopped and goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext

import pytest

import earned as library
from earned.errors import RecordError
from earned.observer import Silence
from earned.recipe import Recipe
from earned.recipe_file import load
from earned.records.reader import RunReader
from earned.vocabulary import Split

TRAIN = ("train", "recipe.toml")
SERIES = (*TRAIN, "--run", "a", "--seeds", "2")


def rows(run):
    """What a run did, without the seconds it took."""
    reader = RunReader(run)
    return reader.completions(), reader.evaluations(), [row.step for row in reader.steps()]


def bytes_of(run):
    return (run / "run.sqlite").read_bytes()


def folders(workplace):
    return sorted(path.name for path in (workplace / "runs").iterdir())


@pytest.fixture
def series(earned, workplace):
    assert earned(*SERIES).code == 0
    return [workplace / "runs" / name for name in ("a-seed0", "a-seed1")]


def test_a_run_a_seed_and_one_table(earned, workplace):
    ended = earned(*SERIES)
    assert (ended.code, ended.err) == (0, "")
    assert folders(workplace) == ["a-seed0", "a-seed1"]
    assert [line for line in ended.out.splitlines() if line.startswith("seed ")] == [
        "seed 0  runs/a-seed0",
        "seed 1  runs/a-seed1",
    ]
    assert ended.out.count("held-out before") == 1 and "most likely completion" not in ended.out
    assert "mean gain" in ended.out and "mean after" in ended.out
    assert "No change shown: " in ended.out
    assert "In one run n = 6 can see a difference of 0.81" in ended.out


def test_the_second_run_is_the_recipe_with_the_next_seed(earned, workplace, series):
    assert earned(*TRAIN, "--run", "plain", "--seed", "1").code == 0
    assert rows(series[1]) == rows(workplace / "runs" / "plain") != rows(series[0])
    assert load(Recipe, series[1] / "recipe.toml", environment={}).seed == 1


def test_seeds_begin_at_the_seed_of_the_recipe(earned, workplace):
    assert earned(*TRAIN, "--seed", "5", "--seeds", "2", "--steps", "1").code == 0
    assert [name.partition("-seed")[2] for name in folders(workplace)] == ["5", "6"]


def test_one_seed_is_an_ordinary_run(earned, workplace):
    ended = earned(*TRAIN, "--run", "a", "--seeds", "1")
    assert ended.code == 0 and "most likely completion" in ended.out and "mean gain" not in ended.out
    assert folders(workplace) == ["a"]


def test_json_is_one_line_with_the_numbers_of_the_records(process, workplace):
    ended = process(*SERIES, "--json")
    assert ended.code == 0 and "mean gain" in ended.err
    (line,) = ended.out.splitlines()
    row = json.loads(line)
    assert [run["seed"] for run in row["runs"]] == [0, 1]
    assert [run["run"] for run in row["runs"]] == ["runs/a-seed0", "runs/a-seed1"]
    gains = []
    for run in row["runs"]:
        first, last = RunReader(workplace / run["run"]).evaluations(Split.HELD_OUT)
        gains.append(last.mean - first.mean)
        assert (run["accuracy_before"], run["accuracy_after"], run["gain"]) == (first.mean, last.mean, gains[-1])
    assert row["gains"] == gains and row["mean_gain"] == pytest.approx(sum(gains) / 2)
    # Two values: half of their difference, times 12.706.
    half = 12.706 * abs(gains[0] - gains[1]) / 2
    assert row["interval_gain"] == pytest.approx([row["mean_gain"] - half, row["mean_gain"] + half], abs=1e-4)
    assert row["interval_after"][0] <= row["mean_after"] <= row["interval_after"][1]
    assert row["seconds"] == pytest.approx(sum(run["seconds"] for run in row["runs"]), abs=0.2)


def test_without_held_out_problems_there_is_nothing_to_compare(earned):
    ended = earned(*SERIES, "--problems.held-out", "0", "--json")
    row = json.loads(ended.out)
    assert ended.code == 0 and "nothing to compare. Runs: runs/a-seed0, runs/a-seed1" in ended.err
    assert (row["gains"], row["mean_gain"], row["interval_gain"], len(row["runs"])) == ([], None, None, 2)


def test_weights_that_do_not_change_are_a_finding(earned):
    frozen = ("--optim.learning-rate", "0", "--rewards.allow", '["random_reward", "zero_learning_rate"]')
    ended = earned(*SERIES, *frozen)
    assert ended.code == 0 and ended.out.splitlines()[-1] == "the weights did not change under seed 0, 1"
    assert earned(*SERIES, *frozen, "--overwrite", "--strict").code == 1
    assert earned(*SERIES, "--overwrite", "--strict").code == 0


def test_a_taken_name_is_found_before_the_first_run(earned, workplace):
    assert earned(*TRAIN, "--run", "a-seed1").code == 0
    before = bytes_of(workplace / "runs" / "a-seed1")
    ended = earned(*SERIES)
    assert ended.code == 2 and "runs/a-seed1: this run exists already" in ended.err
    assert folders(workplace) == ["a-seed1"] and bytes_of(workplace / "runs" / "a-seed1") == before
    assert earned(*SERIES, "--overwrite").code == 0
    assert folders(workplace) == ["a-seed0", "a-seed1"]


def test_finished_seeds_are_not_run_again_and_missing_ones_are_started(earned, workplace, series):
    before = [bytes_of(run) for run in series]
    ended = earned(*TRAIN, "--run", "a", "--seeds", "3", "--resume")
    assert ended.code == 0 and "3 seeds" in ended.out
    assert [bytes_of(run) for run in series] == before
    assert folders(workplace) == ["a-seed0", "a-seed1", "a-seed2"]


def test_another_recipe_is_not_mixed_in(earned, series):
    ended = earned(*SERIES, "--resume", "--sampling.temperature", "0.7")
    assert ended.code == 2 and "the run was started with another recipe" in ended.err


class StopInSecondRun(Silence):
    """Asks for a stop after the first step of the second run."""

    def __init__(self):
        self.first_steps = 0

    def stepped(self, step, metrics):
        self.first_steps += step == 1

    def stop_requested(self):
        return self.first_steps == 2


def test_an_interrupted_series_goes_on_as_if_it_had_not_stopped(earned, workplace, series):
    stop = StopInSecondRun()
    recipe = library.load_recipe("recipe.toml")
    done = library.train_seeds(
        recipe,
        3,
        library.RunOptions(name="b", recipe_name="recipe"),
        watch=lambda one, folder: nullcontext(stop),
        stop_requested=stop.stop_requested,
    )
    assert [result.finished for result in done] == [True, False]
    assert folders(workplace) == ["a-seed0", "a-seed1", "b-seed0", "b-seed1"]
    assert earned(*TRAIN, "--run", "b", "--seeds", "3", "--resume").code == 0
    assert folders(workplace)[2:] == ["b-seed0", "b-seed1", "b-seed2"]
    assert [rows(workplace / "runs" / f"b-seed{seed}") for seed in (0, 1)] == [rows(run) for run in series]


def test_the_library_does_it_in_three_lines(workplace):
    recipe = library.load_recipe("recipe.toml")
    results = library.train_seeds(recipe, 2, library.RunOptions(name="a"))
    interval = library.mean_interval([result.gain for result in results])
    assert interval.low <= interval.mean <= interval.high
    assert [result.run.name for result in results] == ["a-seed0", "a-seed1"]
    with pytest.raises(RecordError, match="exists already"):
        library.train_seeds(recipe, 1, library.RunOptions(name="a"))


def test_a_signal_ends_the_whole_series_and_exits_75(earned, workplace):
    words = ("--run", "a", "--seeds", "3", "--steps", "60", "--problems.train", "64")
    command = [sys.executable, "-m", "earned", *TRAIN, *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 120
    while not steps(workplace / "runs" / "a-seed1") and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGTERM)
    output = process.communicate()[0]
    assert process.returncode == 75, output
    assert "stopped and saved. Go on with --run a --seeds 3 --resume" in output
    assert folders(workplace) == ["a-seed0", "a-seed1"]
    statuses = [RunReader(workplace / "runs" / name).meta()["status"] for name in folders(workplace)]
    assert statuses == ["finished", "stopped"]


def steps(run):
    try:
        return len(RunReader(run).steps())
    except RecordError:
        return 0
