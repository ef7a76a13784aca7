"""The recipe: everything a reinforcement-learning run depends on, checked before anything is loaded."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from earned.recipe_file import (
    Count,
    Decay,
    NonNegative,
    Positive,
    PositiveFloat,
    Section,
    Share,
    load,
)

PROMPT = "{prompt}"

RewardFinding = Literal[
    "refuses_gold",
    "pays_null_answer",
    "pays_wrong_answer",
    "pays_listed_answers",
    "pays_echoed_prompt",
    "not_deterministic",
    "judges_nothing",
]
"""What `earned check-reward` may find wrong with a reward; its words are in `reward_probe.py`."""
Allowance = (
    Literal["random_reward", "constant_reward", "form_reward", "single_sample", "zero_learning_rate", "no_signal"]
    | RewardFinding
)
"""What would be a mistake in an ordinary run; a recipe names what it means. `form_reward` is one that looks at how a
completion is written and not at whether its answer is right, `no_signal` leaves out the pre-flight."""


class Problems(Section):
    """Where problems come from and how many each split holds."""

    source: str = "sums"
    """A built-in, a file (relative to the current folder), OWNER/NAME[:CONFIG] of the hub, or `reasoning_gym:NAME`."""
    options: dict[str, Any] = Field(default_factory=dict)
    template: str = PROMPT
    """What the model is asked, with the problem in the place of {prompt}; splits and ids go by the problem alone."""
    train: Positive = 4096
    """This and the two below: exact for a built-in, at most so many for a file or the hub."""
    validation: Count = 256
    held_out: Count = 256

    @field_validator("template")
    @classmethod
    def _holds_the_prompt(cls, template: str) -> str:
        if PROMPT not in template:
            raise ValueError(f"{PROMPT} has to stand where the problem goes")
        return template


class RewardPart(Section):
    """One named part of the reward; `check` names a built-in one, or a function of the user's, "FILE.py:function"."""

    check: str
    weight: float = Field(default=1.0, allow_inf_nan=False)
    gate: str | None = None
    """Another part; where that one pays nothing or less, this one pays nothing. A penalty behind a gate spares whoever
    fails the gate, save a truncated attempt."""
    options: dict[str, Any] = Field(default_factory=dict)


class Rewards(BaseModel):
    """`[rewards.NAME]` tables are the parts; their weighted values are added."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, RewardPart]  # pyright: ignore[reportIncompatibleVariableOverride]

    allow: tuple[Allowance, ...] = ()
    max_unscored_share: Share = 0.2
    """Above this share of unscored completions in one step the run stops."""

    @property
    def parts(self) -> dict[str, RewardPart]:
        """The parts by name, in the order of the file."""
        return self.__pydantic_extra__


class Sampling(Section):
    """How attempts are drawn. The distribution trained on is the one sampled, so there is no top-p or top-k here."""

    refused: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("top_p", "top_k"), "refused in training, where what is sampled is what is trained; see `earned sample`"
    )
    engine: Literal["torch"] = "torch"
    prompts_per_step: Positive = 32
    group_size: Positive = 16
    temperature: PositiveFloat = 1.0
    max_new_tokens: Positive = 96
    batch_size: Positive = 1024
    """Most sequences sampled together; bounds the memory of the key/value cache."""
    max_policy_lag: Count = 0
    """Steps between the weights that sample a batch and those it trains; 0 trains on what the newest weights wrote."""


class AlgorithmChoice(Section):
    """A row of `algorithms/named.py`; any value set here wins over the row's own."""

    name: str = "default"
    advantage: str | None = None
    surrogate: str | None = None
    aggregation: str | None = None
    divergence: str | None = None
    clip_low: NonNegative | None = None
    clip_high: NonNegative | None = None
    divergence_weight: NonNegative | None = None
    divergence_in: Literal["loss", "reward"] | None = None
    divergence_target: PositiveFloat | None = None
    sampler_correction: str | None = None
    sampler_correction_cap: PositiveFloat | None = None
    epochs: Positive | None = None
    mini_batches: Positive | None = None
    refill_rounds: Count | None = None
    mask_truncated: bool | None = None
    missing_eos_penalty: NonNegative | None = None


class CriticChoice(Section):
    """The value model of an algorithm that has one; any value set here wins over the row's own."""

    model: str | None = None
    """Whose body it starts from: a name as for the policy's `model`, which is the default."""
    gamma: Share | None = None
    gae_lambda: Share | None = None
    learning_rate: PositiveFloat | None = None
    updates: Positive | None = None
    warmup_steps: Count | None = None
    value_clip: PositiveFloat | None = None
    whiten: bool | None = None


class Optim(Section):
    """AdamW with linear warm-up, then constant."""

    learning_rate: NonNegative = 1e-5
    warmup_steps: Count = 5
    weight_decay: NonNegative = 0.0
    betas: tuple[Decay, Decay] = (0.9, 0.95)
    max_grad_norm: PositiveFloat = 1.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the forward and backward pass; weights and optimiser states are float32."""
    tokens_per_micro_batch: Positive = 8192


class Evaluation(Section):
    """Frozen problems, fresh samples; always also at step 0 and at the last step."""

    check: str = "number"
    """Decides what is right; accuracy never depends on what a run rewards."""
    every: Positive = 20
    samples: Positive = 4
    temperature: PositiveFloat = 1.0
    watched: Count = 12
    """Held-out problems whose completions are sampled with the same random numbers at every evaluation."""


class EveryN(Section):
    """Keep per-token detail every N steps."""

    every: Positive


class Records(Section):
    """Every completion is always kept; only per-token detail may be thinned."""

    tokens: Literal["all", "none"] | EveryN = "all"


class Checkpointing(Section):
    """When to save; the last step is always saved."""

    every: Positive = 50
    keep_last: Positive = 2


class Curriculum(Section):
    """Which problems a step trains on, by their measured pass rates; without this table, all of them in turn."""

    prefer: tuple[Share, Share] = (0.1, 0.9)
    """Problems that are right this often have the most to teach."""
    retire: Share = 0.9
    """Problems that are right this often or oftener are only re-checked."""
    park_after: Positive = 32
    """Problems that are never right in so many attempts are only re-checked."""
    recheck_share: Share = 0.1
    """Of the problems of a step, on average: retired and parked ones, tried longest ago first."""

    @model_validator(mode="after")
    def _in_order(self) -> "Curriculum":
        low, high = self.prefer
        if not low < high <= self.retire:
            raise ValueError(
                f"prefer = [{low:g}, {high:g}] and retire = {self.retire:g}: the first number has to be below the "
                "second, and the second at most retire"
            )
        return self


class Recipe(Section):
    """A reinforcement-learning run."""

    seed: Count = 0
    steps: Positive = 60
    model: str = "tiny"
    preflight_tries: Positive = 256
    """Most attempts that the pre-flight samples; when they teach nothing, training does not begin."""
    max_empty_steps: Positive = 20
    """After so many steps in a row without any signal the run says why and what to change, and goes on."""
    problems: Problems = Problems()
    rewards: Rewards
    sampling: Sampling = Sampling()
    curriculum: Curriculum | None = None
    algorithm: AlgorithmChoice = AlgorithmChoice()
    critic: CriticChoice = CriticChoice()
    optim: Optim = Optim()
    evaluation: Evaluation = Evaluation()
    records: Records = Records()
    checkpoint: Checkpointing = Checkpointing()

    @model_validator(mode="after")
    def _consistent(self) -> "Recipe":
        allow = self.rewards.allow
        if not self.rewards.parts:
            raise ValueError('rewards: no part given; add for example [rewards.answer] with check = "number"')
        if self.optim.learning_rate == 0 and "zero_learning_rate" not in allow:
            raise ValueError(
                'optim.learning_rate: 0 trains nothing; give a positive rate, or rewards.allow = ["zero_learning_rate"]'
            )
        if self.sampling.prompts_per_step > self.problems.train:
            raise ValueError(
                f"sampling.prompts_per_step: {self.sampling.prompts_per_step} is more than the "
                f"{self.problems.train} training problems (problems.train)"
            )
        if (self.algorithm.mini_batches or 1) > self.sampling.prompts_per_step:
            raise ValueError(
                f"algorithm.mini_batches: {self.algorithm.mini_batches} is more than the "
                f"{self.sampling.prompts_per_step} prompts of a step (sampling.prompts_per_step)"
            )
        return self


def load_recipe(file: str | Path, flags: Mapping[str, str] | None = None) -> Recipe:
    """Return the training recipe of a TOML file; `flags`, such as `{"optim.learning_rate": "1e-5"}`, win over it.

    Raises RecipeError as `load` does.
    """
    return load(Recipe, Path(file), flags)
