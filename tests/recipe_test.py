from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from earned.errors import RecipeError, did_you_mean
from earned.pretrain_recipe import PretrainRecipe
from earned.recipe import EveryN, Recipe
from earned.recipe_file import load, nested, shipped, to_toml, validate

ANSWER = {"rewards": {"answer": {"check": "number"}}}
RECIPES = sorted((Path(__file__).parents[1] / "recipes").glob("*.toml"))


def written(folder: Path, text: str) -> Path:
    file = folder / "run.toml"
    file.write_text(text, encoding="utf-8")
    return file


def refusal(table: dict[str, Any], kind: type[Recipe] | type[PretrainRecipe] = Recipe) -> str:
    with pytest.raises(RecipeError) as raised:
        validate(kind, table)
    assert raised.value.exit_code == 2
    assert raised.value.__suppress_context__, "no traceback of pydantic"
    return str(raised.value)


def test_defaults_then_file_then_environment_then_flags(tmp_path):
    file = written(
        tmp_path,
        """
        steps = 2
        seed = 2
        model = "two"
        [rewards.answer]
        check = "number"
        [sampling]
        group_size = 2
        max_new_tokens = 2
        """,
    )
    environment = {"EARNED_SEED": "3", "EARNED_MODEL": "three", "EARNED_SAMPLING__MAX_NEW_TOKENS": "3", "PATH": "/bin"}
    recipe = load(Recipe, file, {"model": "four", "optim.learning-rate": "4e-4"}, environment)
    assert recipe.max_empty_steps == 20, "default"
    assert (recipe.steps, recipe.sampling.group_size) == (2, 2), "file"
    assert (recipe.seed, recipe.sampling.max_new_tokens) == (3, 3), "environment"
    assert (recipe.model, recipe.optim.learning_rate) == ("four", 4e-4), "flags"


def test_the_environment_of_the_process_is_read_and_the_folder_of_runs_is_no_recipe_key(monkeypatch):
    flags = {"rewards.answer.check": "number"}
    monkeypatch.setenv("EARNED_HOME", "elsewhere")
    monkeypatch.setenv("EARNED_REWARDS__ANSWER__WEIGHT", "0.5")
    assert load(Recipe, flags=flags).rewards.parts["answer"].weight == 0.5
    assert load(Recipe, flags=flags, environment={}).rewards.parts["answer"].weight == 1.0


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("3e-4", 3e-4), ("true", True), ("[2, 3]", [2, 3]), ('"7"', "7"), ("tiny", "tiny"), ("a/b-c", "a/b-c")],
)
def test_flags_are_toml_values_or_else_plain_words(text, value):
    assert nested({"options.x": text}) == {"options": {"x": value}}


def test_a_flag_into_a_value_is_refused():
    with pytest.raises(RecipeError, match=r"problems\.source\.name: source is a value, not a table"):
        load(Recipe, None, {"problems.source": "sums", "problems.source.name": "x"}, {})


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        ({"stepz": 3}, "stepz: unknown key. Did you mean 'steps'?"),
        ({"sampling": {"group_sise": 3}}, "sampling.group_sise: unknown key. Did you mean 'group_size'?"),
        (
            {"rewards": {"answer": {"check": "number", "wieght": 2}}},
            "rewards.answer.wieght: unknown key. Did you mean 'weight'?",
        ),
        ({"checkpoint": {"xyz": 3}}, "checkpoint.xyz: unknown key. Known here: every, keep_last."),
    ],
)
def test_an_unknown_key_is_named_in_full_with_the_nearest(extra, sentence):
    assert refusal(ANSWER | extra) == sentence


def test_an_unknown_key_inside_a_list():
    phases = [{"steps": 1, "long_share": 0.5, "long_shore": 0.5}]
    assert refusal({"phases": phases}, PretrainRecipe) == "phases.0.long_shore: unknown key. Did you mean 'long_share'?"


def test_an_unknown_key_inside_a_choice():
    assert "Did you mean 'every'?" in refusal(ANSWER | {"records": {"tokens": {"evry": 3}}})


@pytest.mark.parametrize(
    ("extra", "field", "value"),
    [
        ({"steps": 0}, "steps", "0"),
        ({"steps": 2.5}, "steps", "2.5"),
        ({"steps": "many"}, "steps", "'many'"),
        ({"seed": -1}, "seed", "-1"),
        ({"model": 7}, "model", "7"),
        ({"sampling": {"group_size": 0}}, "sampling.group_size", "0"),
        ({"sampling": {"group_size": -3}}, "sampling.group_size", "-3"),
        ({"sampling": {"temperature": 0}}, "sampling.temperature", "0"),
        ({"sampling": {"temperature": float("nan")}}, "sampling.temperature", "nan"),
        ({"sampling": {"engine": "magic"}}, "sampling.engine", "'magic'"),
        ({"optim": {"learning_rate": -1.0}}, "optim.learning_rate", "-1.0"),
        ({"optim": {"learning_rate": float("inf")}}, "optim.learning_rate", "inf"),
        ({"optim": {"betas": [0.9, 2.0]}}, "optim.betas.1", "2.0"),
        ({"optim": {"precision": "float8"}}, "optim.precision", "'float8'"),
        ({"optim": 3}, "optim", "3"),
        ({"rewards": {"answer": "number"}}, "rewards.answer", "'number'"),
        ({"rewards": {"answer": {"check": "number", "weight": "big"}}}, "rewards.answer.weight", "'big'"),
        ({"rewards": {"allow": ["cheating"], "answer": {"check": "number"}}}, "rewards.allow.0", "'cheating'"),
        ({"evaluation": {"every": 0}}, "evaluation.every", "0"),
        ({"records": {"tokens": "some"}}, "records.tokens", "'some'"),
        ({"records": {"tokens": {"every": 0}}}, "records.tokens", "0"),
    ],
)
def test_a_refused_value_is_named_with_its_field(extra, field, value):
    sentence = refusal(ANSWER | extra)
    assert sentence.startswith(field)
    assert all(line.endswith(f"not {value}") or "records" in line for line in sentence.splitlines())
    assert value in sentence


def test_every_fault_is_named_at_once():
    lines = refusal({"stepz": 3, "sampling": {"group_size": 0}}).splitlines()
    assert sorted(line.split(":")[0] for line in lines) == ["rewards", "sampling.group_size", "stepz"]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({}, "rewards: required, but not given"),
        ({"rewards": {"answer": {"weight": 2}}}, "rewards.answer.check: required, but not given"),
        ({"rewards": {}}, "rewards: no part given"),
        ({"rewards": {"allow": ["random_reward"]}}, "rewards: no part given"),
        (ANSWER | {"optim": {"learning_rate": 0}}, "optim.learning_rate: 0 trains nothing"),
        (
            ANSWER | {"problems": {"train": 50}, "sampling": {"prompts_per_step": 51}},
            "sampling.prompts_per_step: 51 is more than the 50 training problems",
        ),
        (
            ANSWER | {"sampling": {"prompts_per_step": 4}, "algorithm": {"mini_batches": 5}},
            "algorithm.mini_batches: 5 is more than the 4 prompts of a step",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(table, sentence):
    assert refusal(table).startswith(sentence)


def test_controls_are_possible_when_named():
    allowed = {"rewards": {"allow": ["zero_learning_rate"], "answer": {"check": "number"}}}
    assert validate(Recipe, allowed | {"optim": {"learning_rate": 0}}).optim.learning_rate == 0
    other = {"rewards": {"allow": ["random_reward"], "answer": {"check": "number"}}}
    assert "zero_learning_rate" in refusal(other | {"optim": {"learning_rate": 0}})


def test_bounds_that_just_hold():
    recipe = validate(
        Recipe,
        ANSWER
        | {
            "problems": {"train": 4},
            "sampling": {"prompts_per_step": 4, "group_size": 1},
            "algorithm": {"mini_batches": 4},
        },
    )
    assert recipe.sampling.group_size == 1


def test_parts_keep_the_order_of_the_file(tmp_path):
    file = written(tmp_path, '[rewards.zebra]\ncheck = "number"\n[rewards.ape]\ncheck = "exact"\nweight = -0.5\n')
    parts = load(Recipe, file, environment={}).rewards.parts
    assert [(name, part.check, part.weight) for name, part in parts.items()] == [
        ("zebra", "number", 1.0),
        ("ape", "exact", -0.5),
    ]


def test_values_never_change():
    with pytest.raises(ValidationError):
        validate(Recipe, ANSWER).seed = 3


def test_the_resolved_recipe_reads_back_equal(tmp_path):
    recipe = validate(
        Recipe,
        {
            "seed": 7,
            "model": 'folder "quoted" ü\\n',
            "problems": {"options": {"terms": [3, 5], "deep": {"share": 1e-7, "on": True}}},
            "rewards": {
                "allow": ["random_reward", "single_sample"],
                "answer": {"check": "number", "weight": 0.1},
                "luck": {"check": "random", "options": {"p": 0.5}},
            },
            "algorithm": {"name": "ppo", "clip_high": 0.28},
            "optim": {"learning_rate": 3.3e-6, "betas": [0.5, 0.75]},
            "records": {"tokens": {"every": 10}},
        },
    )
    assert recipe.records.tokens == EveryN(every=10) and recipe.algorithm.clip_low is None
    again = load(Recipe, written(tmp_path, to_toml(recipe)), environment={})
    assert again == recipe
    assert to_toml(again) == to_toml(recipe)
    assert list(again.rewards.parts) == ["answer", "luck"]


@settings(deadline=None)
@given(st.floats(0, 1, exclude_min=True), st.integers(1, 10**6))
def test_numbers_survive_exactly(tmp_path_factory, rate, steps):
    recipe = validate(Recipe, ANSWER | {"steps": steps, "optim": {"learning_rate": rate}})
    file = written(tmp_path_factory.mktemp("recipe"), to_toml(recipe))
    assert load(Recipe, file, environment={}) == recipe


def test_a_pretraining_recipe_reads_back_equal(tmp_path):
    recipe = validate(
        PretrainRecipe, {"phases": [{"steps": 3, "long_share": 0.8}, {"steps": 4, "long_share": 0.2}], "seed": 3}
    )
    assert recipe.steps == 7
    assert load(PretrainRecipe, written(tmp_path, to_toml(recipe)), environment={}) == recipe
    assert "phases" in refusal({"phases": []}, PretrainRecipe)


def test_a_missing_file(tmp_path):
    with pytest.raises(RecipeError, match=r"nowhere\.toml: no such recipe file"):
        load(Recipe, tmp_path / "nowhere.toml", environment={})
    with pytest.raises(RecipeError, match="no such recipe file"):
        load(Recipe, tmp_path, environment={})


@pytest.mark.parametrize("content", [b"steps = ", b"steps = 1\nsteps = 2", b"[rewards", b"model = '\xff'"])
def test_malformed_toml(tmp_path, content):
    file = tmp_path / "run.toml"
    file.write_bytes(content)
    with pytest.raises(RecipeError, match=r"run\.toml: not valid TOML: "):
        load(Recipe, file, environment={})


def test_did_you_mean_stays_silent_when_nothing_is_near():
    assert did_you_mean("grpoo", ["ppo", "grpo"]) == " Did you mean 'grpo'?"
    assert did_you_mean("zzz", ["ppo", "grpo"]) == ""


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_every_recipe_of_the_repository_loads(file):
    kind = PretrainRecipe if file.stem == "tiny_base" else Recipe
    recipe = load(kind, file, environment={})
    assert recipe.steps >= 1
    assert shipped(file.stem) == file


def test_shipped_recipes_are_found_by_name():
    assert shipped("tiny_sums") in RECIPES
    with pytest.raises(RecipeError, match="no shipped recipe 'no_such'"):
        shipped("no_such")
