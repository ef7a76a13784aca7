"""The weight of a divergence that is steered towards a target."""

HORIZON = 10_000
"""Completions over which the largest error changes the weight by about a fifth."""
LARGEST_ERROR = 0.2


def adapted_weight(weight: float, divergence: float, target: float, completions: int) -> float:
    """Return the weight after a batch: larger when the policy was farther from the reference than the target.

    weight (1 + e n / HORIZON) with e = clip(divergence / target - 1, -0.2, 0.2). Divergence and target are in nats a
    completion, the weight in reward units a nat, n is the completions of the batch.

    Source: Ziegler et al. 2019, arXiv 1909.08593, section 2.2; horizon of lm-human-preferences at 1ab856d.

    >>> [round(adapted_weight(0.2, nats, target=6.0, completions=64), 6) for nats in (12.0, 3.0, 6.3)]
    [0.200256, 0.199744, 0.200064]
    """
    error = min(max(divergence / target - 1, -LARGEST_ERROR), LARGEST_ERROR)
    return weight * (1 + error * completions / HORIZON)
