"""Many attempts at one problem, taken and judged just as training would."""

from collections.abc import Mapping
from dataclasses import dataclass

from earned.algorithms.named import resolve
from earned.diagnostics.explanations import COMPARISONS, explain_advantages
from earned.diagnostics.groups import is_right, scored
from earned.errors import RecipeError
from earned.optimization.allocator import keep_freed_memory
from earned.policy.load import load_policy
from earned.policy.prompts import render_all
from earned.problems.splits import make_problem
from earned.rewards.gold import can_judge
from earned.rewards.user_reward import Resources
from earned.rollouts.collect import scored_groups
from earned.rollouts.engine import Draw, SamplingSettings
from earned.rollouts.torch_engine import TorchEngine
from earned.sandbox.workers import WorkerPool
from earned.task import WORKERS, answer_check
from earned.training.advantages import group_advantages
from earned.vocabulary import Attempt, Prompt, Rollout, RolloutGroup, Score, ScoreStatus, StopReason

PURPOSE = "sample"


@dataclass(frozen=True, kw_only=True, slots=True)
class SampledAttempt:
    """One attempt; what is about its reward is None where nothing judged it."""

    text: str
    tokens: int
    """Length, end-of-sequence included."""
    stop_reason: StopReason
    truncated: bool
    right: bool | None
    """Whether the reward is full; None also where the check failed, as the explanation then says."""
    reward: float | None
    extracted: str | None
    """The answer that was read, None also where none was found."""
    explanation: str | None
    """The rule that decided, in words."""
    advantage: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampled:
    """The attempts at one problem."""

    prompt: Prompt
    attempts: tuple[SampledAttempt, ...]
    lesson: str | None
    """What training on these attempts alone would do; None where nothing judged them, or where the algorithm has no
    such sentence."""

    @property
    def mean_reward(self) -> float | None:
        """Mean over the attempts that have a reward, None when none has."""
        rewards = [attempt.reward for attempt in self.attempts if attempt.reward is not None]
        return sum(rewards) / len(rewards) if rewards else None


def sample(
    model: str,
    prompt: str,
    settings: SamplingSettings,
    *,
    answer: str | None = None,
    check: str = "number",
    algorithm: str = "default",
    seed: int = 0,
) -> Sampled:
    """Return the attempts of a model at one problem, and where they can be judged, rewards and advantages.

    Checks that compare with a right answer judge only when `answer` is given; all others, such as the user's own
    `"FILE.py:function"`, judge always.

    Raises:
        RecipeError: no such check or algorithm, an answer that the check cannot read, or a prompt that does not fit.
        PolicyError: the model cannot be used.
    """
    problem = make_problem(prompt, answer, PURPOSE)
    judged = can_judge(check, [problem])
    if answer is not None and not judged:
        raise RecipeError(f"answer: the check {check!r} cannot read {answer!r}, so it could judge no attempt")
    chosen = resolve(algorithm)
    with WorkerPool(WORKERS) as pool:
        judge = answer_check(check, Resources(pool=pool))
        keep_freed_memory()
        policy = load_policy(model)
        prompts = render_all(policy, [problem], settings.max_new_tokens)
        draw = Draw(seed=seed, step=0, purpose=PURPOSE)
        completions = TorchEngine(policy, batch_size=settings.group_size).generate(prompts, settings, draw)
        groups = scored_groups(prompts, completions, judge.score_all if judged else _unjudged, draw)
    advantages = group_advantages(groups, chosen) if judged else {}
    [group] = groups
    return Sampled(
        prompt=group.prompt,
        attempts=tuple(_attempt(rollout, advantages.get(rollout.id)) for rollout in group.rollouts),
        lesson=_lesson(group, algorithm),
    )


def _unjudged(attempts: Mapping[str, Attempt]) -> dict[str, Score]:
    return dict.fromkeys(attempts, Score(value=None, status=ScoreStatus.UNSCORED, parts=()))


def _attempt(rollout: Rollout, advantage: float | None) -> SampledAttempt:
    completion, score = rollout.completion, rollout.score
    return SampledAttempt(
        text=completion.text,
        tokens=completion.length,
        stop_reason=completion.stop_reason,
        truncated=completion.truncated,
        right=None if score.value is None else is_right(score),
        reward=score.value,
        extracted=score.extracted,
        explanation=score.parts[0].explanation if score.parts else None,
        advantage=advantage,
    )


def _lesson(group: RolloutGroup, algorithm: str) -> str | None:
    rewards = [rollout.score.value for rollout in scored(group) if rollout.score.value is not None]
    if not rewards or algorithm not in COMPARISONS:
        return None
    [explained] = explain_advantages([rewards], COMPARISONS[algorithm])
    return explained.lesson
