"""What a run's held-out completions show of their steps: bare numbers, right steps, answers that follow from them.

    python bench/steps.py runs/NAME-seed0 runs/NAME-seed1 ...

Prints one CSV row for the first and the last evaluation of every run; made docs/results/steps_reward.csv.
"""

import csv
import sys
from pathlib import Path
from statistics import fmean

from earned.records.reader import RunReader
from earned.records.rows import CompletionRow
from earned.records.run_folder import run_database
from earned.rewards.equations import read_equations
from earned.rewards.steps import StepsCheck, follow, given_numbers
from earned.vocabulary import Attempt, Problem, Split

FIELDS = ("run", "step", "accuracy", "greedy", "bare", "steps_right", "right_and_follows", "length")


def shares(rows: list[CompletionRow], problems: dict[str, Problem]) -> dict[str, float]:
    """Return the shares over sampled completions; `steps_right` is over all steps that were written."""
    bare, right_steps, follows = [], [], []
    for row in rows:
        problem = problems[row.problem_id]
        equations = list(read_equations(row.text))
        bare.append(not equations)
        right_steps += [step.fault is None for step in follow(equations, given_numbers(problem.prompt), set())]
        attempt = Attempt(
            problem=problem, text=row.text, truncated=row.truncated, seed=0, step=row.step, rollout_id=row.id
        )
        follows.append(row.reward == 1 and (StepsCheck()(attempt).value or 0) > 0)
    return {
        "bare": fmean(bare),
        "steps_right": fmean(right_steps) if right_steps else float("nan"),
        "right_and_follows": fmean(follows),
    }


def main() -> None:
    table = csv.DictWriter(sys.stdout, FIELDS)
    table.writeheader()
    for folder in map(Path, sys.argv[1:]):
        reader = RunReader(run_database(folder))
        problems = {problem.id: problem for problem in reader.problems()}
        evaluations = reader.evaluations(Split.HELD_OUT)
        for result in (evaluations[0], evaluations[-1]):
            rows = [row for row in reader.completions(step=result.step, phase="held_out") if row.attempt >= 0]
            measured = shares(rows, problems) | {
                "accuracy": result.mean,
                "greedy": result.greedy,
                "length": result.length_mean,
            }
            values = {name: f"{value:.4f}" for name, value in measured.items()}
            table.writerow({"run": folder.name, "step": result.step, **values})


if __name__ == "__main__":
    main()
