import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
import torch
from bench.peers.double_precision import in_double_precision
from tests.training.runs import SAMPLING

from earned.algorithms.named import Algorithm, resolve
from earned.assembly import Assembled, assemble
from earned.optimization.optimizer import Optimizer
from earned.policy.load import Policy, save_policy
from earned.policy.tiny import CHARACTERS, EOS_ID, untrained_policy
from earned.pretrain_recipe import PretrainModel
from earned.recipe import Optim, Recipe
from earned.recipe_file import validate
from earned.sandbox.workers import WorkerPool
from earned.task import task_of
from earned.training.credit import Credit
from earned.training.forward import Forward
from earned.training.reference import Reference
from earned.training.update import Updater, UpdateSettings
from earned.vocabulary import (
    Completion,
    Problem,
    Prompt,
    Rollout,
    RolloutGroup,
    Score,
    ScoreStatus,
    Segment,
    Split,
    StopReason,
)

SHAPE = PretrainModel(hidden_size=32, layers=2, heads=2, intermediate_size=64)
MAX_NEW_TOKENS = 24
ONE_TOKEN_LOGPROB = -4.5
"""About what an untrained model gives every one of its 99 tokens."""


class RecordingOptimizer(Optimizer):
    """Keeps the gradient of every update, in float64 and in one vector."""

    def __init__(self, policy: Policy, settings: Optim) -> None:
        super().__init__(policy.parameters(), settings)
        self.gradients: list[torch.Tensor] = []
        self.weights: list[torch.Tensor] = []
        """Before every update."""

    def step(self, learning_rate: float) -> float:
        self.gradients.append(flat([parameter.grad for parameter in self._parameters.values()]))
        self.weights.append(flat(list(self._parameters.values())))
        return super().step(learning_rate)


def flat(tensors: Sequence[torch.Tensor | None]) -> torch.Tensor:
    return torch.cat([tensor.detach().flatten().double() for tensor in tensors if tensor is not None])


@dataclass(kw_only=True)
class Bench:
    """An updater on an untrained model, and what it did to it."""

    policy: Policy
    algorithm: Algorithm
    optimizer: RecordingOptimizer
    forward: Forward
    reference: Reference | None
    groups: tuple[RolloutGroup, ...]
    reports: list = field(default_factory=list)

    def update(self, advantages: dict[str, float], learning_rate: float = 1e-3):
        settings = UpdateSettings(learning_rate=learning_rate, warmup_steps=0, max_new_tokens=MAX_NEW_TOKENS)
        updater = Updater(self.forward, self.optimizer, self.algorithm, self.reference, settings)
        return updater.update(self.groups, self.credit(advantages), step=1)

    def credit(self, advantages: dict[str, float]) -> Credit:
        """The same advantage for every sampled token of a completion."""
        rollouts = [rollout for group in self.groups for rollout in group.rollouts]
        return Credit(
            advantages=advantages,
            by_token={r.id: advantages[r.id] * torch.tensor(r.completion.sampled).float() for r in rollouts},
            divergence_weight=self.algorithm.divergence_weight,
        )

    def gradient(self, advantages: dict[str, float]) -> torch.Tensor:
        """The gradient of one update that moves nothing."""
        self.update(advantages, learning_rate=0.0)
        return self.optimizer.gradients[-1]

    @property
    def weights(self) -> torch.Tensor:
        return flat(list(self.policy.parameters().values()))


def build_bench(
    groups: tuple[RolloutGroup, ...],
    algorithm: Algorithm | str = "default",
    *,
    dtype: torch.dtype = torch.float32,
    tokens_per_micro_batch: int = 10**6,
    optim: Optim | None = None,
) -> Bench:
    policy = untrained_policy(SHAPE, seed=3)
    if dtype is torch.float64:
        in_double_precision(policy.model)
    chosen = resolve(algorithm) if isinstance(algorithm, str) else algorithm
    optimizer = RecordingOptimizer(policy, optim or Optim(max_grad_norm=1e9))
    forward = Forward(
        policy=policy,
        temperature=0.9,
        precision=torch.float32,
        tokens_per_micro_batch=tokens_per_micro_batch,
    )
    reference = Reference(policy) if chosen.divergence is not None else None
    return Bench(
        policy=policy, algorithm=chosen, optimizer=optimizer, forward=forward, reference=reference, groups=groups
    )


def build_groups(values_PG: Sequence[Sequence[float | None]], seed: int = 0) -> tuple[RolloutGroup, ...]:
    """One group a row, one rollout a reward; lengths differ, some end with EOS and some were cut off."""
    drawn = random.Random(seed)
    groups = []
    for place, values in enumerate(values_PG):
        prompt_ids = (0, *drawn.choices(range(3, 3 + len(CHARACTERS)), k=3 + 3 * place))
        problem = Problem(id=f"p{place}", prompt="1+1=", gold="2", source="sums", split=Split.TRAIN)
        rollouts = tuple(
            build_rollout(f"train/1/p{place}/{attempt}", attempt, value, drawn) for attempt, value in enumerate(values)
        )
        groups.append(RolloutGroup(prompt=Prompt(problem=problem, token_ids=prompt_ids), rollouts=rollouts))
    return tuple(groups)


def build_rollout(name: str, attempt: int, value: float | None, drawn: random.Random) -> Rollout:
    truncated = attempt % 3 == 2
    length = MAX_NEW_TOKENS if truncated else drawn.randint(1, 20)
    token_ids = tuple(drawn.choices(range(3, 3 + len(CHARACTERS)), k=length))
    token_ids = token_ids if truncated else (*token_ids[:-1], EOS_ID)
    logprobs = tuple(ONE_TOKEN_LOGPROB + drawn.uniform(-0.3, 0.3) for _ in token_ids)
    status = ScoreStatus.UNSCORED if value is None else ScoreStatus.SCORED
    return Rollout(
        id=name,
        attempt=attempt,
        completion=Completion(
            segments=(Segment(token_ids=token_ids, sampled=True, sampler_logprobs=logprobs),),
            text="made by hand",
            stop_reason=StopReason.LENGTH if truncated else StopReason.EOS,
            policy_version=0,
        ),
        score=Score(value=value, status=status, parts=()),
    )


@pytest.fixture
def bench_of() -> Callable[..., Bench]:
    return build_bench


@pytest.fixture
def groups_of() -> Callable[..., tuple[RolloutGroup, ...]]:
    return build_groups


@pytest.fixture
def mixed_groups() -> tuple[RolloutGroup, ...]:
    """Two groups with signal, and one without that has nothing to teach."""
    return build_groups([[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]])


@pytest.fixture
def shape() -> PretrainModel:
    return SHAPE


@pytest.fixture(scope="session")
def untrained_model(tmp_path_factory) -> str:
    """The folder of a model that knows nothing."""
    folder = tmp_path_factory.mktemp("untrained")
    save_policy(untrained_policy(SHAPE, seed=0), folder)
    return str(folder)


@pytest.fixture
def assembled_of(untrained_model) -> Iterator[Callable[..., Assembled]]:
    """The parts of a small run on the untrained model, or as they go on from a checkpoint; `changes` replace tables."""
    with WorkerPool(1) as pool:

        def build(rewards: Mapping, continued: str | None = None, **changes) -> Assembled:
            table = {
                "model": untrained_model,
                "steps": 4,
                "problems": {"options": {"terms": [2, 2], "digits": 1}, "train": 12, "validation": 0, "held_out": 0},
                "rewards": rewards,
                "sampling": SAMPLING,
                "optim": {"learning_rate": 1e-3, "warmup_steps": 2},
                "evaluation": {"every": 2},
            }
            recipe = validate(Recipe, {**table, **changes})
            return assemble(task_of(recipe, pool, None), continued or untrained_model)

        yield build
