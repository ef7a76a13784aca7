"""Every recipe in `recipes/` runs two steps."""

from pathlib import Path

import pytest

from earned import api
from earned.recipe import PretrainRecipe, Recipe, load
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


@pytest.mark.parametrize("path", [path for path in RECIPES if path.stem not in PRETRAINING], ids=lambda path: path.stem)
def test_training_recipe(path, tmp_path):
    result = api.train(load(Recipe, path, SMALL, environment={}), api.RunOptions(runs=tmp_path))
    assert result.finished
    assert [row.step for row in RunReader(result.run).steps()] == [1, 2]


@pytest.mark.parametrize("path", [path for path in RECIPES if path.stem in PRETRAINING], ids=lambda path: path.stem)
def test_pretraining_recipe(path, tmp_path):
    flags = {"phases": "[{steps = 2, long_share = 0.2}]", "optim.sequences_per_step": "8"}
    losses = []
    folder = api.pretrain_model(
        load(PretrainRecipe, path, flags, environment={}), tmp_path / "model", lambda step, loss: losses.append(loss)
    )
    assert len(losses) == 2 and (folder / "model.safetensors").stat().st_size < 4 * 2**20
