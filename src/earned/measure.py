"""Measures a model without training it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from earned.errors import RecipeError
from earned.evaluation.evaluate import evaluate
from earned.evaluation.per_problem import RIGHT, ProblemResult, pass_at_each_k
from earned.optimization.allocator import keep_freed_memory
from earned.policy.load import load_policy
from earned.policy.prompts import before_next_question, render_all
from earned.problems.evaluation_set import Exclusion, evaluation_set, shown, trained_on
from earned.problems.few_shot import FewShot, in_template, read_examples
from earned.problems.shapes import counted
from earned.problems.sources import built_in
from earned.recipe import Problems, Recipe
from earned.recipe_file import load
from earned.records.reader import RunReader
from earned.records.run_folder import run_of_checkpoint
from earned.rewards.checks import GOLD_PARSERS
from earned.rewards.gold import can_judge
from earned.rewards.user_reward import Resources
from earned.rollouts.collect import ScoreAttempts
from earned.rollouts.engine import Draw, SamplingSettings
from earned.rollouts.torch_engine import TorchEngine
from earned.sandbox.workers import WorkerPool
from earned.task import WORKERS, answer_check, columns_of
from earned.vocabulary import Attempt, EvaluationResult, Example, Score, Split

GOES_ON = (
    "the model has no chat template: what it writes after a new question is not judged, but counts in length and in "
    "what was cut off"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The accuracy of a model, problem by problem and altogether."""

    result: EvaluationResult
    problems: tuple[ProblemResult, ...]
    shots: int
    """Worked examples shown before every problem."""
    notes: tuple[str, ...]
    """What was read, left out and found doubtful, in sentences for people."""

    @property
    def pass_at(self) -> dict[int, float]:
        """pass@k for k = 1, 2, 4, ... up to the samples of a problem."""
        return pass_at_each_k(self.problems, self.result.samples)


def evaluate_model(
    model: str,
    problems: Problems,
    settings: SamplingSettings,
    *,
    check: str = "number",
    limit: int | None = None,
    few_shot: FewShot | None = None,
    seed: int = 0,
) -> Measured:
    """Return the accuracy of a model, without a run folder.

    Of a file or the hub all usable rows are measured, or `limit` of them. A checkpoint of a run is never measured on
    what that run, or one that it started from, trained on or chose by; what other models were trained on is not known.
    Problems are told apart by prompt and gold, and the run before is found by the path in the recipe, so another
    writing of a gold, or a run that was moved, escapes this.
    Of a built-in, held-out problems are measured: `limit` of them, or as many as `problems.held_out` says.

    Args:
        model: A built-in name, a model folder (such as a checkpoint of a run) or a hub id.
        problems: Source, options and template.
        settings: How attempts are drawn; `group_size` is k.
        check: What decides that an answer is right.
        limit: At most so many problems.
        few_shot: Worked examples to show before every problem.
        seed: Of a built-in and of the sampling.

    Raises:
        RecipeError: the problems, the examples or the check cannot be used, or nothing is left to measure.
        PolicyError: the model cannot be used.
        RecordError: the model is a checkpoint of a run whose record cannot be read.
        VerifierError: no attempt could be scored.
    """
    keep_freed_memory()
    examples = read_examples(few_shot) if few_shot else ()
    exclusions = (*_trained_on(model, problems.source), shown(examples))
    read_answer = GOLD_PARSERS.get(check)
    chosen = evaluation_set(problems, seed, limit, read_answer, exclusions)
    if not can_judge(check, chosen.held_out):
        raise RecipeError(f"{problems.source}: not one of its problems has an answer that the check {check!r} can read")
    examples = in_template(examples, problems.template)
    policy = load_policy(model)
    prompts = render_all(policy, chosen.held_out, settings.max_new_tokens, examples)
    engine = TorchEngine(policy, batch_size=1024)
    stamp = Draw(seed=seed, step=0, purpose=Split.HELD_OUT.value)
    with WorkerPool(WORKERS) as pool:
        score = answer_check(check, Resources(pool=pool, columns=columns_of(chosen))).score_all
        doubts = _doubts(examples, check, score)
        goes_on = bool(examples) and not policy.tokenizer.chat_template
        judge = _first_answers(score) if goes_on else score
        found = evaluate(engine, prompts, judge, settings, stamp, read_answer=read_answer)
    notes = (*chosen.notes, *doubts, *[GOES_ON] * goes_on, *_unscored(found.problems))
    return Measured(result=found.result, problems=found.problems, shots=len(examples), notes=notes)


def _trained_on(model: str, source: str) -> list[Exclusion]:
    """Return what the runs behind a checkpoint must not be measured on; none trains on held-out built-in problems."""
    runs: list[Path] = []
    while built_in(source) is None and (run := run_of_checkpoint(Path(model))) is not None and run not in runs:
        runs.append(run)
        model = load(Recipe, run / "recipe.toml", environment={}).model
    return [trained_on(run.name, _chosen_from(RunReader(run))) for run in runs]


def _chosen_from(run: RunReader) -> list[str]:
    return [problem.id for split in (Split.TRAIN, Split.VALIDATION) for problem in run.problems(split)]


def _doubts(examples: Sequence[Example], check: str, score: ScoreAttempts) -> list[str]:
    """Return a sentence if the check takes worked answers for wrong, as it does where it finds no answer in them."""
    attempts = {
        f"example/{number}": Attempt(problem=example.problem, text=example.answer, seed=0, step=0, rollout_id="")
        for number, example in enumerate(examples, start=1)
    }
    scores = score(attempts) if attempts else {}
    wrong = [found for found in scores.values() if found.value is not None and found.value < RIGHT]
    if not wrong:
        return []
    return [
        f"the check {check!r} takes {len(wrong)} of {len(examples)} worked answers for wrong, so attempts that imitate "
        f"them will be wrong too. For example {wrong[0].explanation}"
    ]


def _unscored(problems: Sequence[ProblemResult]) -> list[str]:
    attempts = sum(problem.samples - problem.scored for problem in problems)
    concerned = [problem for problem in problems if problem.scored < problem.samples]
    left = counted(sum(problem.scored == 0 for problem in concerned), "problem")
    places = counted(len(concerned), "problem")
    sentence = (
        f"{counted(attempts, 'attempt')} at {places} could not be scored and count in no accuracy; {left} left out"
    )
    return [sentence] if attempts else []


def _first_answers(score: ScoreAttempts) -> ScoreAttempts:
    def first_answer(attempt: Attempt) -> Attempt:
        # An answer before a new question was over, wherever the limit then fell.
        text = before_next_question(attempt.text)
        return replace(attempt, text=text, truncated=attempt.truncated and text == attempt.text)

    def judge(attempts: Mapping[str, Attempt]) -> Mapping[str, Score]:
        return score({name: first_answer(attempt) for name, attempt in attempts.items()})

    return judge
