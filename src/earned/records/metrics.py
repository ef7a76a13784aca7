"""The one declaration of metric keys: what each number is, its unit, and what to look for in it."""

from dataclasses import dataclass

from earned.errors import RecordError
from earned.recipe_file import did_you_mean


@dataclass(frozen=True, slots=True)
class Metric:
    """A number recorded once a step."""

    key: str
    """`group/quantity`; a trailing `*` stands for a family, such as one key for each part of the reward."""
    unit: str
    sentence: str
    """For a person who meets the number for the first time."""

    def covers(self, key: str) -> bool:
        """Return whether `key` is this metric or a member of its family.

        >>> Metric("reward/part/*", "reward", "").covers("reward/part/answer")
        True
        """
        family = self.key.removesuffix("*")
        return key == self.key if family == self.key else key.startswith(family) and key != family


METRICS = (
    Metric(
        "reward/mean",
        "reward",
        "Average reward of this step's completions: it should rise, and means something only if the held-out accuracy "
        "rises with it.",
    ),
    Metric(
        "reward/deviation",
        "reward",
        "How far rewards lie from their average (population standard deviation): near 0 means the attempts are too "
        "alike to learn from.",
    ),
    Metric(
        "reward/part/*",
        "reward",
        "Average of one part of the reward before its weight: shows which part the rise of the total comes from.",
    ),
    Metric(
        "reward/contribution/*",
        "advantage",
        "Average size of what one part of the reward adds to the push on a completion, up or down: shows which part is "
        "being trained on; a part that every attempt gets alike adds 0.",
    ),
    Metric(
        "reward/unscored_share",
        "share",
        "Completions whose check failed on our side, so nobody can say whether they are right: should be 0.",
    ),
    Metric(
        "groups/mixed_share",
        "share",
        "Problems with both right and wrong attempts: these teach the most, because attempts can be compared.",
    ),
    Metric(
        "groups/all_right_share",
        "share",
        "Problems that every attempt solved: nothing is left to learn from them; when high, give harder problems.",
    ),
    Metric(
        "groups/all_wrong_share",
        "share",
        "Problems that no attempt solved: when high, give easier problems or more attempts for each.",
    ),
    Metric(
        "groups/zero_signal_share",
        "share",
        "Problems whose attempts all got the same reward, whatever its value: compared with each other they teach "
        "nothing.",
    ),
    Metric(
        "groups/unusable",
        "groups",
        "Problems with fewer than two scored attempts, where there is nothing to compare: should be 0.",
    ),
    Metric(
        "completions/length_mean",
        "tokens",
        "Average length of a completion, its end-of-sequence token included: watch for growth without better answers.",
    ),
    Metric(
        "completions/length_max",
        "tokens",
        "Longest completion of the step: at sampling.max_new_tokens some answers are being cut off.",
    ),
    Metric(
        "completions/length_right_mean",
        "tokens",
        "Average length of the right completions: compare with the wrong ones to see whether longer is better.",
    ),
    Metric(
        "completions/length_wrong_mean",
        "tokens",
        "Average length of the wrong completions: growing alone, it says that failing attempts ramble.",
    ),
    Metric(
        "completions/truncated_share",
        "share",
        "Completions cut off by the length limit before they ended themselves: should be small and not grow.",
    ),
    Metric(
        "completions/distinct_answers_mean",
        "answers",
        "How many different answers the attempts at one problem gave, on average: falling to 1 means exploration has "
        "stopped.",
    ),
    Metric(
        "advantage/absolute_mean",
        "advantage",
        "Average size of the push on a completion, up or down: 0 means the step has nothing to teach.",
    ),
    Metric(
        "update/loss",
        "loss",
        "The number that was minimised: near 0 on the first pass by construction, so not a sign of progress.",
    ),
    Metric(
        "update/grad_norm",
        "norm",
        "Length of the gradient before clipping: sudden jumps announce an unstable run.",
    ),
    Metric(
        "update/learning_rate",
        "rate",
        "Step size of the optimiser in this update: rises during warm-up, then stays.",
    ),
    Metric(
        "update/entropy_nats",
        "nats",
        "How undecided the policy is about its next token, on average: a fall to 0 means it no longer tries anything "
        "new.",
    ),
    Metric(
        "update/ratio_deviation_max",
        "ratio",
        "Largest distance of a probability ratio from 1 on the first pass, before any weight moved: anything but "
        "nearly 0 means sampled and trained tokens are scored differently.",
    ),
    Metric(
        "update/approx_kl_nats",
        "nats",
        "How far this update moved the policy from where it started (mean k3 of policy against old): small and steady "
        "is healthy.",
    ),
    Metric(
        "update/clipped_share",
        "share",
        "Trained tokens that the clip left without gradient: 0 with one update a batch, a few per cent with several.",
    ),
    Metric(
        "update/trained_rows_share",
        "share",
        "Completions that went through the forward pass because they carry signal: the rest were skipped as nothing "
        "to learn.",
    ),
    Metric(
        "update/skipped",
        "0 or 1",
        "1 when the gradient was not finite and the update was left out: should stay 0.",
    ),
    Metric(
        "update/empty",
        "0 or 1",
        "1 when no problem of the step carried any signal, so no weight was changed.",
    ),
    Metric(
        "update/weights_changed_share",
        "share",
        "Weights whose stored value differs after the update: near 0 means the learning rate is lost in rounding.",
    ),
    Metric(
        "divergence/reference_nats",
        "nats",
        "How far the policy has moved from the model it started as: rewards that rise only with a large distance "
        "deserve doubt.",
    ),
    Metric(
        "sampler/logprob_difference_mean",
        "nats",
        "Average distance between the log-probability the sampler reported and the trainer's own: should be close "
        "to 0.",
    ),
    Metric(
        "sampler/logprob_difference_max",
        "nats",
        "Largest distance between the sampler's and the trainer's log-probability of one token: a jump means the two "
        "disagree about the model.",
    ),
    Metric(
        "sampler/effective_sample_share",
        "share",
        "How much of the sample is left when it is reweighted from sampler to trainer: 1 is perfect agreement.",
    ),
    Metric(
        "sampler/capped_share",
        "share",
        "Tokens whose sampler correction reached its cap: should be close to 0.",
    ),
    Metric("time/sample_seconds", "s", "Time spent writing completions: usually the largest part of a step."),
    Metric("time/score_seconds", "s", "Time spent judging completions: large values mean a slow check."),
    Metric("time/update_seconds", "s", "Time spent on forward and backward passes and on the optimiser."),
    Metric("time/evaluate_seconds", "s", "Time spent measuring accuracy on the frozen problems: 0 in most steps."),
    Metric("time/record_seconds", "s", "Time training spent handing over its records: should be close to 0."),
    Metric("time/checkpoint_seconds", "s", "Time spent saving the model: 0 in most steps."),
    Metric(
        "time/step_seconds", "s", "Time of the whole step: times the steps still to do, how long the run will take."
    ),
    Metric(
        "throughput/sampled_tokens_per_second",
        "tokens/s",
        "Tokens written in a second of sampling: compare it between machines and settings.",
    ),
    Metric(
        "records/writer_cpu_seconds",
        "s",
        "CPU time the background writer has used since the run began: compare with the time of all steps.",
    ),
    Metric(
        "records/queue_waits",
        "waits",
        "How often training had to wait for the disk since the run started: should stay 0.",
    ),
)


def require_declared(key: str) -> Metric:
    """Return the declaration of `key`; raises RecordError naming the nearest key when there is none.

    >>> require_declared("completions/length_mean").unit
    'tokens'
    """
    for metric in METRICS:
        if metric.covers(key):
            return metric
    families = ", ".join(dict.fromkeys(f"{metric.key.split('/')[0]}/" for metric in METRICS))
    hint = did_you_mean(key, [metric.key for metric in METRICS]) or f" Keys begin with {families}"
    raise RecordError(f"metric {key!r} is not declared in records/metrics.py.{hint}")
