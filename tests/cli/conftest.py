import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from earned.cli.main import main
from earned.policy.load import save_policy
from earned.policy.tiny import untrained_policy
from earned.pretrain_recipe import PretrainModel

RECIPE = """
steps = 2
model = "model"
[problems]
options = { terms = [2, 2], digits = 1 }
train = 16
validation = 3
held_out = 6
[rewards]
allow = ["random_reward"]
[rewards.luck]
check = "random"
[sampling]
prompts_per_step = 4
group_size = 4
max_new_tokens = 8
[optim]
learning_rate = 1e-3
[evaluation]
samples = 2
"""


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def saved_model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    shape = PretrainModel(hidden_size=32, layers=2, heads=2, intermediate_size=64)
    save_policy(untrained_policy(shape, seed=0), folder)
    return folder


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("EARNED_", "FORCE_COLOR"))}


@pytest.fixture
def workplace(tmp_path, saved_model, monkeypatch) -> Path:
    """The current folder of a test: a recipe and a model, and nothing else."""
    (tmp_path / "recipe.toml").write_text(RECIPE)
    (tmp_path / "model").symlink_to(saved_model)
    monkeypatch.chdir(tmp_path)
    for name in set(os.environ) - set(clean_environment()):
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def earned(workplace, capsys) -> Iterator[Callable[..., Ended]]:
    """Run a command in this process; an error that is not turned into a sentence is raised here."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def run(*words: str) -> Ended:
        code = 0
        try:
            main(list(words))
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def process(workplace) -> Callable[..., Ended]:
    """Run a command in a process of its own, whose output goes to pipes."""

    def run(*words: str) -> Ended:
        command = [sys.executable, "-m", "earned", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=workplace, env=clean_environment())
        return Ended(done.returncode, done.stdout, done.stderr)

    return run
