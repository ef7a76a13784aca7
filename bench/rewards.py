"""Checks of mathematical answers a second, against math-verify in a warm pool of as many processes.

    python bench/rewards.py [--rounds 5]

The plain numbers are 2,000 drawn ones in five writings; the LaTeX is every labelled answer of tests/cases/math.jsonl
that is no plain number, bombs left out: math-verify hangs on some of them. It prints one table with two ratios.
"""

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from math_verify import parse, verify

from earned.recipe import RewardPart
from earned.rewards.answer import extract_answer
from earned.rewards.checks import make_check
from earned.rewards.number import parse_number
from earned.rewards.user_reward import Resources
from earned.sandbox.workers import WorkerPool
from earned.vocabulary import Attempt, Problem, Split

CASES = Path(__file__).parents[1] / "tests" / "cases" / "math.jsonl"
PROCESSES = 2
WRITINGS = (r"So \boxed{%s}.", "#### %s", "The answer is %s.", r"It is $\boxed{%s}$", "Answer: %s")

Row = tuple[str, str]
"""Gold and completion."""


def plain_rows() -> list[Row]:
    random = Random(0)
    rows = []
    for index in range(2000):
        gold = random.randint(-(10**6), 10**6)
        answer = gold if index % 2 else gold + random.randint(1, 9)
        rows.append((str(gold), WRITINGS[index % len(WRITINGS)] % f"{answer:,}"))
    return rows


def latex_rows() -> list[Row]:
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    rows = [(case["gold"], case["response"]) for case in cases if case["tag"] not in ("bomb", "attack")]
    read = [(row, extract_answer(row[1] or "").answer) for row in rows]
    return [row for row, answer in read if answer is not None and parse_number(answer) is None]


def attempt(row: Row, name: str) -> Attempt:
    problem = Problem(id=name, prompt="", gold=row[0], source="bench", split=Split.TRAIN)
    return Attempt(problem=problem, text=row[1], seed=0, step=0, rollout_id=name)


def math_verify_of(row: Row) -> bool:
    return bool(verify(parse(f"${row[0]}$"), parse(row[1])))


def rate(judge: Callable[[Sequence[Row]], object], rows: Sequence[Row], rounds: int) -> float:
    judge(rows[:50])
    start = time.perf_counter()
    for _ in range(rounds):
        judge(rows)
    return rounds * len(rows) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with WorkerPool(PROCESSES) as workers, multiprocessing.get_context("spawn").Pool(PROCESSES) as peers:
        check = make_check("rewards.answer", RewardPart(check="math"), Resources(pool=workers))
        print(f"{'':14}{'rows':>6}{'earned/s':>12}{'math-verify/s':>16}{'ratio':>8}")
        for name, rows in (("plain numbers", plain_rows()), ("LaTeX", latex_rows())):
            ours = rate(
                lambda some: check.judge({str(i): attempt(row, str(i)) for i, row in enumerate(some)}), rows, rounds
            )
            theirs = rate(lambda some: peers.map(math_verify_of, some, chunksize=8), rows, rounds)
            print(f"{name:14}{len(rows):6}{ours:12.0f}{theirs:16.0f}{ours / theirs:8.1f}")


if __name__ == "__main__":
    main()
