"""What a value model costs: PPO with a critic of the policy's size against GRPO, on the same work.

    python bench/ppo_cost.py [--models tiny smollm2-135m] [--rows ppo grpo] [--rounds 3] [--quick] [--json]

Every run is a process of its own, and the rows take turns: A B A B. All runs of a model sample the same completions,
since the policy's learning rate is 0 and random numbers depend on the seed alone; rewards are coin flips, so that every
group has signal and no row leaves attempts out. (Where rewards are real, GRPO saves the groups that are all right or
all wrong, and PPO does not.) The critic trains from the first step on. The first step is not counted. Peak memory is
that of the whole process while it samples and trains, Python and torch included; writing the checkpoint is not counted.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

from earned import api
from earned.algorithms.named import ALGORITHMS
from earned.cli.json_line import write_json
from earned.observer import Silence
from earned.recipe import Recipe
from earned.recipe_file import load, shipped
from earned.records.reader import RunReader

WORK = {
    "tiny": (
        "tiny_sums",
        {
            "sampling.prompts_per_step": 16,
            "sampling.group_size": 8,
            "sampling.max_new_tokens": 48,
            "optim.tokens_per_micro_batch": 2048,
        },
    ),
    "smollm2-135m": (
        "smollm2_addition",
        {
            "sampling.prompts_per_step": 4,
            "sampling.group_size": 4,
            "sampling.max_new_tokens": 16,
            "optim.tokens_per_micro_batch": 256,
        },
    ),
}
"""Recipe and what is set in it, by model. A micro-batch is a quarter of a batch, so that a row which cuts its batch
into four updates needs no less memory for that."""
COUNTED_STEPS = 3
MEBIBYTE = 2**10
"""In KiB, the unit of `ru_maxrss` on Linux."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One run."""

    row: str
    seconds: float
    """A step, median over the counted ones."""
    sample_seconds: float
    """Of them, for sampling."""
    peak_mb: float
    """MiB."""
    tokens: int
    """Sampled in all steps, the end-of-sequence included."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """The first row in units of the second: the mean over rounds, and the lowest and highest round."""

    of: str
    mean: float
    low: float
    high: float


class PeakMemory(Silence):
    """Notes the peak after every step, so before the checkpoint of the last one is written."""

    peak_mb = 0.0

    def stepped(self, step: int, metrics: Mapping[str, float]) -> None:
        self.peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEBIBYTE


def recipe_for(model: str, row: str) -> Recipe:
    name, work = WORK[model]
    flags = {
        "model": model,
        "steps": str(1 + COUNTED_STEPS),
        "algorithm.name": row,
        "optim.learning_rate": "0",
        "rewards.answer.check": "random",
        "rewards.allow": '["random_reward", "zero_learning_rate", "no_signal"]',
        "problems.validation": "0",
        "problems.held_out": "0",
        "evaluation.watched": "0",
    }
    flags |= {key: str(value) for key, value in work.items()}
    if ALGORITHMS[row].critic is not None:
        flags["critic.warmup_steps"] = "0"
    return load(Recipe, shipped(name), flags, environment={})


def run_here(model: str, row: str) -> Cost:
    """Train in this process, whose peak memory is the result's."""
    memory = PeakMemory()
    with tempfile.TemporaryDirectory() as folder:
        result = api.train(recipe_for(model, row), api.RunOptions(runs=Path(folder)), listener=memory)
        reader = RunReader(result.run)
        counted = [step.seconds for step in reader.steps()][1:]
        tokens = sum(completion.tokens for completion in reader.completions(phase="train"))
    return Cost(
        row=row,
        seconds=median(step.total for step in counted),
        sample_seconds=median(step.sample for step in counted),
        peak_mb=memory.peak_mb,
        tokens=tokens,
    )


def run_apart(model: str, row: str) -> Cost:
    """Train in a process of its own."""
    command = [sys.executable, __file__, "--here", model, row]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{row} on {model} failed:\n{done.stderr[-3000:]}")
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def measured(model: str, rows: Sequence[str], rounds: int) -> list[Cost]:
    """Return the costs, the rows taking turns."""
    costs = [run_apart(model, row) for _ in range(rounds) for row in rows]
    assert len({cost.tokens for cost in costs}) == 1, f"the rows sampled different completions: {costs}"
    return costs


def ratios(costs: Sequence[Cost]) -> Iterator[Ratio]:
    """Yield first over second row, of what is compared."""
    pairs = list(zip(costs[::2], costs[1::2], strict=True))
    readings = {
        "seconds a step": [one.seconds / other.seconds for one, other in pairs],
        "seconds without sampling": [
            (one.seconds - one.sample_seconds) / (other.seconds - other.sample_seconds) for one, other in pairs
        ],
        "peak memory": [one.peak_mb / other.peak_mb for one, other in pairs],
    }
    for name, values in readings.items():
        yield Ratio(of=name, mean=fmean(values), low=min(values), high=max(values))


def show(model: str, costs: Sequence[Cost], found: Sequence[Ratio]) -> None:
    work = ", ".join(f"{key} {value}" for key, value in WORK[model][1].items())
    print(f"{model}: {costs[0].tokens} tokens sampled in {1 + COUNTED_STEPS} steps; {work}")
    print(f"  {'':10}{'s / step':>10}{'sampling':>10}{'peak MiB':>10}")
    for cost in costs:
        print(f"  {cost.row:10}{cost.seconds:10.3f}{cost.sample_seconds:10.3f}{cost.peak_mb:10.0f}")
    for ratio in found:
        name = f"{ratio.of}, {costs[0].row} / {costs[1].row}"
        print(f"  {name:40}{ratio.mean:6.2f}  [{ratio.low:.2f}, {ratio.high:.2f}] over {len(costs) // 2} rounds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=WORK, default=list(WORK))
    parser.add_argument("--rows", nargs=2, choices=ALGORITHMS, default=("ppo", "grpo"), metavar="ROW")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, tiny alone")
    parser.add_argument("--json", action="store_true", help="all numbers on a last line")
    parser.add_argument("--here", nargs=2, metavar=("MODEL", "ROW"), help="one run in this process, as JSON")
    options = parser.parse_args()
    if options.here:
        write_json(asdict(run_here(*options.here)))
        return
    models, rounds = (["tiny"], 1) if options.quick else (options.models, options.rounds)
    answer = {}
    for model in models:
        costs = measured(model, options.rows, rounds)
        found = list(ratios(costs))
        show(model, costs, found)
        answer[model] = {"runs": list(map(asdict, costs)), "ratios": list(map(asdict, found))}
    if options.json:
        write_json(answer)


if __name__ == "__main__":
    main()
