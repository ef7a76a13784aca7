"""The README of a checkpoint: what the model is, how it was made, and what it is known to do."""

from collections.abc import Sequence
from dataclasses import dataclass

from earned.evaluation.statistics import power_sentence
from earned.recipe import AlgorithmChoice, Recipe
from earned.vocabulary import EvaluationResult

HEADER = """\
---
library_name: transformers
pipeline_tag: text-generation
tags: [reinforcement-learning, earned]
---
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class CardFacts:
    """What the recipe and the record do not say."""

    run: str
    """Name of the run folder."""
    recipe_name: str
    step: int
    """Of the checkpoint."""
    version: str
    """Of this library."""


def model_card(facts: CardFacts, recipe: Recipe, held_out: Sequence[EvaluationResult]) -> str:
    """Return the model card as Markdown; `held_out` are the evaluations so far, in the order of their steps.

    The first and the last of them are shown, each with its step: a checkpoint between two evaluations has none of its
    own. Where there are two to compare, a line says which difference they can show.
    """
    rewards = ", ".join(f"{name} ({part.check}, weight {part.weight:g})" for name, part in recipe.rewards.parts.items())
    rows = [
        ("base model", recipe.model),
        ("recipe", f"{facts.recipe_name}, all of it in `recipe.toml` of the run"),
        ("run", facts.run),
        ("step", f"{facts.step} of {recipe.steps}"),
        ("algorithm", _algorithm(recipe.algorithm)),
        ("rewards", rewards),
        *([("controls allowed", ", ".join(recipe.rewards.allow))] if recipe.rewards.allow else []),
        ("problems", f"{recipe.problems.source}, {recipe.problems.train:,} to train on"),
        *_accuracies(held_out, recipe.evaluation.temperature),
        ("library", f"earned {facts.version}"),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    title = f"# {facts.run}, step {facts.step}"
    return f"{HEADER}\n{title}\n\nTrained by reinforcement learning.\n\n| | |\n|---|---|\n{table}\n"


def _algorithm(choice: AlgorithmChoice) -> str:
    changed = choice.model_dump(exclude={"name"}, exclude_none=True)
    return ", ".join([choice.name, *(f"{key} {value}" for key, value in changed.items())])


def _accuracies(held_out: Sequence[EvaluationResult], temperature: float) -> list[tuple[str, str]]:
    if not held_out:
        return [("held-out accuracy", "not measured: the recipe has no held-out problems")]
    shown = tuple(dict.fromkeys((held_out[0], held_out[-1])))
    rows = [
        (
            f"held-out accuracy at step {found.step}",
            f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}] (95 %), mean of {found.samples} samples at "
            f"temperature {temperature:g} on {found.problems} problems; greedy {found.greedy:.3f}",
        )
        for found in shown
    ]
    return rows if len(shown) == 1 else [*rows, ("power", power_sentence(held_out[-1].units, held_out[-1].problems))]
