"""What a run is about, apart from any model: its problems, its reward, and what decides which answers are right."""

import os
from dataclasses import dataclass, replace

from earned.errors import RecipeError
from earned.problems.problem_set import ProblemSet
from earned.problems.sources import load_problems
from earned.recipe import Recipe
from earned.rewards.checks import GOLD_PARSERS, make_answer_check
from earned.rewards.compose import Part, Rewarder
from earned.rewards.gold import can_judge, require_gold
from earned.rewards.user_reward import Resources, RewardFunction
from earned.sandbox.workers import WorkerPool
from earned.vocabulary import Split

WORKERS = max(4, os.cpu_count() or 1)
"""Processes for the user's own rewards: they often wait for something else, so a few more than there are processors."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Everything a recipe names that needs no model."""

    recipe: Recipe
    problems: ProblemSet
    measured: tuple[Split, ...]
    """Splits whose accuracy is measured: they hold problems, and at least one gold answer that can be read."""
    rewarder: Rewarder
    answers: Rewarder
    """Decides accuracy, whatever the run rewards."""


def task_of(recipe: Recipe, pool: WorkerPool, reward: RewardFunction | None = None) -> Task:
    """Load the problems and make the checks; `reward` is the function handed over in Python.

    Raises:
        RecipeError: something among them cannot work.
    """
    problems = load_problems(recipe.problems, recipe.seed, GOLD_PARSERS.get(recipe.evaluation.check))
    _require_a_step(recipe, problems)
    require_gold(recipe.rewards, recipe.problems.source, problems.train)
    measured = _measured_splits(recipe, problems)
    resources = Resources(pool=pool, columns=columns_of(problems), function=reward)
    return Task(
        recipe=recipe,
        problems=_with_note(recipe, problems, measured),
        measured=measured,
        rewarder=Rewarder.from_recipe(recipe.rewards, resources),
        answers=answer_check(recipe.evaluation.check, resources),
    )


def columns_of(problems: ProblemSet) -> tuple[str, ...]:
    """Return the further columns that any problem has."""
    every = (problem for split in Split for problem in problems.split(split))
    return tuple(dict.fromkeys(column for problem in every for column in problem.columns))


def answer_check(check: str, resources: Resources) -> Rewarder:
    """Return the judge of accuracy: right answers and nothing else; raises RecipeError as `make_answer_check` does."""
    return Rewarder((Part(name="accuracy", weight=1.0, check=make_answer_check(check, resources)),))


def _measured_splits(recipe: Recipe, problems: ProblemSet) -> tuple[Split, ...]:
    splits = (Split.VALIDATION, Split.HELD_OUT)
    return tuple(s for s in splits if problems.split(s) and can_judge(recipe.evaluation.check, problems.split(s)))


def _with_note(recipe: Recipe, problems: ProblemSet, measured: tuple[Split, ...]) -> ProblemSet:
    """Return the problems with a note on the splits that have problems and yet no accuracy."""
    silent = [s for s in (Split.VALIDATION, Split.HELD_OUT) if problems.split(s) and s not in measured]
    if not silent:
        return problems
    names = " and ".join(split.in_words for split in silent)
    note = (
        f"no accuracy for the {names} problems: not one of them has an answer that the check "
        f"{recipe.evaluation.check!r} (evaluation.check) can read"
    )
    return replace(problems, notes=(*problems.notes, note))


def _require_a_step(recipe: Recipe, problems: ProblemSet) -> None:
    if recipe.sampling.prompts_per_step > len(problems.train):
        raise RecipeError(
            f"sampling.prompts_per_step: {recipe.sampling.prompts_per_step} is more than the {len(problems.train)} "
            f"training problems of {recipe.problems.source}. Lower it, or add problems"
        )
