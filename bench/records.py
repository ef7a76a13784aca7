"""What records cost: time spent handing over and writing every completion and token, as a share of the step time.

    python bench/records.py [--steps 40]

Prints one table and one ratio; the bar is 2 %.
"""

import argparse
import tempfile
from pathlib import Path

from earned import api
from earned.recipe import Recipe
from earned.recipe_file import load, shipped
from earned.records.reader import RunReader


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    steps = parser.parse_args().steps
    flags = {"steps": str(steps), "evaluation.every": str(steps), "problems.held_out": "32", "problems.validation": "0"}
    with tempfile.TemporaryDirectory() as folder:
        result = api.train(load(Recipe, shipped("tiny_sums"), flags, environment={}), api.RunOptions(runs=Path(folder)))
        reader = RunReader(result.run)
        handed_over = [value for _, value in reader.metric("time/record_seconds")]
        written = max(value for _, value in reader.metric("records/writer_cpu_seconds"))
        total = [row.seconds.total for row in reader.steps()]
        completions = len(reader.completions(phase="train"))
        size = (result.run / "run.sqlite").stat().st_size
    share = (sum(handed_over) + written) / sum(total)
    print(f"steps                     {steps}, {completions} completions with every token, {size / 2**20:.1f} MB")
    print(f"step time                 {sum(total):.2f} s")
    print(f"handing over              {sum(handed_over):.3f} s")
    print(f"background writer (CPU)   {written:.3f} s")
    print(f"records / step time       {share:.2%}")


if __name__ == "__main__":
    main()
