"""A folder with a recipe on the user's own file and a model that was never trained, for the tests that run in it."""

from pathlib import Path

from earned.policy.load import save_policy
from earned.policy.tiny import untrained_policy
from earned.pretrain_recipe import PretrainModel

RECIPE = """
steps = 1
model = "untrained"
[problems]
source = "my.jsonl"
[rewards]
allow = ["no_signal"]
[rewards.answer]
check = "number"
[sampling]
prompts_per_step = 4
group_size = 2
max_new_tokens = 8
[optim]
precision = "float32"
[evaluation]
samples = 1
watched = 2
"""
SMALL = PretrainModel(hidden_size=16, layers=1, heads=2, intermediate_size=16)


def lay_out(folder: Path) -> None:
    (folder / "my.toml").write_text(RECIPE)
    save_policy(untrained_policy(SMALL, seed=0), folder / "untrained")
