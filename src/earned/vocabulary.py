"""The records that cross rooms, and the words of the project.

*Reward* is a number for one completion, *score* the reward with its parts and reasons, *advantage* how much better than
its siblings a completion did, *return* what a token still earns. Shapes: P problems, G samples each, B = P*G, T tokens.
All log-probabilities are in nats.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

GREEDY_ATTEMPT = -1
"""The attempt number of a completion that took the most likely token everywhere."""


class Split(StrEnum):
    """Which part of the problems a problem belongs to, decided by a hash of its prompt and gold."""

    TRAIN = "train"
    """Sampled, scored and trained on."""
    VALIDATION = "validation"
    """Chooses between checkpoints; never trained on."""
    HELD_OUT = "held_out"
    """Only reports; never trained on and never chooses."""

    @property
    def in_words(self) -> str:
        """The split as people read it, `held-out`."""
        return self.value.replace("_", "-")


class StopReason(StrEnum):
    """Why sampling of a completion ended."""

    EOS = "eos"
    """An end-of-sequence token was sampled; it is the last token and is trained on."""
    LENGTH = "length"
    """The limit on new tokens was reached first: the completion is truncated."""


class ScoreStatus(StrEnum):
    """Whether a completion could be judged."""

    SCORED = "scored"
    """Judged; whatever the completion did wrong is in the value."""
    UNSCORED = "unscored"
    """The checker failed, not the completion: left out of statistics and baselines, and counted."""


class Rule(StrEnum):
    """What decided a verdict."""

    EQUAL = "equal"
    """The answer is the gold answer, in this or another writing."""
    DIFFERENT = "different"
    """An answer was read, and it is another one."""
    NO_ANSWER = "no_answer"
    """The completion gives no answer, or not one alone."""
    UNREADABLE = "unreadable"
    """What stands in the answer's place cannot be compared with the gold."""
    TIMED_OUT = "timed_out"
    """The comparison took too long, which is the answer's doing: it counts as wrong."""
    MEASURED = "measured"
    """A number that depends on the text in another way: its length, its form, a reward of the user's own."""
    UNREADABLE_GOLD = "unreadable_gold"
    """The gold answer is missing or cannot be compared: unscored."""
    FAILED = "failed"
    """The check itself failed: unscored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One problem: `Problem(id="sums-1", prompt="47+58=", gold="105", source="sums", split=Split.TRAIN)`."""

    id: str
    """Unique over all splits of a run."""
    prompt: str
    """What the model is asked, before any chat template."""
    gold: str | None
    """The right answer, or None where there is none to compare with."""
    source: str
    """Name of the built-in or path of the file it came from."""
    split: Split
    columns: Mapping[str, object] = field(default_factory=dict)
    """Further columns of the row, handed to rewards by name."""
    cluster: str | None = None
    """Names what a problem is one wording of. Problems of a cluster share a split and count as one in intervals; None
    where a problem stands alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A worked problem that the model is shown before the one it is asked."""

    problem: Problem
    answer: str
    """The whole worked answer, such as the steps with `#### 72` below them; not only the gold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """A problem as the model reads it."""

    problem: Problem
    token_ids: tuple[int, ...]
    """[prompt length]; rendered once, the same ids in training, sampling and evaluation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A stretch of a completion with one author."""

    token_ids: tuple[int, ...]
    sampled: bool
    """True where the policy drew the tokens; False where something else wrote them (a tool, a next turn)."""
    sampler_logprobs: tuple[float, ...]
    """[len(token_ids)], of the distribution really sampled, temperature included; 0.0 where not sampled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What the policy answered: the ids that were sampled are the ids that are trained."""

    segments: tuple[Segment, ...]
    text: str
    """For people and checkers; never encoded again."""
    stop_reason: StopReason
    policy_version: int
    """Number of updates the sampling weights had seen."""

    @property
    def token_ids(self) -> tuple[int, ...]:
        """All ids of all segments, [completion length], the sampled end-of-sequence included."""
        return tuple(token for segment in self.segments for token in segment.token_ids)

    @property
    def length(self) -> int:
        """Tokens, the sampled end-of-sequence included."""
        return sum(len(segment.token_ids) for segment in self.segments)

    @property
    def sampled(self) -> tuple[bool, ...]:
        """[completion length], True where the policy drew the token."""
        return tuple(segment.sampled for segment in self.segments for _ in segment.token_ids)

    @property
    def sampler_logprobs(self) -> tuple[float, ...]:
        """[completion length], nats."""
        return tuple(value for segment in self.segments for value in segment.sampler_logprobs)

    @property
    def truncated(self) -> bool:
        """True when the length limit ended it."""
        return self.stop_reason is StopReason.LENGTH


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """What a check may see of a completion: the problem and the text, never another completion's."""

    problem: Problem
    text: str
    truncated: bool = False
    """True when the length limit ended the text, so that its last words may not be all that was meant."""
    tokens: int | None = None
    """Length, end-of-sequence included; None for a text that no model wrote."""
    seed: int
    step: int
    rollout_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PartScore:
    """What one named part of the reward said about a completion."""

    name: str
    weight: float
    value: float | None
    """None when the part could not judge (status unscored), or does not apply."""
    extracted: str | None
    """The answer that was read, None when none was found."""
    explanation: str
    """The rule that decided, in words."""
    rule: Rule = Rule.MEASURED
    applies: bool = True
    """False when the part has nothing to say about this completion, and so leaves the sum."""
    contribution: float | None = None
    """Its share of the completion's advantage, which the parts add up to; None where nothing is trained on, or where
    the advantage is no such sum."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """The reward of one completion with its reasons."""

    value: float | None
    """Weighted sum of the parts that apply; None exactly when status is unscored."""
    status: ScoreStatus
    parts: tuple[PartScore, ...]

    @property
    def extracted(self) -> str | None:
        """The first answer any part read."""
        return next((part.extracted for part in self.parts if part.extracted is not None), None)

    @property
    def explanation(self) -> str:
        """The reasons of all parts on one line."""
        return "; ".join(f"{part.name}: {part.explanation}" for part in self.parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """One scored attempt at a problem."""

    id: str
    """Unique in the run: `phase/step/problem/attempt`."""
    attempt: int
    """0..G-1 within the group; GREEDY_ATTEMPT for the most likely completion of an evaluation."""
    completion: Completion
    score: Score


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutGroup:
    """The G attempts at one problem, which are each other's baseline."""

    prompt: Prompt
    rollouts: tuple[Rollout, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenDetail:
    """Per-token numbers of one trained rollout, each [completion length]."""

    rollout_id: str
    old_logprobs: tuple[float, ...]
    """At the start of this update."""
    entropy: tuple[float, ...]
    """Nats, of the distribution the token was drawn from."""
    ratio: tuple[float, ...]
    """exp(policy - old) at the last pass over the token."""
    clipped: tuple[bool, ...]
    """True where the surrogate gave the token no gradient because of the clip."""
    after_logprobs: tuple[float, ...] | None = None
    """After the update; kept for one group a step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationResult:
    """Accuracy of one split at one step.

    Every accuracy is a mean over units of the mean over a unit's problems. A unit is what is independent of the others:
    a cluster, or a problem that stands alone.
    """

    step: int
    split: Split
    problems: int
    units: int
    """Independent problems: those of one cluster count as one."""
    samples: int
    """Completions per problem, k of mean@k."""
    mean: float
    """mean@k at the evaluation's temperature."""
    low: float
    high: float
    """95 % interval of the mean."""
    greedy: float
    """Accuracy of the most likely completion."""
    pass_at_k: float
    """Share of problems solved at least once in k, unbiased."""
    maj_at_k: float
    """Accuracy of the answer that most of the k attempts give; NaN where the check reads no answers."""
    length_mean: float
    """Tokens, EOS included."""
    truncated_share: float
