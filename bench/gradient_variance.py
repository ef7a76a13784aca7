"""How much a baseline lowers the variance of the gradient: exactly on policies of three actions, measured on `tiny`.

    python bench/gradient_variance.py [--batches 40] [--model MODEL] [--quick] [--json]

The small policies are softmaxes over three actions; the gradient is that of the expected reward in the logits. Every
outcome of G samples is enumerated, with the advantages that training uses, and where a closed form is known it stands
beside. On `tiny` the real updater makes the gradient of every row on the same batches of 8 prompts x 8 samples, none of
which changes the weights. `reinforce, +1` is paid 2 for a right answer and 1 for a wrong one.

Variance is the mean squared distance from the mean gradient; divided by the squared norm of that mean it does not
depend on the scale of the loss. A mini-batch of n times as many samples has 1/n of it.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch
from one_update import assembled, batch_of, measure
from torch import Tensor

from earned.algorithms.advantages import group_centered, group_relative, leave_one_out, plain_reward
from earned.algorithms.named import Algorithm, resolve
from earned.cli.json_line import write_json
from earned.recipe import Recipe
from earned.recipe_file import load, shipped

GROUP_SIZES = (4, 8)
PROMPTS, SAMPLES, LONGEST = 8, 8, 48
RESAMPLES = 2000

EXPECTED = {
    "reinforce, +1": 1.0,
    "reinforce": 1.0,
    "reinforce_baseline": 1 - 1 / (PROMPTS * SAMPLES),
    "rloo": 1.0,
    "dr_grpo": (1 - 1 / SAMPLES) / LONGEST,
}
"""Length of the expected gradient of a row in that of `reinforce`, which has the same direction. The signal of all
these rows is taken from `reinforce`, where there is least noise; `grpo` has another direction and its own signal."""

Advantages = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class ThreeActions:
    """A softmax over three actions with a reward for each; tensors are [3] and float64."""

    name: str
    probabilities: tuple[float, float, float]
    rewards: tuple[float, float, float]

    @property
    def p_A(self) -> Tensor:
        return torch.tensor(self.probabilities, dtype=torch.float64)

    @property
    def r_A(self) -> Tensor:
        return torch.tensor(self.rewards, dtype=torch.float64)

    @property
    def scores_AA(self) -> Tensor:
        """Row a: the gradient of log p(a) in the logits."""
        return torch.eye(3, dtype=torch.float64) - self.p_A

    @property
    def gradient_A(self) -> Tensor:
        """Of the expected reward in the logits."""
        return (self.p_A * self.r_A) @ self.scores_AA

    @property
    def expected_reward(self) -> float:
        return float(self.p_A @ self.r_A)

    @property
    def best_constant(self) -> float:
        """The baseline of least variance, E[r |score|^2] / E[|score|^2]."""
        weight_A = self.p_A * self.scores_AA.square().sum(1)
        return float(weight_A @ self.r_A / weight_A.sum())

    def enumerated(self, advantages_of: Advantages, group_size: int) -> tuple[Tensor, float]:
        """Return the mean of a group's gradient [3], and G times its variance, over all 3^G outcomes."""
        actions_NG = torch.cartesian_prod(*[torch.arange(3)] * group_size)
        chance_N = self.p_A[actions_NG].prod(1)
        advantages_NG = advantages_of(self.r_A[actions_NG])
        gradients_NA = (advantages_NG[:, :, None] * self.scores_AA[actions_NG]).mean(1)
        mean_A = chance_N @ gradients_NA
        return mean_A, group_size * float(chance_N @ (gradients_NA - mean_A).square().sum(1))

    def variance_with_constant(self, baseline: float) -> float:
        """Return E[(r - b)^2 |score|^2] - |gradient|^2, of one sample."""
        squares_A = (self.r_A - baseline).square() * self.scores_AA.square().sum(1)
        return float(self.p_A @ squares_A - self.gradient_A.square().sum())

    def variance_with_the_others(self, group_size: int) -> float:
        """Return G times the variance of the mean over pairs of h(x, y) = (r_x - r_y)(score_x - score_y) / 2.

        4 (G - 2) / (G (G - 1)) Var(E[h | x]) + 2 / (G (G - 1)) Var(h): Hoeffding 1948, for a statistic of pairs.
        """
        differences_AA = self.r_A[:, None] - self.r_A
        kernel_AAA = differences_AA[:, :, None] * (self.scores_AA[:, None] - self.scores_AA) / 2
        centered_AAA = kernel_AAA - self.gradient_A
        given_one_AA = torch.einsum("y,xyk->xk", self.p_A, centered_AAA)
        of_one = self.p_A @ given_one_AA.square().sum(1)
        of_pair = self.p_A @ centered_AAA.square().sum(2) @ self.p_A
        return float(4 * (group_size - 2) * of_one + 2 * of_pair) / (group_size - 1)


POLICIES = (
    ThreeActions("the right one is likely", (0.7, 0.2, 0.1), (1.0, 0.0, 0.0)),
    ThreeActions("the same, +1 for all", (0.7, 0.2, 0.1), (2.0, 1.0, 1.0)),
    ThreeActions("the right one is rare", (0.1, 0.2, 0.7), (1.0, 0.0, 0.0)),
)


@dataclass(frozen=True, kw_only=True)
class Exact:
    """One estimator on a policy of three actions."""

    policy: str
    baseline: str
    group_size: int
    mean: tuple[float, ...]
    """Expected gradient in the three logits."""
    variance: float
    """Of one sample's worth: G times that of a group's gradient; by enumeration."""
    closed_form: float | None
    relative: float
    """The variance over the squared norm of the mean."""


@dataclass(frozen=True, kw_only=True)
class OnTiny:
    """One row of `ALGORITHMS` on batches of the built-in model."""

    row: str
    relative_variance: float
    low: float
    high: float
    to_rloo: float
    """Its relative variance in units of that of `rloo`, on the same batches."""
    to_rloo_low: float
    to_rloo_high: float


def exact_table() -> Iterator[Exact]:
    """Yield every estimator: constants, which do not depend on the group, then what a group makes of itself."""
    for policy in POLICIES:
        constants = {"none": 0.0, "expected reward": policy.expected_reward, "best constant": policy.best_constant}
        for name, baseline in constants.items():
            closed_form = policy.variance_with_constant(baseline)
            yield _exact(policy, name, lambda rewards, b=baseline: plain_reward(rewards) - b, 1, closed_form)
        for size in GROUP_SIZES:
            closed_form = policy.variance_with_the_others(size)
            yield _exact(policy, "mean of the others", leave_one_out, size, closed_form)
            yield _exact(policy, "mean of the group", group_centered, size, closed_form * ((size - 1) / size) ** 2)
            yield _exact(policy, "mean and deviation", group_relative, size, None)


def _exact(
    policy: ThreeActions, baseline: str, advantages_of: Advantages, group_size: int, closed_form: float | None
) -> Exact:
    # A constant baseline has no group: the variance of one sample's worth is the same for every G.
    mean_A, variance = policy.enumerated(advantages_of, max(group_size, 2))
    return Exact(
        policy=policy.name,
        baseline=baseline,
        group_size=group_size,
        mean=tuple(mean_A.tolist()),
        variance=variance,
        closed_form=closed_form,
        relative=variance / float(mean_A.square().sum()),
    )


def plus_one(rewards_PG: Tensor, scored_PG: Tensor | None = None) -> Tensor:
    """Return the reward and one more: what no baseline costs where wrong answers are paid too."""
    return plain_reward(rewards_PG + 1, scored_PG)


def rows() -> dict[str, Algorithm]:
    """Return what is measured on `tiny`, by name."""
    names = ("reinforce", "reinforce_baseline", "rloo", "dr_grpo", "grpo")
    return {
        "reinforce, +1": replace(resolve("reinforce"), advantage=plus_one),
        **{name: resolve(name) for name in names},
    }


def recipe(model: str) -> Recipe:
    flags = {
        "model": model,
        "sampling.prompts_per_step": str(PROMPTS),
        "sampling.group_size": str(SAMPLES),
        "sampling.max_new_tokens": str(LONGEST),
        "problems.validation": "0",
        "problems.held_out": "0",
    }
    return load(Recipe, shipped("tiny_sums"), flags, environment={})


def grams_on_tiny(model: str, batches: int) -> tuple[dict[str, np.ndarray], float]:
    """Return the inner products of the gradients of all batches, by row, and the mean reward."""
    with assembled(recipe(model)) as parts:
        groups = [batch_of(parts, step) for step in range(1, batches + 1)]
        grams = {}
        for name, algorithm in rows().items():
            gradients_ND = torch.stack([measure(parts, algorithm, batch).gradients[0] for batch in groups]).double()
            grams[name] = (gradients_ND @ gradients_ND.T).numpy()
    rewards = [rollout.score.value or 0.0 for batch in groups for group in batch for rollout in group.rollouts]
    return grams, sum(rewards) / len(rewards)


def squared_length(gram_NN: np.ndarray, counts_N: np.ndarray) -> float:
    """Return the mean squared norm of N gradients from their inner products; batch i was drawn `counts_N[i]` times."""
    return float(counts_N @ gram_NN.diagonal() / counts_N.sum())


def signal(gram_NN: np.ndarray, counts_N: np.ndarray) -> float:
    """Return the squared norm of the expected gradient: the mean inner product of different batches.

    Unlike the squared norm of their mean, it does not count the noise of a mean of few batches.
    """
    pairs_NN = np.outer(counts_N, counts_N)
    np.fill_diagonal(pairs_NN, 0)
    return float((pairs_NN * gram_NN).sum() / pairs_NN.sum())


def relative_variances(grams: Mapping[str, np.ndarray], counts_N: np.ndarray) -> dict[str, float]:
    """Return the variance of every row over the squared norm of its expected gradient."""
    common = signal(grams["reinforce"], counts_N)
    found = {}
    for row, gram_NN in grams.items():
        own = common * EXPECTED[row] ** 2 if row in EXPECTED else signal(gram_NN, counts_N)
        found[row] = squared_length(gram_NN, counts_N) / own - 1
    return found


def tiny_table(grams: Mapping[str, np.ndarray]) -> list[OnTiny]:
    """Return every row with 95 % intervals from resampled batches, the same resamples for all rows."""
    batches = len(grams["rloo"])
    once = np.ones(batches)
    drawn = np.random.default_rng(0).multinomial(batches, once / batches, size=RESAMPLES).astype(np.float64)
    found = relative_variances(grams, once)
    draws = [relative_variances(grams, counts) for counts in drawn]
    resampled = {row: np.array([draw[row] for draw in draws]) for row in grams}
    table = []
    for row, values in resampled.items():
        low, high = np.quantile(values, (0.025, 0.975))
        to_low, to_high = np.quantile(values / resampled["rloo"], (0.025, 0.975))
        table.append(
            OnTiny(
                row=row,
                relative_variance=found[row],
                low=float(low),
                high=float(high),
                to_rloo=found[row] / found["rloo"],
                to_rloo_low=float(to_low),
                to_rloo_high=float(to_high),
            )
        )
    return table


def show_exact(table: Sequence[Exact]) -> None:
    print("three actions: variance of one sample's worth, by enumeration and in closed form")
    policies = {policy.name: policy for policy in POLICIES}
    for name in dict.fromkeys(row.policy for row in table):
        policy = policies[name]
        print(f"{name}: p = {policy.probabilities}, rewards {policy.rewards}")
        print(f"  {'baseline':20}{'G':>3}{'mean gradient':>25}{'enumerated':>12}{'closed form':>13}{'/ |mean|^2':>12}")
        for row in (row for row in table if row.policy == name):
            mean = " ".join(f"{value:7.4f}" for value in row.mean)
            closed = "-" if row.closed_form is None else f"{row.closed_form:.6f}"
            size = "-" if row.group_size == 1 else row.group_size
            print(f"  {row.baseline:20}{size:>3}{mean:>25}{row.variance:12.6f}{closed:>13}{row.relative:12.3f}")


def show_tiny(table: Sequence[OnTiny], model: str, batches: int, reward: float) -> None:
    sampled = f"{batches} batches of {PROMPTS} prompts x {SAMPLES} samples, mean reward {reward:.2f}"
    print(f"{model}, {sampled}: variance / |mean|^2 of a batch")
    print(f"{'':20}{'variance':>10}  {'95 %, over batches':20}{'to rloo':>8}  95 %")
    for row in table:
        own = f"[{row.low:.2f}, {row.high:.2f}]"
        ratio = f"[{row.to_rloo_low:.2f}, {row.to_rloo_high:.2f}]"
        print(f"{row.row:20}{row.relative_variance:10.2f}  {own:20}{row.to_rloo:8.2f}  {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--model", default="tiny", help="such as a checkpoint of a run on the same problems")
    parser.add_argument("--quick", action="store_true", help="10 batches")
    parser.add_argument("--json", action="store_true", help="all numbers on a last line")
    options = parser.parse_args()
    batches = 10 if options.quick else options.batches
    exact = list(exact_table())
    show_exact(exact)
    grams, reward = grams_on_tiny(options.model, batches)
    tiny = tiny_table(grams)
    show_tiny(tiny, options.model, batches, reward)
    if options.json:
        numbers = {"three_actions": list(map(asdict, exact)), "batches": batches, "reward": reward}
        write_json(numbers | {"model": options.model, "rows": list(map(asdict, tiny))})


if __name__ == "__main__":
    main()
