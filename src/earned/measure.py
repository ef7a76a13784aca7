"""Measures a model without training it."""

from earned.assembly import WORKERS, answer_check, columns_of
from earned.errors import RecipeError
from earned.evaluation.evaluate import evaluate
from earned.optimization.allocator import keep_freed_memory
from earned.policy.load import load_policy
from earned.policy.logprobs import require_plain_head
from earned.policy.prompts import render_all
from earned.problems.sources import load_problems
from earned.recipe import Problems
from earned.rewards.user_reward import Resources
from earned.rollouts.engine import Draw, SamplingSettings
from earned.rollouts.torch_engine import TorchEngine
from earned.sandbox.workers import WorkerPool
from earned.vocabulary import EvaluationResult, Split


def evaluate_model(
    model: str, problems: Problems, settings: SamplingSettings, *, check: str = "number", seed: int = 0
) -> EvaluationResult:
    """Return the accuracy of a model on the held-out problems of a source, without a run folder."""
    keep_freed_memory()
    policy = load_policy(model)
    require_plain_head(policy.model)
    chosen = load_problems(problems, seed)
    prompts = render_all(policy, chosen.held_out, settings.max_new_tokens)
    if not prompts:
        raise RecipeError("problems.held_out: 0 problems, so there is nothing to evaluate")
    engine = TorchEngine(policy, batch_size=1024)
    stamp = Draw(seed=seed, step=0, purpose=Split.HELD_OUT.value)
    with WorkerPool(WORKERS) as pool:
        score = answer_check(check, Resources(pool=pool, columns=columns_of(chosen))).score_all
        return evaluate(engine, prompts, score, settings, stamp).result
