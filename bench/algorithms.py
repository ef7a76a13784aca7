"""The figures of the algorithms, one part a file; `python bench/algorithms.py PART --help` has the options of each.

python bench/algorithms.py equality     loss and gradient against TRL's, on one batch      (make bench-peers)
python bench/algorithms.py variance     of the gradient, with and without a baseline
python bench/algorithms.py cost         of PPO's value model against GRPO: memory and seconds
python bench/algorithms.py rows         what every row reaches on one budget, three seeds
"""

import runpy
import sys
from pathlib import Path

PARTS = {
    "equality": "trl_equality.py",
    "variance": "gradient_variance.py",
    "cost": "ppo_cost.py",
    "rows": "algorithm_rows.py",
}


def main() -> None:
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    if part not in PARTS:
        sys.exit(__doc__)
    script = Path(__file__).parent / PARTS[part]
    sys.argv = [str(script), *sys.argv[2:]]
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
