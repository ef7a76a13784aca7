"""How token losses become the loss of a step: sums with one division.

Shapes: B sequences, T tokens. An aggregation gives every trained token its weight, and the loss is
`weighted_sum(loss_BT, weights_BT)`. The weights divide by counts of the whole step, so the losses and gradients of
micro-batches simply add up to those of the step, however it is cut. One row holds one whole sequence.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """What one optimiser step is divided by, over all its micro-batches and all processes.

    Rows that are left out of the forward pass, having nothing to teach, are counted: leaving them out changes nothing.
    """

    sequences: int
    """Completions."""
    tokens: int
    """Trained tokens, the sampled end-of-sequence included."""
    max_length: int
    """Limit on new tokens of a completion."""

    def __post_init__(self) -> None:
        assert min(self.sequences, self.tokens, self.max_length) >= 1, f"nothing to divide by: {self}"


def token_mean(trained_BT: Tensor, counts: Counts) -> Tensor:
    """Return equal weights for all tokens of the step, so a long completion weighs more than a short one.

    w = 1 / sum_i L_i. Shapes: bool [B, T] -> [B, T]. 0 where not trained.

    Source: DAPO, arXiv 2503.14476, equation 8.

    >>> token_mean(torch.tensor([[True, True], [True, False]]), Counts(sequences=2, tokens=4, max_length=8))
    tensor([[0.2500, 0.2500],
            [0.2500, 0.0000]])
    """
    return trained_BT / counts.tokens


def sequence_mean(trained_BT: Tensor, counts: Counts) -> Tensor:
    """Return equal weights for all completions, so a token of a long completion weighs less.

    w = 1 / (L_i sequences). Shapes: bool [B, T] -> [B, T]. 0 where not trained; an empty row weighs nothing.

    Source: GRPO, arXiv 2402.03300, equation 3.

    >>> sequence_mean(torch.tensor([[True, True], [True, False]]), Counts(sequences=2, tokens=3, max_length=8))
    tensor([[0.2500, 0.2500],
            [0.5000, 0.0000]])
    """
    lengths_B1 = trained_BT.sum(1, keepdim=True).clamp(min=1)
    return trained_BT / (lengths_B1 * counts.sequences)


def sequence_sum(trained_BT: Tensor, counts: Counts) -> Tensor:
    """Return the weights of log-probabilities of whole completions, averaged over completions.

    w = 1 / sequences. Shapes: bool [B, T] -> [B, T]. 0 where not trained.

    Source: Williams 1992, REINFORCE; RLOO, arXiv 2402.14740.

    >>> sequence_sum(torch.tensor([[True, True], [True, False]]), Counts(sequences=2, tokens=3, max_length=8))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.0000]])
    """
    return trained_BT / counts.sequences


def fixed_length(trained_BT: Tensor, counts: Counts) -> Tensor:
    """Return equal weights for all tokens of all steps: the divisor does not depend on what was sampled.

    w = 1 / (sequences max_length). Shapes: bool [B, T] -> [B, T]. 0 where not trained.

    Source: Dr. GRPO, arXiv 2503.20783, section 3.

    >>> fixed_length(torch.tensor([[True, True], [True, False]]), Counts(sequences=2, tokens=3, max_length=4))
    tensor([[0.1250, 0.1250],
            [0.1250, 0.0000]])
    """
    return trained_BT / (counts.sequences * counts.max_length)


def weighted_sum(values_BT: Tensor, weights_BT: Tensor) -> Tensor:
    """Return the sum of weighted values, untouched by whatever stands where the weight is 0.

    sum w x over w != 0, in units of x. Shapes: [B, T] x 2 -> []. An infinity or NaN at weight 0 reaches neither the sum
    nor the gradient, though 0 times infinity is NaN.

    >>> weighted_sum(torch.tensor([[2.0, float("nan")]]), torch.tensor([[0.5, 0.0]]))
    tensor(1.)
    """
    assert values_BT.shape == weights_BT.shape, f"one weight a value: {values_BT.shape} and {weights_BT.shape}"
    return (torch.where(weights_BT != 0, values_BT, 0.0) * weights_BT).sum()
