"""Every recipe in `recipes/` runs two steps with the built-in model; those of a real model also with it, if slow."""

import json
from pathlib import Path

import pytest

from earned import api
from earned.policy.pull import pull_model
from earned.pretrain_recipe import PretrainRecipe
from earned.recipe import Recipe
from earned.recipe_file import load
from earned.records.reader import RunReader

RECIPES = sorted((Path(__file__).parents[1] / "recipes").glob("*.toml"))
PRETRAINING = {"tiny_base"}
SMALL = {
    "steps": "2",
    "sampling.prompts_per_step": "4",
    "sampling.group_size": "4",
    "problems.train": "16",
    "problems.validation": "4",
    "problems.held_out": "8",
}


TRAINING = [path for path in RECIPES if path.stem not in PRETRAINING]
REAL = [path for path in TRAINING if path.stem.startswith("smollm2")]


def flags_for(path, folder):
    """Return the flags of a short run; a recipe that leaves its file to the user gets one."""
    if path.stem != "smollm2_word_problems":
        return SMALL
    file = folder / "word_problems.jsonl"
    rows = [{"question": f"Ann has {n} pens and gets {n + 1}. How many?", "answer": 2 * n + 1} for n in range(80)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return SMALL | {"problems.source": str(file)}


def runs_two_steps(path, folder, flags):
    result = api.train(load(Recipe, path, flags, environment={}), api.RunOptions(runs=folder))
    assert result.finished
    assert [row.step for row in RunReader(result.run).steps()] == [1, 2]


@pytest.mark.parametrize("path", TRAINING, ids=lambda path: path.stem)
def test_training_recipe(path, tmp_path):
    flags = flags_for(path, tmp_path)
    if path in REAL:
        flags = flags | {"model": "tiny", "rewards.allow": '["no_signal"]'}
    runs_two_steps(path, tmp_path, flags)


@pytest.mark.slow
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_training_recipe_with_its_own_model(path, tmp_path):
    pull_model(load(Recipe, path, environment={}).model)
    runs_two_steps(path, tmp_path, flags_for(path, tmp_path))


@pytest.mark.parametrize("path", [path for path in RECIPES if path.stem in PRETRAINING], ids=lambda path: path.stem)
def test_pretraining_recipe(path, tmp_path):
    flags = {"phases": "[{steps = 2, long_share = 0.2}]", "optim.sequences_per_step": "8"}
    losses = []
    folder = api.pretrain_model(
        load(PretrainRecipe, path, flags, environment={}), tmp_path / "model", lambda step, loss: losses.append(loss)
    )
    assert len(losses) == 2 and (folder / "model.safetensors").stat().st_size < 4 * 2**20
