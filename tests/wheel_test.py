"""The built wheel holds all it needs: model, recipes, types; and works outside the tree."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEMO = ["demo", "--steps", "2", "--sampling.prompts_per_step", "4", "--problems.held_out", "8", "--json"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_has_the_model_and_the_recipes(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "earned/policy/builtin/tiny/model.safetensors",
        "earned/policy/builtin/tiny/tokenizer.json",
        "earned/_recipes/tiny_sums.toml",
        "earned/py.typed",
    } <= names


def test_the_demo_runs_from_an_unpacked_wheel_outside_the_tree(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    where = [sys.executable, "-c", "import earned; print(earned.__file__)"]
    found = subprocess.run(where, env=environment, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert Path(found.strip()).is_relative_to(tmp_path)
    subprocess.run([sys.executable, "-m", "earned", *DEMO], env=environment, cwd=tmp_path, check=True)
    assert next((tmp_path / "runs").iterdir()).joinpath("run.sqlite").is_file()


@pytest.mark.slow
def test_the_demo_runs_in_a_clean_environment(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "clean")], check=True)
    python = tmp_path / "clean" / "bin" / "python"
    constraint = str(ROOT / "requirements" / "tested.txt")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-c", constraint, str(wheel)], check=True)
    subprocess.run([tmp_path / "clean" / "bin" / "earned", *DEMO], cwd=tmp_path, check=True)
