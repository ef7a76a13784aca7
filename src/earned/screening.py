"""Looks at training problems before a run: how often a model solves each, and how many groups would teach something."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from earned.diagnostics.groups import is_right, scored
from earned.errors import RecipeError, VerifierError
from earned.evaluation.group_signal import Bar, GroupSignal, PassCount, advice, fitted, group_signal, histogram
from earned.evaluation.per_problem import unit_means
from earned.evaluation.statistics import Interval, clustered_interval
from earned.optimization.allocator import keep_freed_memory
from earned.policy.load import load_policy
from earned.policy.prompts import render_all
from earned.problems.problem_set import ProblemSet
from earned.problems.shapes import counted
from earned.problems.sources import load_problems
from earned.recipe import Problems
from earned.rewards.checks import GOLD_PARSERS
from earned.rewards.gold import can_judge
from earned.rewards.user_reward import Resources
from earned.rollouts.collect import scored_groups
from earned.rollouts.engine import Draw, SamplingSettings
from earned.rollouts.torch_engine import TorchEngine
from earned.sandbox.workers import WorkerPool
from earned.task import WORKERS, answer_check, columns_of
from earned.vocabulary import RolloutGroup

DEFAULT_LIMIT = 256
"""Problems that are screened when nobody says how many."""
PAIR = 2
"""Attempts that it takes to compare anything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Screened:
    """What a few attempts at each training problem say about training on them."""

    problems: tuple[PassCount, ...]
    """All of them, in order; only those with two scored attempts count below, in the histogram those with one."""
    samples: int
    """Attempts at each problem, k."""
    pass_rate: Interval
    never: float
    """Share of the problems that no attempt solved."""
    always: float
    """Share of the problems that every attempt solved."""
    signals: tuple[GroupSignal, ...]
    """One for each group size that was asked about."""
    length_mean: float
    """Tokens, EOS included."""
    truncated_share: float
    notes: tuple[str, ...]
    """What was read and what could not be scored, in sentences for people."""

    @property
    def histogram(self) -> tuple[Bar, ...]:
        """How many problems have which pass rate."""
        return histogram(self.problems, self.samples)

    @property
    def advice(self) -> str:
        """What to change in a recipe, in words."""
        return advice(self.signals, self.never, self.always)


def screen(
    model: str,
    problems: Problems,
    settings: SamplingSettings,
    *,
    check: str = "number",
    group_sizes: Sequence[int] = (4, 8, 16),
    limit: int = DEFAULT_LIMIT,
    seed: int = 0,
) -> Screened:
    """Return how often a model solves training problems, and what share of groups would have signal.

    Signal is right and wrong attempts beside each other; parts of a reward other than the answer may add to it.

    Args:
        model: A built-in name, a model folder (such as a checkpoint of a run) or a hub id.
        problems: Source, options and template; its counts are not used.
        settings: How attempts are drawn; `group_size` is k.
        check: What decides that an answer is right.
        group_sizes: For which sizes G the share is wanted.
        limit: At most so many problems.
        seed: Of a built-in and of the sampling.

    Raises:
        RecipeError: a number that cannot be, or the problems or the check cannot be used.
        PolicyError: the model cannot be used.
        VerifierError: no problem has two attempts that could be scored.
    """
    _require(settings.group_size, group_sizes, limit)
    wanted = problems.model_copy(update={"train": limit, "validation": 0, "held_out": 0})
    found = load_problems(wanted, seed, GOLD_PARSERS.get(check))
    if not can_judge(check, found.train):
        raise RecipeError(f"{problems.source}: not one of its problems has an answer that the check {check!r} can read")
    groups = _attempts(model, found, settings, check, seed)
    counts = tuple(_count(group) for group in groups)
    usable = [one for one in counts if one.scored >= PAIR]
    if not usable:
        why = groups[0].rollouts[0].score.explanation
        raise VerifierError(f"no problem has two attempts that could be scored, for example: {why}")
    completions = [rollout.completion for group in groups for rollout in group.rollouts]
    k = settings.group_size
    signals = tuple(group_signal(usable, group, k) for group in group_sizes)
    return Screened(
        problems=counts,
        samples=k,
        pass_rate=clustered_interval(unit_means(usable, lambda one: one.right / one.scored), k),
        never=fmean(one.right == 0 for one in usable),
        always=fmean(one.right == one.scored for one in usable),
        signals=signals,
        length_mean=fmean(completion.length for completion in completions),
        truncated_share=fmean(completion.truncated for completion in completions),
        notes=(*found.notes, *_unscored(counts, k), *_model_beside(usable, signals, k)),
    )


def _require(samples: int, group_sizes: Sequence[int], limit: int) -> None:
    if samples < PAIR:
        raise RecipeError(f"samples: {samples} attempt has nothing to be compared with; give 2 or more, 8 is usual")
    if not group_sizes or min(group_sizes) < PAIR:
        given = ",".join(map(str, group_sizes)) or "none"
        raise RecipeError(f"group_size: sizes of 2 or more, for example 4,8,16, not {given}")
    if limit < 1:
        raise RecipeError(f"limit: at least 1 problem, not {limit}")


def _attempts(
    model: str, problems: ProblemSet, settings: SamplingSettings, check: str, seed: int
) -> tuple[RolloutGroup, ...]:
    keep_freed_memory()
    policy = load_policy(model)
    prompts = render_all(policy, problems.train, settings.max_new_tokens)
    draw = Draw(seed=seed, step=0, purpose="screen")
    with WorkerPool(WORKERS) as pool:
        judge = answer_check(check, Resources(pool=pool, columns=columns_of(problems)))
        completions = TorchEngine(policy, batch_size=1024).generate(prompts, settings, draw)
        return scored_groups(prompts, completions, judge.score_all, draw)


def _count(group: RolloutGroup) -> PassCount:
    judged, problem = scored(group), group.prompt.problem
    right = sum(is_right(rollout.score) for rollout in judged)
    return PassCount(id=problem.id, cluster=problem.cluster, scored=len(judged), right=right)


def _unscored(counts: Sequence[PassCount], samples: int) -> list[str]:
    attempts = sum(samples - one.scored for one in counts)
    left = counted(sum(one.scored < PAIR for one in counts), "problem")
    sentence = f"{counted(attempts, 'attempt')} could not be scored and count in no share; {left} left out"
    return [sentence] if attempts else []


def _model_beside(usable: Sequence[PassCount], signals: Sequence[GroupSignal], samples: int) -> list[str]:
    """Return what the model says where it can be compared with a count, if it is asked for anything."""
    counted_there = group_signal(usable, samples, samples)
    if all(signal.counted for signal in signals) or not counted_there.counted:
        return []
    modelled = fitted(usable).signal_share(samples)
    return [f"for groups of {samples} the model says {modelled:.3f}, where {counted_there.share:.3f} was counted"]
