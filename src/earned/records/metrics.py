"""The one declaration of metric keys: what each number is, its unit, and what to look for in it."""

from dataclasses import dataclass

from earned.errors import RecordError, did_you_mean


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
        "groups/discarded",
        "groups",
        "Problems that were tried and left out because all their attempts got the same reward, others in their place.",
    ),
    Metric(
        "groups/missing",
        "groups",
        "Problems still missing from the batch after the last refill: above 0 the bound (algorithm.refill_rounds) was "
        "reached.",
    ),
    Metric(
        "reward/used_mean",
        "reward",
        "Average reward of the completions that were trained on; reward/mean is of all that were sampled.",
    ),
    Metric(
        "curriculum/preferred_share",
        "share",
        "Training problems whose measured pass rate is within curriculum.prefer: these are trained on most.",
    ),
    Metric(
        "curriculum/untried_share",
        "share",
        "Training problems that no step has tried yet: falls to 0 as the run goes through them.",
    ),
    Metric(
        "curriculum/outside_share",
        "share",
        "Training problems that were tried, are right too seldom or too often to be preferred, and are not given up: "
        "tried again now and then.",
    ),
    Metric(
        "curriculum/retired_share",
        "share",
        "Training problems that the policy has learned (curriculum.retire), which are only re-checked: when nearly "
        "all are, give harder problems.",
    ),
    Metric(
        "curriculum/parked_share",
        "share",
        "Training problems that were never solved in curriculum.park_after attempts, which are only re-checked: when "
        "most are, give easier problems.",
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
        "behaviour/verifying_share",
        "share",
        "Completions in which the writer says that a result is now checked, such as 'let me check: ...', counted by "
        "phrases in English: compare with a control, because a phrase can be said without being meant.",
    ),
    Metric(
        "behaviour/backtracking_share",
        "share",
        "Completions in which the writer takes back what was just written, such as 'wait, that is not right', counted "
        "by phrases in English: a rise is worth something only beside a rise of accuracy.",
    ),
    Metric(
        "behaviour/restarting_share",
        "share",
        "Completions in which the writer begins again or takes up another way, such as 'let me try a different "
        "approach', counted by phrases in English.",
    ),
    Metric(
        "behaviour/subgoals_share",
        "share",
        "Completions in which the writer announces a part of the work, such as 'first, find the price of one' or "
        "'step 2:', counted by phrases in English.",
    ),
    Metric(
        "behaviour/long_share",
        "share",
        "Completions longer than half of sampling.max_new_tokens: when it rises, the cut-off ones follow unless the "
        "limit is raised.",
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
        "Largest distance of a token's probability ratio from 1 in any update of the step: 0 with one update a batch.",
    ),
    Metric(
        "update/first_ratio_deviation_max",
        "ratio",
        "Largest distance of a probability ratio from 1 in the first update of the step, before any weight moved: "
        "anything but nearly 0 means that two readings of the same tokens disagree.",
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
        "divergence/completion_nats",
        "nats",
        "The same distance summed over a completion: what a target for the divergence is compared with.",
    ),
    Metric(
        "divergence/weight",
        "reward per nat",
        "What a nat of distance costs: changes only where the divergence has a target.",
    ),
    Metric(
        "critic/loss",
        "reward squared",
        "Half the squared error of the value model's forecasts, as it was trained: should fall from its first value.",
    ),
    Metric(
        "critic/explained_variance",
        "share",
        "How much of the difference between returns the value model had forecast before it saw them: 1 all, 0 no more "
        "than their mean, below 0 worse than that.",
    ),
    Metric("critic/value_mean", "reward", "Average forecast of the value model: should be near the average return."),
    Metric("critic/return_mean", "reward", "Average of what the value model should have forecast."),
    Metric(
        "critic/value_right_mean",
        "reward",
        "Average forecast at the last token of right completions: above that of wrong ones once the model can tell.",
    ),
    Metric("critic/value_wrong_mean", "reward", "Average forecast at the last token of wrong completions."),
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
        "Tokens whose sampler correction reached its cap or left them out: should be close to 0.",
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
