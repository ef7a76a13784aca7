"""Every verb does what it says, on the screen and in JSON."""

import json
import subprocess
import sys
import tomllib

import pytest

from earned.policy.load import load_policy
from earned.recipe import Recipe
from earned.recipe_file import load
from earned.records.reader import RunReader
from earned.vocabulary import Split

TRAIN = ("train", "recipe.toml")
VERBS = [
    "train",
    "eval",
    "sample",
    "pretrain",
    "demo",
    "problems",
    "runs",
    "runs list",
    "runs show",
    "runs completions",
    "models",
    "explain",
    "completion",
]
SUMMARY = [
    "run",
    "accuracy_before",
    "accuracy_after",
    "interval_before",
    "interval_after",
    "length_before",
    "length_after",
    "seconds",
]
NO_TORCH = """
import sys
from earned.cli.main import main
for words in {words!r}:
    try:
        main([*words, "--help"])
    except SystemExit as ended:
        assert not ended.code
assert "torch" not in sys.modules and "transformers" not in sys.modules, "help must be fast"
"""
PRETRAINING = """
[[phases]]
steps = 2
long_share = 0.5
[model]
hidden_size = 32
layers = 1
heads = 2
intermediate_size = 64
[optim]
sequences_per_step = 4
"""


def test_help_exits_0_and_needs_no_torch():
    code = NO_TORCH.format(words=[[], *(verb.split() for verb in VERBS)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_every_verb_has_help(earned, verb):
    ended = earned(*verb.split(), "--help")
    assert ended.code == 0 and "Usage: earned" in ended.out and ended.err == ""


def test_the_help_names_the_verbs(earned):
    assert all(verb in earned("--help").out for verb in ("demo", "train", "eval", "pretrain", "runs"))
    assert earned("--version").out.strip().count(".") == 2


def test_dry_run_prints_the_resolved_recipe_and_does_nothing(earned, workplace):
    flags = ("--steps", "7", "--algorithm.name=rloo", "--sampling.max-new-tokens", "5")
    ended = earned(*TRAIN, *flags, "--dry-run")
    assert ended.code == 0 and ended.err == ""
    (workplace / "resolved.toml").write_text(ended.out)
    resolved = load(Recipe, workplace / "resolved.toml", environment={})
    assert (resolved.steps, resolved.algorithm.name, resolved.sampling.max_new_tokens) == (7, "rloo", 5)
    assert earned("train", "resolved.toml", "--dry-run").out == ended.out
    assert not (workplace / "runs").exists()


def test_train_with_json_in_a_process_of_its_own(process, workplace):
    """Standard output is the one line; the plain lines of progress go to standard error, without escape codes."""
    ended = process(*TRAIN, "--run", "a", "--json")
    assert ended.code == 0
    (line,) = ended.out.splitlines()
    row = json.loads(line)
    assert list(row) == SUMMARY
    first, last = RunReader(workplace / "runs" / "a").evaluations(Split.HELD_OUT)
    assert row["run"] == "runs/a" and row["seconds"] > 0
    assert [row["accuracy_before"], row["accuracy_after"]] == [first.mean, last.mean]
    assert row["interval_before"] == [first.low, first.high] and row["interval_after"] == [last.low, last.high]
    assert [row["length_before"], row["length_after"]] == [first.length_mean, last.length_mean]
    assert "\x1b" not in ended.err and "\r" not in ended.err and "Warning" not in ended.err
    steps = [line for line in ended.err.splitlines() if "tokens/s" in line]
    assert [line.split()[:2] for line in steps] == [["step", "1"], ["step", "2"]]
    assert "held-out" in ended.err
    assert "the most likely completion of the same problems" in " ".join(ended.err.split())


@pytest.fixture
def trained(earned, workplace):
    assert earned(*TRAIN, "--run", "a").code == 0
    return workplace / "runs" / "a"


def test_every_completion_of_training_is_in_the_database(trained):
    reader = RunReader(trained)
    rows = reader.completions(phase="train")
    assert len(rows) == 2 * 4 * 4
    assert len({row.id for row in rows}) == len(rows)
    for row in rows:
        detail = reader.token_detail(row.id)
        assert detail is not None and len(detail.ids) == row.tokens == len(detail.sampler_logprobs)
        assert row.reward in (0.0, 1.0) and row.advantage is not None
        assert row.explanation == "luck: random, 1 with probability 0.5"
        assert row.parts[0].name == "luck" and row.parts[0].value == row.reward
    problems = {problem.id for problem in reader.problems(Split.TRAIN)}
    assert {row.problem_id for row in rows} <= problems
    counts = {phase: len(reader.completions(phase=phase)) for phase in ("validation", "held_out", "watched")}
    assert counts == {"validation": 2 * 3 * 3, "held_out": 2 * 6 * 3, "watched": 2 * 6 * 3}, "k samples and the greedy"


def test_a_run_folder_is_complete_and_its_recipe_starts_it_again(earned, trained):
    assert sorted(path.name for path in trained.iterdir()) == [
        "checkpoints",
        "environment.json",
        "recipe.toml",
        "run.sqlite",
    ]
    stored = tomllib.loads((trained / "recipe.toml").read_text())
    assert stored["optim"]["precision"] == "float32", "what `auto` came to on this machine"
    assert earned("train", str(trained / "recipe.toml"), "--dry-run").code == 0
    assert load_policy(str(trained / "checkpoints" / "step_000002")).context == 256


def test_train_ends_with_a_table_and_a_sentence(earned):
    ended = earned(*TRAIN, "--run", "a")
    assert ended.err == ""
    assert "6 held-out problems, 2 samples each" in ended.out
    assert "no change shown" in ended.out and "(n = 6 can see a difference of 0.81.)" in ended.out
    assert "run    runs/a" in ended.out and "model  runs/a/checkpoints/step_000002" in ended.out


def test_runs_list(earned, trained):
    ended = earned("runs", "list")
    assert ended.code == 0 and "finished" in ended.out and "│ a " in ended.out
    (line,) = earned("runs", "list", "--json").out.splitlines()
    row = json.loads(line)
    assert (row["name"], row["path"], row["status"], row["steps"]) == ("a", "runs/a", "finished", 2)
    assert row["first_held_out"] is not None and row["last_held_out"] is not None
    assert "no runs in ." in earned("runs", "list", ".").out


def test_runs_show(earned, trained):
    ended = earned("runs", "show", "runs/a")
    assert ended.code == 0 and "a: finished" in ended.out and "held-out" in ended.out
    assert (
        "held-out: n = 6 can see a difference of 0.81; validation: n = 3 is too few to see any difference" in ended.out
    )
    row = json.loads(earned("runs", "show", "runs/a", "--json").out)
    assert (row["run"], row["status"], row["steps"]) == ("runs/a", "finished", 2)
    assert [event["kind"] for event in row["events"]] == ["estimate"]
    assert [(result["step"], result["split"]) for result in row["evaluations"]] == [
        (0, "held_out"),
        (0, "validation"),
        (2, "held_out"),
        (2, "validation"),
    ]


def test_eval_measures_a_model_and_a_checkpoint_of_a_run(earned, trained):
    options = ("--options.terms", "[2,2]", "--options.digits", "1", "--limit", "6", "--samples", "2")
    ended = earned("eval", "model", *options, "--max-new-tokens", "8")
    assert ended.code == 0 and "model on 6 problems of sums, 2 samples each" in ended.out
    assert all(word in ended.out for word in ("accuracy", "greedy", "pass@1", "pass@2", "maj@2", "length"))
    assert "n = 6 can see a difference of 0.81\nsums: built in; held-out problems, which no run trains on" in ended.out
    row = json.loads(earned("eval", "runs/a/checkpoints/step_000002", *options, "--max-new-tokens", "8", "--json").out)
    assert row["model"].endswith("step_000002") and row["split"] == "held_out"
    assert (row["problems"], row["samples"]) == (6, 2)
    assert 0 <= row["low"] <= row["mean"] <= row["high"] <= 1 and 0 < row["length_mean"] <= 8
    assert row["units"] == 6 and row["shots"] == 0 and list(row["pass_at"]) == ["1", "2"]
    assert row["pass_at"]["2"] == row["pass_at_k"]


def test_pretrain_makes_a_model_that_can_be_trained(earned, workplace):
    (workplace / "base.toml").write_text(PRETRAINING)
    assert tomllib.loads(earned("pretrain", "base.toml", "-o", "new", "--dry-run").out)["phases"][0]["steps"] == 2
    assert not (workplace / "new").exists()
    ended = earned("pretrain", "base.toml", "-o", "new", "--json")
    row = json.loads(ended.out)
    assert row["model"] == "new" and 4 < row["loss"] < 5 and "step     2/2  loss" in ended.err
    assert earned(*TRAIN, "--model", "new", "--steps", "1").code == 0


def test_a_learning_rate_of_zero_warns_and_fails_where_that_is_asked_for(earned):
    words = ("--optim.learning-rate", "0", "--rewards.allow", '["random_reward", "zero_learning_rate"]')
    ended = earned(*TRAIN, *words)
    assert ended.code == 0 and ended.out.splitlines()[-1] == "the weights did not change"
    assert "the update changed no weight; see optim.learning_rate" in ended.out
    assert earned(*TRAIN, *words, "--strict").code == 1
    assert earned(*TRAIN, "--strict").code == 0


def test_a_run_without_held_out_problems_says_that_nothing_can_be_compared(earned):
    ended = earned(*TRAIN, "--problems.held-out", "0", "--json", "--run", "a")
    assert ended.code == 0
    row = json.loads(ended.out)
    assert list(row) == SUMMARY and row["accuracy_before"] is None and row["interval_after"] is None
    assert "no held-out problems, so nothing to compare" in ended.err
