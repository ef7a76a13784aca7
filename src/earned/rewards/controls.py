"""Rewards that know nothing of the answer: what a run does with them is not learning."""

from pydantic import Field

from earned.randomness import generator
from earned.recipe_file import Share
from earned.rewards.verdict import BuiltInCheck, Verdict
from earned.vocabulary import Attempt


class RandomReward(BuiltInCheck):
    """1 with probability `p`, else 0, whatever the text says."""

    p: Share = 0.5

    def __call__(self, attempt: Attempt) -> Verdict:
        """Draw from (seed, step, key): the same attempt gets the same reward again."""
        won = generator(attempt.seed, attempt.step, "random reward", attempt.rollout_id).random() < self.p
        return Verdict(value=float(won), extracted=None, explanation=f"random, 1 with probability {self.p}")


class ConstantReward(BuiltInCheck):
    """The same value for every attempt."""

    value: float = Field(default=1.0, allow_inf_nan=False)

    def __call__(self, attempt: Attempt) -> Verdict:
        """Return the value."""
        return Verdict(value=self.value, extracted=None, explanation=f"always {self.value}")
