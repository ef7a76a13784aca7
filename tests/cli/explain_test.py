"""`earned explain` and `earned completion` as a person types them."""

import json
import subprocess
import sys

import pytest

from earned.algorithms.named import ALGORITHMS
from earned.cli.main import main


def printed(capsys, *words):
    main(list(words))
    return capsys.readouterr().out


def refused(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main(list(words))
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_advantages_as_json(capsys):
    words = ["explain", "advantages", "1", "0", "1", "0", "--algorithm", "grpo", "--json"]
    row = json.loads(printed(capsys, *words))
    assert row["advantages"] == [1.0, -1.0, 1.0, -1.0]
    assert (row["groups"][0]["mean"], row["groups"][0]["deviation"]) == (0.5, 0.5)


def test_advantages_in_words(capsys):
    text = printed(capsys, "explain", "advantages", "1", "0", "0", "0")
    assert "mean 0.250, deviation 0.433" in text and "+1.732" in text and text.count("-0.577") == 3
    assert "teaches nothing" in printed(capsys, "explain", "advantages", "1", "1", "1", "1", "--algorithm", "rloo")


def test_every_algorithm_is_explained(capsys):
    for name in ALGORITHMS:
        row = json.loads(printed(capsys, "explain", "advantages", "1", "0", "0", "0", "--algorithm", name, "--json"))
        assert len(row["advantages"]) == 4 and row["advantages"][0] > 0, name
    assert row["algorithm"] == "default"
    words = ["explain", "advantages", "1", "0", "0", "0", "--algorithm", "maxrl", "--json"]
    assert json.loads(printed(capsys, *words))["advantages"] == [3.0, -1.0, -1.0, -1.0]


def test_the_divisor_is_shown_where_it_is_not_the_deviation_of_the_group(capsys):
    words = ["explain", "advantages", "1", "0", "0", "0", "/", "1", "1", "1", "0", "--algorithm"]
    assert printed(capsys, *words, "lite_ppo").count("mean 0.250, deviation 0.433, divided by 0.500") == 1
    assert "divided by" not in printed(capsys, *words, "grpo")


def test_groups_share_the_baseline_of_the_batch(capsys):
    words = ["explain", "advantages", "1", "0", "0", "0", "/", "1", "1", "1", "0", "--json"]
    row = json.loads(printed(capsys, *words, "--algorithm", "reinforce_baseline"))
    assert row["advantages"] == [0.5, -0.5, -0.5, -0.5, 0.5, 0.5, 0.5, -0.5]
    assert len(row["groups"]) == 2


def test_negative_rewards_are_no_flags(capsys):
    words = ["explain", "advantages", "-1", "-.5", "--algorithm", "reinforce", "--json"]
    assert json.loads(printed(capsys, *words))["advantages"] == [-1.0, -0.5]


def test_clip_as_json(capsys):
    words = ["explain", "clip", "--old", "0.20", "--new", "0.30", "--advantage", "1", "--clip", "0.8", "1.2", "--json"]
    row = json.loads(printed(capsys, *words))
    assert (row["ratio"], row["stops_at"], row["clipped"], row["winner"]) == (1.5, 0.24, True, "clipped")


def test_clip_in_words(capsys):
    text = printed(capsys, "explain", "clip", "--old", "0.2", "--new", "0.3", "--advantage", "-1")
    assert "0.3 / 0.2 = 1.5" in text and "down to a probability of 0.16" in text and "clipped    no" in text


def test_metric(capsys):
    assert "groups/mixed_share, in share\nProblems with both right and wrong" in printed(
        capsys, "explain", "metric", "groups/mixed_share"
    )
    assert "says that a result is now checked" in printed(capsys, "explain", "metric", "behaviour/verifying_share")
    assert "in reward" in printed(capsys, "explain", "metric", "reward/part/answer")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["advantages", "1", "0", "--algorithm", "gpro"], "Did you mean 'grpo'?"),
        (["advantages", "1", "x"], "'x' is no number"),
        (["advantages"], "a group without rewards"),
        (["advantages", "1", "/", "/", "1"], "a group without rewards"),
        (["advantages", "1", "0", "--algoritm", "grpo"], "--algoritm: no such flag"),
        (["clip", "--old", "2", "--new", ".3", "--advantage", "1"], "--old: 2 is no probability"),
        (["clip", "--old", ".2"], "--new"),
        (["metric", "reward/men"], "Did you mean 'reward/mean'?"),
        (["metric", "zzz"], "Keys begin with reward/"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_code_2(capsys, words, sentence):
    message = refused(capsys, "explain", *words)
    assert sentence in message and "Traceback" not in message


@pytest.mark.parametrize(
    "words",
    [
        ["explain", "advantages", "1", "0"],
        ["explain", "clip", "--old", ".2", "--new", ".3", "--advantage", "1"],
        ["explain", "metric", "reward/mean"],
        ["completion", "bash"],
    ],
)
def test_without_torch(words):
    code = f"import sys; from earned.cli.main import main; main({words}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_verbs(capsys, shell):
    script = printed(capsys, "completion", shell)
    assert all(verb in script for verb in ("train", "eval", "explain", "advantages", "--algorithm"))


def test_completion_is_valid_bash(capsys):
    script = printed(capsys, "completion", "bash")
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
