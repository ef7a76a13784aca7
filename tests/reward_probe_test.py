"""A reward tried before training: which ones are named, with what text, and which ones must not be."""

import json
from pathlib import Path

import pytest

import earned as library
from earned import api
from earned.errors import RecipeError
from earned.recipe import Recipe
from earned.recipe_file import load, validate
from earned.reward_probe import FOUND_BY, check_reward
from earned.rewards.probes import WRITINGS, ProbeKind, probes_of
from earned.vocabulary import Problem, Split

ROOT = Path(__file__).parents[1]
PRETRAINING = {"tiny_base"}
RECIPES = [path for path in sorted((ROOT / "recipes").glob("*.toml")) if path.stem not in PRETRAINING]

OWN = """
import itertools, re

CALLS = itertools.count()

def numbers(text):
    return re.findall(r"-?[0-9]+", text)

def substring(completions, answer, **kwargs):
    return [float(gold in text) for text, gold in zip(completions, answer)]

def any_number(completion, answer):
    return float(answer in numbers(completion))

def last_number(completion, answer):
    return float(numbers(completion)[-1:] == [answer])

def first_number(completion, answer):
    return float(numbers(completion)[:1] == [answer])

def echo(completion, answer, prompt):
    return float(prompt in completion or numbers(completion)[-1:] == [answer])

def form(completion):
    return float("<answer>" in completion)

def tags_only(completion, answer):
    return float(f"<answer>{answer}</answer>" in completion and completion.startswith("<think></think>"))

def thoughtful(completion, answer):
    return float(len(completion) > 100 and numbers(completion)[-1:] == [answer])

def empty_is_right(completion, answer):
    return float(not completion.strip() or numbers(completion)[-1:] == [answer])

def length(completion):
    return len(completion) / 1000

def brevity(completion):
    return -float(len(completion))

def always(completion):
    return 1.0

def never(completion):
    return 0.0

def broken(completion):
    raise ValueError("by design")

def own_mark(completion, answer):
    return float(completion == f"FINAL({answer})")

def raises_on_nothing(completion, answer):
    return float(numbers(completion)[-1] == answer)

def counting(completion, answer):
    return float(numbers(completion)[-1:] == [answer]) + next(CALLS) % 7

def centred(completions, answer, **kwargs):
    right = [float(numbers(text)[-1:] == [gold]) for text, gold in zip(completions, answer)]
    return [value - sum(right) / len(right) for value in right]

def noise(completion, answer):
    return float(numbers(completion)[-1:] == [answer]) * (1 + 1e-9 * (next(CALLS) % 7))
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)


def recipe(rewards, **problems):
    """Return a recipe on sums, with the parts of its reward; a check alone is one part."""
    parts = rewards if isinstance(rewards, dict) else {"answer": {"check": rewards}}
    few = {"train": 32, "validation": 0, "held_out": 0}
    table = {"rewards": parts, "problems": {"source": "sums", **few, **problems}}
    return validate(Recipe, {**table, "sampling": {"prompts_per_step": 4}})


def found(rewards, **problems):
    return {finding.name: finding for finding in check_reward(recipe(rewards, **problems)).findings}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_recipes_pass(path, tmp_path):
    flags = {}
    if path.stem == "smollm2_word_problems":
        rows = [{"question": f"Ann has {n} pens and gets {n + 1}. How many?", "answer": 2 * n + 1} for n in range(80)]
        (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        flags = {"problems.source": "my.jsonl"}
    report = check_reward(load(Recipe, path, flags, environment={}))
    assert report.findings == ()


@pytest.mark.parametrize("check", ["number", "exact", "own.py:last_number"])
def test_a_reward_that_reads_the_answer_passes(check):
    report = check_reward(recipe(check))
    assert report.findings == () and report.problems == 8
    results = {one.kind: one for one in report.kinds}
    assert list(results) == list(ProbeKind)
    assert results[ProbeKind.RIGHT].paid >= 8
    assert all(one.texts >= 8 for one in report.kinds)
    assert all(one.paid == 0 for kind, one in results.items() if kind is not ProbeKind.RIGHT)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        ("substring", {"pays_wrong_answer", "pays_listed_answers"}),
        ("any_number", {"pays_wrong_answer", "pays_listed_answers"}),
        ("first_number", {"pays_wrong_answer"}),
        ("echo", {"pays_echoed_prompt"}),
        ("form", {"pays_null_answer", "pays_wrong_answer"}),
        ("empty_is_right", {"pays_null_answer"}),
        ("brevity", {"refuses_gold"}),
        ("length", {"pays_null_answer", "pays_wrong_answer", "pays_listed_answers"}),
        ("always", {"pays_null_answer", "pays_wrong_answer", "pays_listed_answers", "pays_echoed_prompt"}),
        ("never", {"refuses_gold"}),
        ("own_mark", {"refuses_gold"}),
        ("broken", {"judges_nothing"}),
        ("counting", {"not_deterministic"}),
        ("centred", {"not_deterministic"}),
        ("tags_only", set()),
        ("thoughtful", set()),
        ("raises_on_nothing", set()),
        ("noise", set()),
    ],
)
def test_what_is_named(function, names):
    shown = set(found(f"own.py:{function}"))
    assert names <= shown if function in ("length", "counting", "brevity") else names == shown


@pytest.mark.parametrize(
    ("function", "name", "text"),
    [
        ("substring", "pays_wrong_answer", "It is not {gold}.\n#### "),
        ("form", "pays_null_answer", "<think></think><answer></answer>"),
        ("empty_is_right", "pays_null_answer", ""),
        ("always", "pays_null_answer", ""),
        ("never", "refuses_gold", "#### {gold}"),
    ],
)
def test_a_finding_shows_the_text_what_it_earned_and_what_to_do(function, name, text):
    finding = found(f"own.py:{function}")[name]
    probe = finding.tried.probe
    assert probe.text.startswith(text.format(gold=probe.problem.gold)) and (text or probe.text == "")
    assert finding.sentence.startswith(f"{name}: ") and repr(probe.text) in finding.sentence
    earned = f"earns {finding.tried.first.value:g}, where a right answer earns"
    assert earned in finding.sentence and f"answer: own.py:{function} gave" in finding.sentence


def test_a_long_text_is_cut_in_the_sentence_and_whole_in_the_finding():
    finding = found("own.py:length")["pays_null_answer"]
    assert len(finding.sentence) < 700
    listed = found("own.py:any_number")["pays_listed_answers"]
    assert len(listed.tried.probe.text) > 20 and len(listed.sentence) < 700


ANSWER, FORM = {"check": "number"}, {"check": "own.py:form"}


@pytest.mark.parametrize(
    "parts",
    [
        {"answer": ANSWER, "form": {**FORM, "weight": 0.1}},
        {"answer": ANSWER, "form": {**FORM, "weight": 1.0}},
        {"answer": {**ANSWER, "weight": 0.5}, "form": {**FORM, "weight": 1.0}},
        {"answer": ANSWER, "short": {"check": "own.py:brevity", "weight": 1e-5}},
        {"answer": ANSWER, "base": {"check": "constant", "options": {"value": -1}}},
        {"answer": {**ANSWER, "weight": 2.0}, "luck": {"check": "random", "weight": 0.5}},
    ],
    ids=["bonus", "as much for form", "more for form", "brevity", "penalty", "a little luck"],
)
def test_small_parts_beside_the_answer_are_not_taken_for_it(parts):
    assert found(parts) == {}


def test_a_part_that_outweighs_the_answer_is_named():
    assert "pays_null_answer" in found({"answer": ANSWER, "length": {"check": "own.py:length", "weight": 1.0}})


def test_controls_that_are_allowed_by_name_are_not_tried():
    for check, word in (("random", "random_reward"), ("constant", "constant_reward")):
        report = check_reward(recipe({"allow": [word], "luck": {"check": check}}))
        assert report.problems == 0 and report.findings == ()


def test_problems_without_answers_get_only_what_needs_none():
    Path("kind.jsonl").write_text("".join(f'{{"question": "Be kind to {n}."}}\n' for n in range(40)))
    report = check_reward(recipe("own.py:brevity", source="kind.jsonl", train=16))
    assert report.findings == () and report.kinds == () and report.problems == 8
    assert set(found("own.py:broken", source="kind.jsonl", train=16)) == {"judges_nothing"}
    assert set(found("own.py:counting", source="kind.jsonl", train=16)) == {"not_deterministic"}


def test_golds_that_are_words_or_all_the_same_are_tried_too():
    rows = [{"question": f"Is {n} even?", "answer": "yes" if n % 2 == 0 else "no"} for n in range(40)]
    Path("words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert found("exact", source="words.jsonl", train=16) == {}
    assert "pays_wrong_answer" in found("own.py:substring", source="words.jsonl", train=16)
    same = [{"question": f"Is {n} a number?", "answer": "yes"} for n in range(40)]
    Path("same.jsonl").write_text("".join(json.dumps(row) + "\n" for row in same))
    assert found("exact", source="same.jsonl", train=16) == {}
    assert "pays_wrong_answer" in found("own.py:always", source="same.jsonl", train=16)


def test_no_text_that_must_earn_nothing_gives_the_right_answer():
    problem = Problem(id="p", prompt="1+1=", gold="2", source="sums", split=Split.TRAIN)
    probes = list(probes_of(problem, ["2", "2.0", "3", "40"]))
    assert {probe.writing for probe in probes if probe.kind is ProbeKind.RIGHT} >= {*WRITINGS}
    for probe in probes:
        if probe.kind in (ProbeKind.NOTHING, ProbeKind.WRONG, ProbeKind.CONSTANT):
            assert "2" not in probe.text
        if probe.kind is ProbeKind.LISTED:
            assert "2" in probe.text and not probe.text.startswith("2") and not probe.text.endswith("2")
    assert set(FOUND_BY) == set(ProbeKind)


def substring(completions, answer, **kwargs):
    return [float(gold in text) for text, gold in zip(completions, answer, strict=True)]


def test_training_refuses_before_a_model_is_loaded_and_trains_what_is_allowed(tmp_path, small_model):
    table = {
        "steps": 1,
        "model": "nowhere",
        "problems": {"train": 16, "validation": 0, "held_out": 4},
        "sampling": {"prompts_per_step": 2, "group_size": 2, "max_new_tokens": 4},
        "evaluation": {"samples": 1, "watched": 0},
        "optim": {"precision": "float32"},
    }
    hole = {"hole": {"check": "own.py:substring"}}
    for reward, rewards in ((None, hole), (substring, {"answer": ANSWER})):
        with pytest.raises(RecipeError, match=r"pays_wrong_answer: the right answer in passing, .*\n") as refused:
            api.train(validate(Recipe, {**table, "rewards": rewards}), api.RunOptions(runs=tmp_path), reward=reward)
        assert 'rewards.allow = ["pays_wrong_answer", "pays_listed_answers"]' in str(refused.value)
    allow = {"allow": ["pays_wrong_answer", "pays_listed_answers", "no_signal"]}
    meant = validate(Recipe, {**table, "model": small_model, "rewards": {**hole, **allow}})
    assert api.train(meant, api.RunOptions(runs=tmp_path)).finished


def test_one_allowed_finding_does_not_allow_another():
    report = check_reward(recipe({"allow": ["pays_listed_answers"], "hole": {"check": "own.py:substring"}}))
    assert [(one.name, one.allowed) for one in report.findings] == [
        ("pays_wrong_answer", False),
        ("pays_listed_answers", True),
    ]
    assert [one.name for one in report.refused] == ["pays_wrong_answer"]


def test_the_library_has_it_for_functions_handed_over_too():
    report = library.check_reward(recipe("python"), reward=substring)
    assert isinstance(report, library.RewardReport)
    assert [one.name for one in report.findings] == ["pays_wrong_answer", "pays_listed_answers"]


STEPS = {"check": "steps", "weight": 0.5}


@pytest.mark.parametrize(
    "parts",
    [
        {"answer": {**ANSWER, "gate": "steps"}, "steps": {**STEPS, "weight": 0.0}},
        {"answer": ANSWER, "steps": {**STEPS, "gate": "answer"}},
        {"answer": ANSWER, "steps": STEPS, "length": {"check": "length", "options": {"max_tokens": 48}}},
    ],
    ids=["no answer without steps", "steps behind the answer", "both, and length"],
)
def test_rewards_that_want_a_derivation_are_shown_one(parts):
    assert found(parts) == {}
    results = {one.kind: one for one in check_reward(recipe(parts)).kinds}
    assert results[ProbeKind.RIGHT].paid >= 8


@pytest.mark.parametrize(
    ("prompt", "gold", "steps"),
    [
        ("Ann has 12 pens and loses 5.", "7", "12-5=7"),
        ("5 of 12 pens are lost.", "7", "12-5=7"),
        ("48 eggs, 6 a box, 2 dollars a box?", "16", "48/6=8\n8*2=16"),
        ("1+2+3+4+5+6=", "21.0", "1+2=3\n3+3=6\n6+4=10\n10+5=15\n15+6=21.0"),
    ],
)
def test_a_derivation_is_made_of_the_numbers_of_the_prompt(prompt, gold, steps):
    problem = Problem(id="p", prompt=prompt, gold=gold, source="sums", split=Split.TRAIN)
    rights = [probe.text for probe in probes_of(problem, [gold]) if probe.kind is ProbeKind.RIGHT]
    assert len(rights) == len(WRITINGS) + 1 and rights[-1] == f"{steps}\n#### {gold}"


@pytest.mark.parametrize(
    ("prompt", "gold"), [("How many?", "7"), ("7 of 0", "8"), ("1.5 and 2", "3"), ("Is 2 even?", "yes")]
)
def test_where_no_simple_derivation_leads_to_the_gold_there_is_none(prompt, gold):
    problem = Problem(id="p", prompt=prompt, gold=gold, source="sums", split=Split.TRAIN)
    assert sum(probe.kind is ProbeKind.RIGHT for probe in probes_of(problem, [gold])) == len(WRITINGS)
