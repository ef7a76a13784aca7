"""Loss and gradient of the same batch, here and in TRL.

    make bench-peers                                    (makes .venv-trl, where TRL lives, then runs this)
    python bench/trl_equality.py [--trl PYTHON] [--quick] [--json]

An untrained model samples 6 x 8 completions. Both sides get their token ids and rewards, and two sets of weights: those
that sampled, and others on which ratios are far from 1 and some tokens are clipped. From these each side makes its own
advantages, log-probabilities, loss and gradient; TRL's is the installed trainer (`peers/trl_loss.py`), ours the updater
of a run, in several layouts of micro-batches. TRL adds 1e-4 to the deviation that it divides by, and so does the
advantage used here; a row without it shows what that alone makes. The bar is 1e-5, for the difference of the losses and
for the distance of the gradients in norms of TRL's. Advantages are float32 on both sides, so that
float64 ends at about 1e-7 too.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import torch
from one_update import Measured, assembled, batch_of, measure, set_weights
from peers.double_precision import in_double_precision
from safetensors.torch import load_file, save_file
from torch import Tensor

from earned.algorithms.advantages import group_centered, group_relative_sample
from earned.algorithms.named import ALGORITHMS, Algorithm, Overrides, resolve
from earned.assembly import Assembled
from earned.cli.json_line import write_json
from earned.policy.load import save_policy
from earned.policy.tiny import untrained_policy
from earned.pretrain_recipe import PretrainModel
from earned.recipe import Recipe
from earned.recipe_file import load
from earned.vocabulary import RolloutGroup

BAR = 1e-5
TRL_PYTHON = Path(__file__).parents[1] / ".venv-trl" / "bin" / "python"
LAYOUTS = {"one batch": 10**6, "packed": 300, "row by row": 1}
"""Most tokens of a micro-batch."""
NOISE = 0.02
"""Deviation of what the weights trained on differ by from those that sampled."""
TRL_EPSILON = 1e-4


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One algorithm in the words of both sides."""

    algorithm: Algorithm
    settings: Mapping[str, object]
    """Of TRL's GRPOConfig."""
    same: bool = True
    """Whether both are meant to be the same."""


def trl_relative(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return A_i = (r_i - mean(r)) / (s + 1e-4), s the sample deviation of the group: the GRPO of TRL."""
    centered_PG = group_centered(rewards_PG, scored_PG)
    return centered_PG / (rewards_PG.std(1, keepdim=True) + TRL_EPSILON)


PLAIN = {"loss_type": "grpo", "scale_rewards": "group", "beta": 0.0}
FURTHER_ROWS: dict[str, dict[str, Any]] = {
    "gspo": {"importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4},
    "cispo": {"loss_type": "cispo", "epsilon_high": 1.1},
    "sapo": {"loss_type": "sapo", "sapo_temperature_neg": 1.05, "sapo_temperature_pos": 1.0},
}
"""Where TRL's settings of a row differ from those of `grpo`; a cap of 1.1 for `cispo`, so that it is reached."""


def comparisons() -> dict[str, Comparison]:
    """Return the rows of the table by name."""
    # Plain k3, as in the paper of GRPO; TRL's default is k3 times the ratio.
    k3 = {"beta": 0.04, "use_bias_correction_kl": False}
    token_mean = {"loss_type": "dapo", "epsilon_high": 0.28}
    return {
        "grpo": Comparison(algorithm=as_in_trl("grpo"), settings=PLAIN),
        "dr_grpo": Comparison(
            algorithm=resolve("dr_grpo"), settings=PLAIN | {"loss_type": "dr_grpo", "scale_rewards": "none"}
        ),
        "token mean (dapo)": Comparison(
            algorithm=as_in_trl("grpo", aggregation="token_mean", clip_high=0.28), settings=PLAIN | token_mean
        ),
        "grpo, k3 0.04": Comparison(
            algorithm=as_in_trl("grpo", divergence="k3", divergence_weight=0.04), settings=PLAIN | k3
        ),
        **{
            row: Comparison(algorithm=as_in_trl(row, clip_high=settings.get("epsilon_high")), settings=PLAIN | settings)
            for row, settings in FURTHER_ROWS.items()
            if row in ALGORITHMS
        },
        "grpo, nothing added": Comparison(
            algorithm=replace(resolve("grpo"), advantage=group_relative_sample), settings=PLAIN, same=False
        ),
    }


def as_in_trl(row: str, **overrides: Unpack[Overrides]) -> Algorithm:
    """Return a row with TRL's advantage and the whole batch in one update."""
    return replace(resolve(row, **overrides), advantage=trl_relative, mini_batches=1)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One row of the table."""

    comparison: str
    precision: str
    weights: str
    layout: str
    loss: float
    """Ours."""
    loss_difference: float
    gradient_distance: float
    """In norms of TRL's gradient."""
    clipped_share: float
    meant_equal: bool

    @property
    def equal(self) -> bool:
        return max(abs(self.loss_difference), self.gradient_distance) <= BAR


def share_of_digits(completion: str) -> float:
    """Return a reward with many values, so that no deviation is a round number."""
    return sum(character.isdigit() for character in completion) / (1 + len(completion))


def recipe_for(model: Path) -> Recipe:
    flags = {
        "model": model.as_posix(),
        "problems.train": "64",
        "problems.validation": "0",
        "problems.held_out": "0",
        "rewards.digits.check": "python",
        "sampling.prompts_per_step": "6",
        "sampling.group_size": "8",
        "sampling.temperature": "0.9",
        "sampling.max_new_tokens": "48",
    }
    return load(Recipe, None, flags, environment={})


def moved_weights(parts: Assembled) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        name: value.detach() + NOISE * torch.randn(value.shape, generator=generator)
        for name, value in parts.policy.parameters().items()
    }


def write_job(
    folder: Path,
    parts: Assembled,
    groups: Sequence[RolloutGroup],
    moved: Mapping[str, Tensor],
    precisions: Sequence[str],
) -> None:
    sampling = parts.recipe.sampling
    rows = [(group, rollout) for group in groups for rollout in group.rollouts]
    job = {
        "prompt_ids": [group.prompt.token_ids for group, _ in rows],
        "completion_ids": [rollout.completion.token_ids for _, rollout in rows],
        "rewards": [rollout.score.value for _, rollout in rows],
        "group_size": sampling.group_size,
        "temperature": sampling.temperature,
        "max_new_tokens": sampling.max_new_tokens,
        "settings": {name: dict(row.settings) for name, row in comparisons().items()},
        "precisions": list(precisions),
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    save_file(dict(moved), folder / "moved.safetensors")


def ask_trl(python: Path, folder: Path) -> tuple[dict, dict[str, Tensor]]:
    """Return TRL's losses, advantages and versions, and its gradients."""
    script = Path(__file__).parent / "peers" / "trl_loss.py"
    done = subprocess.run([str(python), str(script), str(folder)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"TRL failed:\n{done.stderr[-3000:]}")
    answer = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    return answer, load_file(folder / "answer.safetensors")


def at_both_weights(
    parts: Assembled, algorithm: Algorithm, groups: Sequence[RolloutGroup], start: dict, moved: dict
) -> Iterator[tuple[str, float, Tensor, float]]:
    """Yield where, loss, gradient and clipped share: of one pass over the batch, and of the second of two."""
    set_weights(parts.policy.parameters(), start)
    one = measure(parts, algorithm, groups)
    two = measure(parts, replace(algorithm, epochs=2), groups, goes_to=moved)
    yield "start", one.metrics["update/loss"], one.gradients[0], one.metrics["update/clipped_share"]
    yield "moved", *second_pass(one, two)


def second_pass(one: Measured, two: Measured) -> tuple[float, Tensor, float]:
    """Take the first pass, which `one` made alone, off what was recorded of both."""
    loss = two.metrics["update/loss"] - one.metrics["update/loss"]
    return loss, two.gradients[1], 2 * two.metrics["update/clipped_share"] - one.metrics["update/clipped_share"]


def differences(
    parts: Assembled,
    groups: Sequence[RolloutGroup],
    moved: dict[str, Tensor],
    precision: str,
    answer: tuple[dict, dict[str, Tensor]],
) -> Iterator[Difference]:
    facts, gradients = answer
    start = {name: value.detach().clone() for name, value in parts.policy.parameters().items()}
    for layout, tokens in LAYOUTS.items():
        optim = parts.recipe.optim.model_copy(update={"tokens_per_micro_batch": tokens})
        laid_out = replace(parts, recipe=parts.recipe.model_copy(update={"optim": optim}))
        for name, row in comparisons().items():
            for where, loss, gradient, clipped in at_both_weights(laid_out, row.algorithm, groups, start, moved):
                theirs = gradients[f"{precision}/{name}/{where}"].double()
                yield Difference(
                    comparison=name,
                    precision=precision,
                    weights=where,
                    layout=layout,
                    loss=loss,
                    loss_difference=loss - facts["losses"][f"{precision}/{name}/{where}"],
                    gradient_distance=float((gradient.double() - theirs).norm() / theirs.norm()),
                    clipped_share=clipped,
                    meant_equal=row.same,
                )
    set_weights(parts.policy.parameters(), start)


def compare(python: Path, precisions: Sequence[str]) -> tuple[dict, list[Difference]]:
    """Return what TRL is, and every difference."""
    shape = PretrainModel(hidden_size=64, layers=2, heads=2, intermediate_size=128)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_policy(untrained_policy(shape, seed=0), folder / "model")
        with assembled(recipe_for(folder / "model"), reward=share_of_digits) as parts:
            groups, moved = batch_of(parts, step=1), moved_weights(parts)
            write_job(folder, parts, groups, moved, precisions)
            answer = ask_trl(python, folder)
            found: list[Difference] = []
            for precision in precisions:
                if precision == "float64":
                    in_double_precision(parts.policy.model)
                found += differences(parts, groups, moved, precision, answer)
    return answer[0]["versions"], found


def worst_by_row(found: Sequence[Difference]) -> list[Difference]:
    """Return of every row the layout with the largest distance of the gradient."""
    rows: dict[tuple[str, str, str], Difference] = {}
    for difference in sorted(found, key=lambda difference: difference.gradient_distance):
        rows[difference.comparison, difference.precision, difference.weights] = difference
    return [rows[key] for key in dict.fromkeys((d.comparison, d.precision, d.weights) for d in found)]


def show(versions: Mapping[str, str], found: Sequence[Difference]) -> None:
    print("against " + ", ".join(f"{name} {version}" for name, version in versions.items()))
    print(
        f"{'':20}{'precision':>10}{'weights':>9}{'loss':>11}{'loss diff.':>12}{'gradient':>10}{'clipped':>9}  worst in"
    )
    for row in worst_by_row(found):
        verdict = "" if row.equal == row.meant_equal else "   UNEQUAL" if row.meant_equal else "   EQUAL?"
        print(
            f"{row.comparison:20}{row.precision:>10}{row.weights:>9}{row.loss:11.6f}{row.loss_difference:12.1e}"
            f"{row.gradient_distance:10.1e}{row.clipped_share:9.3f}  {row.layout}{verdict}"
        )
    meant = [row for row in found if row.meant_equal]
    print(
        f"largest difference of a loss     {max(abs(row.loss_difference) for row in meant):.1e}, the bar is {BAR:.0e}"
    )
    print(f"largest distance of a gradient   {max(row.gradient_distance for row in meant):.1e}, the bar is {BAR:.0e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trl", type=Path, default=TRL_PYTHON, metavar="PYTHON", help="python that has TRL")
    parser.add_argument("--quick", action="store_true", help="float32 alone")
    parser.add_argument("--json", action="store_true", help="all numbers on a last line")
    options = parser.parse_args()
    if not options.trl.is_file():
        sys.exit(f"{options.trl}: no such Python. `make bench-peers` makes the environment of TRL")
    versions, found = compare(options.trl, ["float32"] if options.quick else ["float32", "float64"])
    show(versions, found)
    equal = all(row.equal for row in found if row.meant_equal)
    if options.json:
        write_json({"bar": BAR, "equal": equal, "versions": versions, "rows": [asdict(row) for row in found]})
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
