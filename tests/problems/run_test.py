"""A run and an evaluation on the user's own file."""

import json

import pytest
from tests.own_file import lay_out

from earned import api
from earned.cli.main import main
from earned.errors import RecipeError
from earned.recipe import Recipe
from earned.recipe_file import load
from earned.records.reader import RunReader
from earned.records.run_folder import run_database
from earned.vocabulary import Split


class Notes(api.Silence):
    def __init__(self):
        self.heard = []

    def said(self, text):
        self.heard.append(text)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rows = [{"question": f"{n}+{n + 7}=", "answer": f"{n} and {n + 7}\n#### {2 * n + 7}"} for n in range(10, 80)]
    (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[3]]))
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_trains_on_the_file_and_records_what_was_found(folder):
    listener = Notes()
    result = api.train(load(Recipe, folder / "my.toml"), listener=listener)
    reader = RunReader(run_database(result.run))
    problems = reader.problems()
    assert len(problems) == 70 and {problem.source for problem in problems} == {"my.jsonl"}
    assert {problem.gold for problem in problems} == {str(2 * n + 7) for n in range(10, 80)}
    said = [event.text for event in reader.events() if event.kind == "problems"]
    assert said == listener.heard[:4] and listener.heard[4].startswith("1 step of 8 completions: at most 64 tokens, ")
    assert said[0] == "my.jsonl: 71 rows; prompt from 'question'; gold from 'answer', the text after ####"
    assert said[2] == "1 row left out (line 71): the same prompt and gold as an earlier row"
    assert said[3].startswith("used: ") and said[3].endswith("(the recipe asks for at most 4,096, 256, 256)")
    held_out = sum(problem.split == Split.HELD_OUT for problem in problems)
    assert result.after is not None and result.after.problems == held_out


def test_an_evaluation_counts_the_held_out_problems_of_the_file(folder, capsys):
    main(
        [
            "eval",
            "untrained",
            "--problems",
            "my.jsonl",
            "--samples",
            "1",
            "--max-new-tokens",
            "4",
            "--limit",
            "3",
            "--json",
        ]
    )
    assert json.loads(capsys.readouterr().out)["problems"] == 3


def test_a_step_larger_than_the_file_is_refused_before_anything_is_written(folder):
    with pytest.raises(
        RecipeError, match=r"sampling\.prompts_per_step: 64 is more than the \d\d training problems of my"
    ):
        api.train(load(Recipe, folder / "my.toml", {"sampling.prompts_per_step": "64"}))
    assert not (folder / "runs").exists()
