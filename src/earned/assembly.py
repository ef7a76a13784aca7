"""Puts the parts of a run together from its recipe, after checking everything that the recipe names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from earned.algorithms.named import Algorithm, resolve
from earned.errors import RecipeError
from earned.optimization.allocator import keep_freed_memory
from earned.optimization.optimizer import Optimizer
from earned.optimization.precision import dtype_of, resolve_precision
from earned.policy.load import Policy, load_policy
from earned.policy.prompts import render_all
from earned.policy.value_model import load_value_model
from earned.problems.curriculum import CurriculumState, chosen
from earned.problems.problem_set import ProblemSet, further_problems, step_problems
from earned.recipe import Recipe
from earned.rewards.compose import require_scored
from earned.rollouts.collect import ScoreAttempts
from earned.rollouts.engine import Engine, SamplingSettings
from earned.rollouts.torch_engine import TorchEngine
from earned.task import Task
from earned.training.actor_critic import ActorCritic
from earned.training.batches import BatchSource, ChoosePrompts
from earned.training.checkpoints import Learners
from earned.training.credit import CreditAssigner
from earned.training.critic import Critic
from earned.training.forward import Forward
from earned.training.loop import Observer, Training
from earned.training.reference import Reference
from earned.training.update import Updater, UpdateSettings
from earned.vocabulary import Attempt, Prompt, Score, Split


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """Everything a run needs that does not touch the disk."""

    recipe: Recipe
    problems: ProblemSet
    prompts: Mapping[Split, tuple[Prompt, ...]]
    measured: tuple[Split, ...]
    """Splits whose accuracy is measured: they hold problems, and at least one gold answer that can be read."""
    policy: Policy
    engine: Engine
    reference: Reference | None
    algorithm: Algorithm
    optimizer: Optimizer
    critic: Critic | None
    score: ScoreAttempts
    score_answers: ScoreAttempts
    file_hashes: Mapping[str, str]
    """SHA-256 of the files of the user's own rewards, by their key in the record."""

    @property
    def learners(self) -> Learners:
        """What training changes."""
        return Learners(policy=self.policy, optimizer=self.optimizer, critic=self.critic)


def assemble(task: Task, model: str) -> Assembled:
    """Load the model and check everything else the recipe names, before anything is written."""
    keep_freed_memory()
    recipe, rewarder, answers = task.recipe, task.rewarder, task.answers
    algorithm = _algorithm(recipe)
    _require_siblings(recipe, algorithm)
    _require_correction(recipe, algorithm)
    policy = load_policy(model)
    prompts = {split: render_all(policy, task.problems.split(split), recipe.sampling.max_new_tokens) for split in Split}
    parameters = policy.parameters()
    precision = resolve_precision(
        recipe.optim.precision, policy.device, sum(value.numel() for value in parameters.values())
    )
    optim = recipe.optim.model_copy(update={"precision": precision})
    recipe = recipe.model_copy(update={"optim": optim})

    def score(attempts: Mapping[str, Attempt]) -> dict[str, Score]:
        scores = rewarder.score_all(attempts)
        require_scored(scores, recipe.rewards.max_unscored_share)
        return scores

    return Assembled(
        recipe=recipe,
        problems=task.problems,
        prompts=prompts,
        measured=task.measured,
        policy=policy,
        engine=TorchEngine(policy, batch_size=recipe.sampling.batch_size, precision=dtype_of(precision)),
        reference=_reference(recipe, algorithm),
        algorithm=algorithm,
        optimizer=Optimizer(parameters, optim),
        critic=_critic(recipe, algorithm, policy),
        score=score,
        score_answers=answers.score_all,
        file_hashes={f"reward_file/{name}": digest for name, digest in rewarder.file_hashes.items()}
        | {f"evaluation_file/{name}": digest for name, digest in answers.file_hashes.items()},
    )


def forward(recipe: Recipe, policy: Policy) -> Forward:
    """Return how the recipe, with its precision resolved, reads rows with a policy."""
    return Forward(
        policy=policy,
        temperature=recipe.sampling.temperature,
        precision=dtype_of(recipe.optim.precision),
        tokens_per_micro_batch=recipe.optim.tokens_per_micro_batch,
    )


def training_of(parts: Assembled, observer: Observer) -> Training:
    """Return the parts wired together for the loop."""
    alone = updater(parts)
    return Training(
        recipe=parts.recipe,
        algorithm=parts.algorithm,
        policy=parts.policy,
        engine=parts.engine,
        batches=_batches(parts),
        assigner=assigner(parts),
        updater=alone if parts.critic is None else ActorCritic(updater=alone, critic=parts.critic),
        observer=observer,
    )


def assigner(parts: Assembled) -> CreditAssigner:
    """Return what says how much every attempt of a batch is worth."""
    return CreditAssigner(
        algorithm=parts.algorithm,
        forward=forward(parts.recipe, parts.policy),
        reference=parts.reference,
        critic=parts.critic,
    )


def updater(parts: Assembled) -> Updater:
    """Return what changes the policy's weights."""
    recipe = parts.recipe
    settings = UpdateSettings(
        learning_rate=recipe.optim.learning_rate,
        warmup_steps=recipe.optim.warmup_steps,
        max_new_tokens=recipe.sampling.max_new_tokens,
    )
    return Updater(forward(recipe, parts.policy), parts.optimizer, parts.algorithm, parts.reference, settings)


def _batches(parts: Assembled) -> BatchSource:
    recipe = parts.recipe
    return BatchSource(
        seed=recipe.seed,
        steps=recipe.steps,
        prompts_per_step=recipe.sampling.prompts_per_step,
        lag=recipe.sampling.max_policy_lag,
        refill_rounds=parts.algorithm.refill_rounds,
        choose=chooser(parts),
        engine=parts.engine,
        settings=sampling_settings(recipe),
        score=parts.score,
        tallies=recipe.curriculum is not None,
    )


def chooser(parts: Assembled) -> ChoosePrompts:
    """Return what chooses the prompts of a step, which counts from 1, and others in place of those taken already."""
    problems, recipe, prompts = parts.problems, parts.recipe, training_prompts(parts)

    def choose(step: int, count: int, taken: Sequence[Prompt], state: CurriculumState) -> tuple[Prompt, ...]:
        used = {prompt.problem.id for prompt in taken}
        if recipe.curriculum is not None:
            others = [problem for problem in problems.train if problem.id not in used]
            count = min(count, len(others))
            found = chosen(others, state, recipe.seed, step, count, recipe.curriculum) if count else ()
        elif used:
            found = further_problems(problems, recipe.seed, step, count, used)
        else:
            found = step_problems(problems, recipe.seed, step, count)
        return tuple(prompts[problem.id] for problem in found)

    return choose


def sampling_settings(recipe: Recipe) -> SamplingSettings:
    """Return how training samples are drawn."""
    sampling = recipe.sampling
    return SamplingSettings(
        group_size=sampling.group_size, temperature=sampling.temperature, max_new_tokens=sampling.max_new_tokens
    )


def training_prompts(parts: Assembled) -> dict[str, Prompt]:
    """Return the prompts of the training problems by the problem's id."""
    return {prompt.problem.id: prompt for prompt in parts.prompts[Split.TRAIN]}


def _reference(recipe: Recipe, algorithm: Algorithm) -> Reference | None:
    """Return the model the run started from, also when the policy comes from a checkpoint."""
    return None if algorithm.divergence is None else Reference(load_policy(recipe.model))


def _algorithm(recipe: Recipe) -> Algorithm:
    """Return the row of the recipe with the recipe's own values; those of its critic are in a table of their own."""
    algorithm = resolve(recipe.algorithm.name, **recipe.algorithm.model_dump(exclude={"name"}))
    chosen = recipe.critic.model_dump(exclude={"model"}, exclude_none=True)
    if algorithm.critic is None:
        if chosen or recipe.critic.model is not None:
            raise RecipeError(f"critic: {recipe.algorithm.name!r} has no value model; leave [critic] out, or use 'ppo'")
        return algorithm
    if recipe.algorithm.advantage is not None:
        raise RecipeError(
            f"algorithm.advantage: {recipe.algorithm.name!r} takes its advantages from a value model; leave it out, or "
            "choose a row without one"
        )
    return replace(algorithm, critic=replace(algorithm.critic, **chosen))


def _critic(recipe: Recipe, algorithm: Algorithm, policy: Policy) -> Critic | None:
    if algorithm.critic is None:
        return None
    model = load_value_model(recipe.critic.model or recipe.model, policy)
    return Critic(model, Optimizer(model.trainable(), recipe.optim), algorithm.critic, forward(recipe, policy))


def _require_correction(recipe: Recipe, algorithm: Algorithm) -> None:
    lag = recipe.sampling.max_policy_lag
    if lag and algorithm.sampler_correction is None:
        raise RecipeError(
            f"sampling.max_policy_lag: {lag}, but {recipe.algorithm.name!r} does not correct for samples of older "
            "weights. Set algorithm.sampler_correction ('token_truncate' is usual), or a lag of 0"
        )


def _require_siblings(recipe: Recipe, algorithm: Algorithm) -> None:
    if algorithm.group_relative and recipe.sampling.group_size == 1 and "single_sample" not in recipe.rewards.allow:
        raise RecipeError(
            f"sampling.group_size: 1, but {recipe.algorithm.name!r} compares the attempts at one problem with each "
            'other, so nothing would be learned. Use 2 or more (8 is usual), or rewards.allow = ["single_sample"]'
        )
