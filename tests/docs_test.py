"""Every command that the documents show is one that there is, with flags that there are."""

import re
import shlex
from pathlib import Path

import pytest
from cyclopts import CycloptsError

from earned.cli.flags import recipe_flags
from earned.cli.main import app
from earned.errors import RecipeError
from earned.pretrain_recipe import PretrainRecipe
from earned.recipe import Problems, Recipe
from earned.recipe_file import load, nested, shipped, validate
from earned.rewards.compose import Rewarder
from earned.vocabulary import Attempt, Problem, Split

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "AGENTS.md", "SKILL.md", "docs/rewards.md")
FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\.venv/bin/)?earned (.+)$", re.MULTILINE)


def commands(text):
    """Return what follows `earned` in the fenced lines that begin with it."""
    return [line for block in FENCED.findall(text) for line in COMMAND.findall(block)]


SHOWN = [(name, line) for name in DOCUMENTS for line in commands((ROOT / name).read_text(encoding="utf-8"))]


def require_understood(line):
    """Raise if the command line would not take the words; what is left to a recipe has to be keys of it."""
    words = shlex.split(line, comments=True)
    command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    flags = recipe_flags(bound.arguments.get("flags", ()))
    if command.__name__ in ("train", "demo", "check_reward"):
        load(Recipe, shipped("tiny_sums"), flags, environment={})
    elif command.__name__ == "pretrain":
        load(PretrainRecipe, shipped("tiny_base"), flags, environment={})
    elif flags:
        validate(Problems, {"source": "sums", **nested(flags)}, "problems")
    missing = [word for word in words if word.startswith("recipes/") and not (ROOT / word).is_file()]
    assert not missing, f"{missing} is not there"


@pytest.mark.parametrize(("name", "line"), SHOWN)
def test_a_command_that_is_shown_is_understood(name, line):
    require_understood(line)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_shows_commands(name):
    assert len([line for document, line in SHOWN if document == name]) >= 3


@pytest.mark.parametrize(
    "line",
    [
        "trian recipes/tiny_sums.toml",
        "runs shwo runs/a",
        "runs show runs/a --jsn",
        "train recipes/tiny_sums.toml --seedz 3",
        "train recipes/tiny_sums.toml --optim.learning_rat 1e-4",
        "train recipes/tiny_sums.toml --seeds three",
        "train recipes/nowhere.toml",
        "eval tiny --problem sums",
        "verify --cases my_cases.jsonl",
        "check-reward recipes/tiny_sums.toml --rewards.allow '[\"pays_anything\"]'",
        "train",
    ],
)
def test_a_command_that_there_is_not_is_found(line):
    with pytest.raises((CycloptsError, RecipeError, AssertionError)):
        require_understood(line)


def test_only_fenced_lines_that_begin_with_the_command_are_commands():
    block = "```\nearned b --c  # why\nsay earned d\n.venv/bin/earned e\n```\n"
    text = f"earned a\n{block}`earned f`\n```python\nimport earned\n```\n"
    assert commands(text) == ["b --c  # why", "e"]


def test_the_recipe_on_the_page_about_rewards_earns_what_it_says(tmp_path):
    page = (ROOT / "docs" / "rewards.md").read_text(encoding="utf-8")
    (recipe,) = [block for block in TOML.findall(page) if "gate" in block]
    (tmp_path / "recipe.toml").write_text(recipe, encoding="utf-8")
    reward = Rewarder.from_recipe(load(Recipe, tmp_path / "recipe.toml", environment={}).rewards)
    problem = Problem(id="p", prompt="47+58+19=", gold="124", source="sums", split=Split.TRAIN)
    texts = {"47+58=105;105+19=124;A124": 1.5, "A124": 1.0, "47+58=105;A105": 0.0}
    attempts = {
        text: Attempt(problem=problem, text=text, tokens=len(text), seed=0, step=1, rollout_id=text) for text in texts
    }
    assert {text: score.value for text, score in reward.score_all(attempts).items()} == texts
    assert all(f"`{text}`" in page for text in texts)


def test_the_skill_has_the_head_that_finds_it():
    head = (ROOT / "SKILL.md").read_text(encoding="utf-8").split("---")[1]
    assert re.search(r"^name: earned$", head, re.MULTILINE) and re.search(r"^description: .{50,}", head, re.MULTILINE)
