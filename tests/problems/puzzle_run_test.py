"""A run and an evaluation on puzzles, whose checks go by the columns of the problems."""

import json

import pytest
from tests.own_file import lay_out

from earned import api
from earned.cli.main import main
from earned.recipe import Recipe
from earned.recipe_file import load
from earned.records.reader import RunReader
from earned.records.run_folder import run_database


@pytest.fixture
def folder(tmp_path, monkeypatch):
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "check", "options"),
    [
        ("countdown", "countdown", "{ numbers = [2, 2] }"),
        ("reasoning_gym:gcd", "reasoning_gym", "{ max_value = 9 }"),
    ],
)
def test_a_run_judges_every_attempt_and_measures(folder, source, check, options):
    if check == "reasoning_gym":
        pytest.importorskip("reasoning_gym")
    flags = {
        "problems.source": source,
        "problems.options": options,
        "problems.train": "8",
        "problems.validation": "2",
        "problems.held_out": "4",
        "rewards.answer.check": check,
        "evaluation.check": check,
    }
    result = api.train(load(Recipe, folder / "my.toml", flags, environment={}))
    reader = RunReader(run_database(result.run))
    assert {problem.source for problem in reader.problems()} == {source}
    rows = reader.completions(step=1, phase="train")
    assert len(rows) == 8 and all(row.reward == 0 for row in rows), "judged, and the model was never trained"
    assert result.after is not None and (result.after.problems, result.after.mean) == (4, 0)


def test_an_evaluation_of_a_built_in_puzzle(folder, capsys):
    main(["eval", "untrained", "--problems", "countdown", "--check", "countdown", "--limit", "3", "--json"])
    row = json.loads(capsys.readouterr().out)
    assert row["problems"] == 3 and row["mean"] == 0
