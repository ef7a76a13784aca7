"""The recipe: everything a run depends on, as one TOML file checked before anything is loaded.

Every key is also a flag (`--algorithm.name rloo`) and an environment variable (`EARNED_ALGORITHM__NAME=rloo`).
Precedence, low to high: defaults here, the file, the environment, flags.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from earned.errors import RecipeError

ENVIRONMENT_PREFIX = "EARNED_"
NOT_RECIPE_KEYS = {"EARNED_HOME", "EARNED_SHARED"}
PROMPT = "{prompt}"
UNTRAINABLE = ("sampling.top_p", "sampling.top_k")

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

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    """Base of every table: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Problems(Section):
    """Where problems come from and how many each split holds."""

    source: str = "sums"
    """A built-in, a file (relative to the current folder), OWNER/NAME[:CONFIG] of the hub, or `reasoning_gym:NAME`."""
    options: dict[str, Any] = {}
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
    options: dict[str, Any] = {}


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

    engine: Literal["torch"] = "torch"
    prompts_per_step: Positive = 32
    group_size: Positive = 16
    temperature: PositiveFloat = 1.0
    max_new_tokens: Positive = 96
    batch_size: Positive = 1024
    """Most sequences sampled together; bounds the memory of the key/value cache."""


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
    sampler_correction_cap: PositiveFloat | None = None
    updates_per_batch: Positive = 1


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
    algorithm: AlgorithmChoice = AlgorithmChoice()
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
        if self.algorithm.updates_per_batch > self.sampling.prompts_per_step:
            raise ValueError(
                f"algorithm.updates_per_batch: {self.algorithm.updates_per_batch} is more than the "
                f"{self.sampling.prompts_per_step} prompts of a step (sampling.prompts_per_step)"
            )
        return self


R = TypeVar("R", bound=Section)
Table = TypeVar("Table", bound=BaseModel)


def load(
    kind: type[R],
    file: Path | None = None,
    flags: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> R:
    """Return the recipe of `file`, overridden by `EARNED_...` variables, then by dotted flags.

    Raises RecipeError naming the field, the value, what is allowed and the nearest known key.
    """
    table = _read_toml(file) if file is not None else {}
    environment = os.environ if environment is None else environment
    for name, text in sorted(environment.items()):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in NOT_RECIPE_KEYS:
            _set(table, name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__"), _value(text))
    _merge(table, flags or {})
    return validate(kind, table)


def load_recipe(file: str | Path, flags: Mapping[str, str] | None = None) -> Recipe:
    """Return the training recipe of a TOML file; `flags`, such as `{"optim.learning_rate": "1e-5"}`, win over it.

    Raises RecipeError as `load` does.
    """
    return load(Recipe, Path(file), flags)


def nested(flags: Mapping[str, str]) -> dict[str, Any]:
    """Return dotted flags as nested tables.

    >>> nested({"options.terms": "[2, 3]", "source": "sums"})
    {'options': {'terms': [2, 3]}, 'source': 'sums'}
    """
    table: dict[str, Any] = {}
    _merge(table, flags)
    return table


def validate(kind: type[Table], table: Mapping[str, object], where: str = "") -> Table:
    """Return `table` as a checked `kind`; `where` is its place in the recipe, such as `problems.options`.

    Raises RecipeError with every unknown key and refused value, each named in full.

    >>> validate(Checkpointing, {"evry": 5}, "checkpoint")
    Traceback (most recent call last):
    earned.errors.RecipeError: checkpoint.evry: unknown key. Did you mean 'every'?
    """
    try:
        return kind.model_validate(dict(table))
    except ValidationError as error:
        raise RecipeError("\n".join(_sentence(kind, fault, where) for fault in error.errors())) from None


def to_toml(recipe: Section) -> str:
    """Return the resolved recipe as TOML that `load` reads back to an equal recipe."""
    return tomli_w.dumps(recipe.model_dump(mode="json", exclude_none=True))


def shipped(name: str) -> Path:
    """Return the path of a recipe that comes with the package, in a checkout or in an installed wheel."""
    package = Path(__file__).parent
    for folder in (package / "_recipes", package.parents[1] / "recipes"):
        if (folder / f"{name}.toml").is_file():
            return folder / f"{name}.toml"
    raise RecipeError(f"there is no shipped recipe {name!r}")


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Return ` Did you mean 'x'?` for the nearest known word, or an empty string."""
    near = difflib.get_close_matches(word, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _read_toml(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise RecipeError(f"{file}: no such recipe file. Recipes are TOML files, for example recipes/tiny_sums.toml")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{file}: not valid TOML: {error}") from None


def _value(text: str) -> Any:
    """Read a flag as a TOML value, and as a plain string when it is none."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _merge(table: dict[str, Any], flags: Mapping[str, str]) -> None:
    for name, text in flags.items():
        _set(table, name.replace("-", "_").split("."), _value(text))


def _set(table: dict[str, Any], path: Sequence[str], value: Any) -> None:
    *parents, last = path
    for parent in parents:
        inner = table.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise RecipeError(f"{'.'.join(path)}: {parent} is a value, not a table")
        table = inner
    table[last] = value


def _known_keys(kind: type[BaseModel], path: Sequence[object]) -> list[str]:
    """Return the keys allowed in the table at `path`."""
    for step in path:
        field = kind.model_fields.get(str(step))
        if field is None and kind is not Rewards:
            continue  # an index into a list
        annotations = (field.annotation, *get_args(field.annotation)) if field else (RewardPart,)
        inner = [a for a in annotations if isinstance(a, type) and issubclass(a, BaseModel)]
        if not inner:
            return []
        kind = inner[0]
    return list(kind.model_fields)


def _names_a_union_member(step: str) -> bool:
    """Return whether pydantic put this step into a place to say which member of a union it tried."""
    return step.startswith("literal[") or step == EveryN.__name__


def _sentence(kind: type[BaseModel], fault: Any, where: str) -> str:
    path = [str(step) for step in fault["loc"] if not _names_a_union_member(str(step))]
    place = ".".join([where, *path] if where else path)
    if place in UNTRAINABLE:
        return f"{place}: refused in training, where what is sampled is what is trained; see `earned sample`"
    if fault["type"] == "extra_forbidden":
        known = _known_keys(kind, path[:-1])
        hint = did_you_mean(path[-1], known) or f" Known here: {', '.join(known) or 'none'}."
        return f"{place}: unknown key.{hint}"
    if fault["type"] == "missing":
        return f"{place}: required, but not given"
    message = fault["msg"].removeprefix("Value error, ")
    return f"{place}: {message}, not {fault['input']!r}" if path else message
