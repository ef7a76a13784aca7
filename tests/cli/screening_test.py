"""`earned screen`: what a few attempts say about training problems, on real models."""

import json
import re

import pytest

from earned import screening
from earned.assembly import assemble
from earned.errors import RecipeError, VerifierError
from earned.evaluation.group_signal import signal_share
from earned.recipe import Problems, Recipe
from earned.recipe_file import load
from earned.rollouts.engine import SamplingSettings
from earned.sandbox.workers import WorkerPool
from earned.task import task_of
from earned.vocabulary import Split

TINY = ("screen", "tiny", "--options.terms", "[2,4]", "--limit", "12", "--max-new-tokens", "48", "-k", "6")
UNTRAINED = ("screen", "model", "--max-new-tokens", "4", "--limit", "4", "-k", "3")
SETTINGS = SamplingSettings(group_size=3, temperature=1.0, max_new_tokens=4)


def row_of(ended):
    assert (ended.code, ended.err) == (0, "")
    (line,) = ended.out.splitlines()
    return json.loads(line)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_a_screening_adds_up(earned):
    row = row_of(earned(*TINY, "--group-size", "4,2,12", "--json"))
    assert (row["problems"], row["samples"]) == (12, 6)
    bars = [bar["problems"] for bar in row["histogram"]]
    assert sum(bars) == 12 and len(bars) == 7
    assert (row["never_share"], row["always_share"]) == (bars[0] / 12, bars[6] / 12)
    assert row["pass_rate"]["mean"] == pytest.approx(sum(right * each for right, each in enumerate(bars)) / 72)
    for group in row["groups"][:2]:
        size = group["group_size"]
        expected = sum(signal_share(6, right, size) * each for right, each in enumerate(bars)) / 12
        assert group["share"] == pytest.approx(expected) and group["counted"]
        assert group["low"] < group["share"] < group["high"]
    assert [group["group_size"] for group in row["groups"]] == [2, 4, 12]
    assert row["groups"][2]["counted"] is False
    assert 0 < row["pass_rate"]["mean"] < 1, "these problems should be neither solved nor hopeless"


def test_the_screen_says_the_same_without_colour(earned):
    words = (*TINY, "--group-size", "4,12")
    ended, row = earned(*words), row_of(earned(*words, "--json"))
    lines = ended.out.splitlines()
    assert (ended.code, ended.err, "\x1b" in ended.out) == (0, "", False)
    assert lines[0] == "tiny on 12 training problems of sums, 6 attempts each at temperature 1"
    shown = [re.fullmatch(r"(\d) of 6 right +(\d+) *([█#]*)", line) for line in lines[1:8]]
    assert [int(match[1]) for match in shown] == list(range(7))
    assert [int(match[2]) for match in shown] == [bar["problems"] for bar in row["histogram"]]
    assert [bool(match[3]) for match in shown] == [bar["problems"] > 0 for bar in row["histogram"]]
    assert max(len(match[3]) for match in shown) == 40
    counted, modelled = (line for line in lines if line.startswith("groups of"))
    assert counted.endswith("with signal") and modelled.endswith("by a model (beta-binomial), not counted")
    assert f"{row['groups'][0]['share']:.3f} [{row['groups'][0]['low']:.3f}" in counted
    assert row["advice"] in lines and lines[-1] == row["notes"][-1]
    assert re.fullmatch(r"for groups of 6 the model says \d\.\d{3}, where \d\.\d{3} was counted", lines[-1])


def test_the_same_words_give_the_same_numbers_and_another_seed_others(earned):
    first, again, other = (row_of(earned(*TINY, "--seed", seed, "--json")) for seed in ("0", "0", "1"))
    assert first == again and first["histogram"] != other["histogram"]


def test_it_tries_the_problems_that_training_would_and_no_others(workplace):
    recipe = load(Recipe, workplace / "recipe.toml", {"problems.train": "12"}, environment={})
    with WorkerPool(1) as pool:
        training = assemble(task_of(recipe, pool), recipe.model)
    found = screening.screen("model", Problems(options={"terms": [2, 2], "digits": 1}), SETTINGS, limit=12)
    assert [one.id for one in found.problems] == [prompt.problem.id for prompt in training.prompts[Split.TRAIN]]


def test_of_a_file_the_training_split_is_tried(workplace):
    write(workplace / "my.jsonl", [{"question": f"{n}+{n}=", "answer": str(2 * n)} for n in range(60)])
    every = screening.screen("model", Problems(source="my.jsonl"), SETTINGS)
    assert 36 <= len(every.problems) < 60 and any("60 rows" in note for note in every.notes)
    few = screening.screen("model", Problems(source="my.jsonl"), SETTINGS, limit=5)
    assert {one.id for one in few.problems} < {one.id for one in every.problems} and len(few.problems) == 5


def test_a_check_of_the_users_own_and_what_it_cannot_score(workplace):
    """The first attempt at a problem is unscored, the second right, the third wrong."""
    (workplace / "mine.py").write_text(
        "def reward(completions, **kwargs):\n"
        "    return [(float('nan'), 1.0, 0.0)[n % 3] for n in range(len(completions))]\n"
    )
    found = screening.screen("model", Problems(), SETTINGS, check="mine.py:reward", group_sizes=(2,), limit=4)
    assert [(one.scored, one.right) for one in found.problems] == [(2, 1)] * 4
    assert found.notes == ("4 attempts could not be scored and count in no share; 0 problems left out",)
    assert found.signals[0].share == 1 and found.pass_rate.mean == 0.5


def test_when_nothing_can_be_scored_it_says_why(workplace):
    (workplace / "mine.py").write_text(
        "def reward(completions, **kwargs):\n    return [float('nan')] * len(completions)\n"
    )
    with pytest.raises(VerifierError, match="no problem has two attempts that could be scored, for example: accuracy"):
        screening.screen("model", Problems(), SETTINGS, check="mine.py:reward", limit=2)


def test_a_hopeless_model_gets_no_false_hope(earned):
    row = row_of(earned(*UNTRAINED, "--options.terms", "[5,5]", "--json"))
    assert row["never_share"] == 1 and row["pass_rate"]["mean"] == 0
    assert all(group["share"] == 0 and group["high"] > 0 for group in row["groups"])
    assert "100% of the problems were never solved: give easier ones" in row["advice"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-k", "1"), "samples: 1 attempt has nothing to be compared with"),
        (("-k", "0"), "samples: .*, not 0"),
        (("--group-size", ""), "--group-size: whole numbers .*, not ''"),
        (("--group-size", "4,x"), "--group-size: whole numbers .*, not '4,x'"),
        (("--group-size", "1,4"), "group_size: sizes of 2 or more, for example 4,8,16, not 1,4"),
        (("--group-size", "-2"), "group_size: sizes of 2 or more"),
        (("--limit", "0"), "limit: at least 1 problem, not 0"),
        (("--problems", "some"), "unknown source 'some'"),
        (("--problems", "words.jsonl"), "words.jsonl: not one of its problems has an answer that the check 'number'"),
        (("--check", "constant"), "'constant' does not compare with the right"),
        (("--options.term", "[2,2]"), r"problems\.options\.term: unknown key"),
        (("--temperature", "-1"), "temperature: .*, not -1"),
        (("--template", "no place"), r"problems\.template: \{prompt\} has to stand"),
    ],
)
def test_a_mistake_costs_one_sentence(earned, workplace, words, message):
    write(workplace / "words.jsonl", [{"question": f"which fruit {n}?", "answer": "pear"} for n in range(20)])
    ended = earned(*UNTRAINED[:2], *words)
    assert (ended.code, ended.out) == (2, "") and "Traceback" not in ended.err
    assert re.search(message, " ".join(ended.err.split())), ended.err


def test_no_sizes_are_refused_in_python_too():
    with pytest.raises(RecipeError, match="not none"):
        screening.screen("model", Problems(), SETTINGS, group_sizes=())
