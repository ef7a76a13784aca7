"""`import earned`: quick, and everything the command line does is there."""

import subprocess
import sys

import pytest

import earned
from earned.recipe_file import shipped
from earned.records.reader import RunReader
from earned.training.checkpoints import checkpoints
from earned.vocabulary import Split

SECONDS = 0.3
SMALL = {
    "steps": "2",
    "model": "tiny",
    "sampling.prompts_per_step": "4",
    "sampling.group_size": "4",
    "problems.train": "16",
    "problems.validation": "0",
    "problems.held_out": "4",
    "checkpoint.every": "1",
}


def in_a_new_process(code):
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)


def test_import_is_quick_and_needs_no_torch():
    code = (
        "import time; cpu = time.process_time(); import earned; cpu = time.process_time() - cpu; import sys;"
        f"assert cpu < {SECONDS}, cpu; assert not {{'torch', 'pydantic', 'numpy'}} & set(sys.modules)"
    )
    ended = in_a_new_process(code)
    assert ended.returncode == 0, ended.stderr


def test_a_recipe_is_read_without_torch():
    code = "import earned, sys; earned.Recipe; earned.load_recipe; earned.EarnedError; sys.exit('torch' in sys.modules)"
    assert in_a_new_process(code).returncode == 0


def test_algorithms_are_within_reach():
    code = (
        "import earned, torch; rewards = torch.tensor([[1.0, 0.0, 1.0, 0.0]]);"
        "found = earned.algorithms.advantages.group_relative(rewards).tolist();"
        "assert found == [[1.0, -1.0, 1.0, -1.0]]; earned.algorithms.surrogates.ppo_clip"
    )
    ended = in_a_new_process(code)
    assert ended.returncode == 0, ended.stderr


def test_every_name_is_there_and_listed():
    names = [name for name in dir(earned) if not name.startswith("_")]
    wanted = {"train", "resume", "evaluate", "sample", "pretrain", "load_recipe", "pull_model", "algorithms", "FewShot"}
    assert wanted <= set(names)
    assert all(getattr(earned, name) is not None for name in names)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        earned.trian  # noqa: B018


def test_an_evaluation_says_what_it_found_about_every_problem():
    settings = earned.SamplingSettings(group_size=2, temperature=1.0, max_new_tokens=48)
    measured = earned.evaluate("tiny", earned.Problems(held_out=4), settings)
    assert isinstance(measured, earned.Measured) and measured.result.split is Split.HELD_OUT
    assert (measured.result.problems, measured.result.units, measured.result.samples) == (4, 4, 2)
    assert [problem.samples for problem in measured.problems] == [2] * 4
    assert measured.result.mean == sum(problem.right for problem in measured.problems) / 8
    assert earned.evaluate("tiny", earned.Problems(held_out=4), settings) == measured, "the same call, the same numbers"
    assert earned.evaluate("tiny", earned.Problems(), settings, limit=4) == measured


def test_three_lines_train_and_every_checkpoint_has_a_card(tmp_path):
    recipe = earned.load_recipe(shipped("tiny_sums"), SMALL)
    result = earned.train(recipe, earned.RunOptions(runs=tmp_path, name="a", recipe_name="tiny_sums"))
    cards = [(folder / "README.md").read_text() for folder in checkpoints(result.run / "checkpoints")]
    assert [card.splitlines()[6] for card in cards] == ["# a, step 1", "# a, step 2"]
    assert all("| recipe | tiny_sums," in card and f"earned {earned.__version__}" in card for card in cards)
    last = RunReader(result.run).evaluations(Split.HELD_OUT)[-1]
    assert f"held-out accuracy at step 2 | {last.mean:.3f} [{last.low:.3f}, {last.high:.3f}]" in cards[1]
    assert "held-out accuracy at step 2" not in cards[0]
    assert [step for step, _ in RunReader(result.run).metric("behaviour/long_share")] == [1, 2]
