"""`earned runs completions`: what the model wrote, as a person reads it and as JSON."""

import json
from dataclasses import asdict

import pytest

from earned import api
from earned.recipe import Recipe
from earned.recipe_file import load
from earned.records.process_mark import own_mark
from earned.records.reader import RunReader
from earned.records.schema import PROCESS
from earned.records.writer import RecordWriter

HEADS = ("right", "wrong")


@pytest.fixture
def run(workplace):
    flags = {"problems.validation": "0", "evaluation.every": "2"}
    api.train(load(Recipe, workplace / "recipe.toml", flags, environment={}), api.RunOptions(name="a"))
    return RunReader(workplace / "runs" / "a")


@pytest.fixture
def completions(earned, run):
    def ask(*words):
        return earned("runs", "completions", "runs/a", *words)

    return ask


def rows(ended):
    assert (ended.code, ended.err) == (0, "")
    return [json.loads(line) for line in ended.out.splitlines()]


def test_a_line_of_json_is_a_row_of_the_record_with_its_prompt(completions, run):
    recorded = run.completions(step=2, phase="train")
    problems = {problem.id: problem for problem in run.problems()}
    found = rows(completions("--json"))
    assert len(found) == len(recorded) == 16
    for row, expected in zip(found, recorded, strict=True):
        asked = problems[expected.problem_id]
        assert row == json.loads(json.dumps(asdict(expected))) | {"prompt": asked.prompt, "gold": asked.gold}


def test_the_last_step_is_the_default_and_any_other_can_be_asked_for(completions):
    assert {row["step"] for row in rows(completions("--json"))} == {2}
    assert {row["step"] for row in rows(completions("--json", "--step", "1"))} == {1}
    assert {row["phase"] for row in rows(completions("--json", "--step", "0", "--phase", "held_out"))} == {"held_out"}


def test_best_reward_first(completions):
    rewards = [row["reward"] for row in rows(completions("--json", "--sort", "reward"))]
    assert rewards == sorted(rewards, reverse=True) and set(rewards) == {0.0, 1.0}
    assert rewards != [row["reward"] for row in rows(completions("--json"))]


def test_one_problem_and_a_limit(completions):
    first = rows(completions("--json"))[0]["problem_id"]
    assert {row["problem_id"] for row in rows(completions("--json", "--problem", first))} == {first}
    assert len(rows(completions("--json", "--problem", first))) == 4
    assert len(rows(completions("--json", "--limit", "3"))) == 3


def test_text_shows_the_prompt_once_for_its_attempts(completions):
    found = rows(completions("--json"))
    ended = completions()
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    prompts = list(dict.fromkeys(row["prompt"] for row in found))
    assert len(prompts) == 4 and [line for line in lines if line in prompts] == prompts
    assert f"{found[0]['problem_id']}, the right answer is {found[0]['gold']}" in lines
    heads = [line for line in lines if line[5:10] in HEADS and "reward" in line]
    for head, row in zip(heads, found, strict=True):
        mark = "right" if row["reward"] == 1 else "wrong"
        assert head.split() == [str(row["attempt"]), mark, "reward", f"{row['reward']:g}", *rest(row)]
    assert lines[4] == "     luck: random, 1 with probability 0.5"
    assert lines[-1] == "step 2, train: 16 completions"


def rest(row):
    cut = [f"{row['tokens']}", "tokens,", "cut", "off"] if row["truncated"] else [f"{row['tokens']}", "tokens"]
    return ["advantage", f"{row['advantage']:+.3f}", *cut]


def test_several_parts_show_what_each_contributed(earned, workplace):
    length = '{check = "length", weight = 0.5, options = {max_tokens = 6, buffer = 6}}'
    flags = {"rewards.length": length, "rewards.allow": '["random_reward", "form_reward"]', "steps": "1"}
    api.train(load(Recipe, workplace / "recipe.toml", flags, environment={}), api.RunOptions(name="b"))
    heads = [line for line in earned("runs", "completions", "runs/b").out.splitlines() if "advantage" in line]
    recorded = RunReader(workplace / "runs" / "b").completions(step=1, phase="train")
    assert len(heads) == len(recorded) == 16
    for head, row in zip(heads, recorded, strict=True):
        luck, length = (part.contribution for part in row.parts)
        assert f"advantage {row.advantage:+.3f} (luck {luck:+.3f}, length {length:+.3f})" in head
        assert abs(luck + length - row.advantage) < 1e-9


def test_the_greedy_attempt_of_an_evaluation_is_named_and_has_no_advantage(completions):
    out = completions("--phase", "held_out", "--limit", "4").out
    assert "greedy  " in out and "advantage" not in out
    assert "step 2, held_out: 4 of 18 completions" in out


def test_what_the_model_wrote_is_shown_as_it_is(earned, run):
    with RecordWriter(run.path, resume=True) as records:
        records._put([("UPDATE completions SET text = ?", [("[red] \x1b[2J",)])])
    out = earned("runs", "completions", "runs/a", "--limit", "1").out
    assert "[red] \\x1b[2J" in out and "\x1b" not in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--step", "7"), "--step: there are no train completions of step 7, but of 1, 2"),
        (("--step", "1", "--phase", "held_out"), "no held_out completions of step 1, but of 0, 2"),
        (("--phase", "validation"), "runs/a: there are no validation completions in this run"),
        (("--problem", "sums-0"), "'sums-0' has no train completions at step 2; 'sums-"),
        (("--limit", "0"), "Must be >= 1"),
        (("--phase", "held"), "Choose from"),
        (("--sort", "worst"), "Choose from"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_code_2(completions, words, sentence):
    ended = completions(*words)
    assert ended.code == 2 and ended.out == "" and sentence in " ".join(ended.err.split())


def test_completions_of_what_is_no_run(earned):
    ended = earned("runs", "completions", "runs/b")
    assert ended.code == 2 and "runs/b: there is no run here" in ended.err


@pytest.mark.skipif(not own_mark(), reason="this system does not tell one process from another")
def test_show_and_list_say_that_a_killed_run_was_interrupted(earned, run):
    """The mark of a process that has ended, as a killed one leaves it."""
    with RecordWriter(run.path, resume=True) as records:
        records.meta("status", "running")
        *process, started = own_mark().split()
        records.meta(PROCESS, " ".join([*process, str(int(started) - 1)]))
        records.flush()
        assert "interrupted" in earned("runs", "list").out
        assert "a: interrupted" in earned("runs", "show", "runs/a").out
        assert json.loads(earned("runs", "show", "runs/a", "--json").out)["status"] == "interrupted"
