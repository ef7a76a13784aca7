"""Learning rates as pure functions of the step, so that resuming needs no schedule state."""

import math


def warmup_constant(step: int, learning_rate: float, warmup_steps: int) -> float:
    """Return the rate of `step` (from 1): linear up to the full rate at `warmup_steps`, then constant.

    >>> [warmup_constant(step, 1.0, 4) for step in (1, 2, 4, 100)]
    [0.25, 0.5, 1.0, 1.0]
    """
    return learning_rate * min(1.0, step / max(1, warmup_steps))


def warmup_cosine(step: int, learning_rate: float, warmup_steps: int, steps: int) -> float:
    """Return the rate of `step` (from 1): linear warm-up, then half a cosine down to a tenth of the full rate.

    >>> [round(warmup_cosine(step, 1.0, 10, 100), 3) for step in (5, 10, 55, 100)]
    [0.5, 1.0, 0.55, 0.1]
    """
    if step <= warmup_steps:
        return learning_rate * step / max(1, warmup_steps)
    progress = (step - warmup_steps) / max(1, steps - warmup_steps)
    return learning_rate * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))
