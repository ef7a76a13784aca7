"""`earned sample MODEL "PROMPT" -n 8 --answer A`."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from earned.cli.attempts import print_attempt, print_prompt
from earned.cli.flags import Json
from earned.cli.json_line import write_json
from earned.rollouts.engine import SamplingSettings

if TYPE_CHECKING:
    from earned.sampling import Sampled


def sample(
    model: str,
    prompt: str,
    *,
    samples: Annotated[int, Parameter(name=["--samples", "-n"])] = 8,
    answer: str | None = None,
    check: str = "number",
    algorithm: str = "default",
    temperature: float = 1.0,
    max_new_tokens: int = 96,
    top_p: float = 1.0,
    top_k: int = 0,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Let a model attempt one problem many times, for example `earned sample tiny "47+58=" -n 8 --answer 105`.

    The prompt, the rewards and the advantages are those that training would see.

    Args:
        model: A built-in name, a model folder (such as a checkpoint of a run) or a hub id.
        prompt: The problem, before any chat template.
        samples: Attempts at it.
        answer: The right answer; without it nothing is judged, unless by a check that needs none.
        check: What decides that an attempt is right: number, exact, or a function of yours, `FILE.py:function`.
        algorithm: What makes advantages of the rewards.
        temperature: Of the sampling; 0 takes the most likely token everywhere.
        max_new_tokens: Longest completion.
        top_p: Draw only from the most likely tokens that together have this probability.
        top_k: Draw only from so many most likely tokens; 0 for all.
        seed: Of the sampling.
        json: Print one line of JSON instead of text.
    """
    settings = SamplingSettings(
        group_size=samples, temperature=temperature, max_new_tokens=max_new_tokens, top_p=top_p, top_k=top_k
    )

    from earned import sampling

    sampled = sampling.sample(model, prompt, settings, answer=answer, check=check, algorithm=algorithm, seed=seed)
    if json:
        asked = {"model": model, "prompt": prompt, "answer": answer, "check": check, "algorithm": algorithm}
        row = {**asked, "seed": seed, **asdict(settings), **_row(sampled)}
        write_json(row)
        return
    console = Console(highlight=False)
    print_prompt(console, prompt)
    for number, attempt in enumerate(sampled.attempts, start=1):
        print_attempt(console, number, attempt, attempt.right)
    console.print()
    for sentence in _summary(sampled):
        console.print(sentence, markup=False, soft_wrap=True)


def _row(sampled: "Sampled") -> dict[str, object]:
    return {
        "prompt_ids": sampled.prompt.token_ids,
        "right": None if sampled.mean_reward is None else _right(sampled),
        "mean_reward": sampled.mean_reward,
        "lesson": sampled.lesson,
        "attempts": [asdict(attempt) for attempt in sampled.attempts],
    }


def _summary(sampled: "Sampled") -> list[str]:
    attempts = sampled.attempts
    if all(attempt.explanation is None for attempt in attempts):
        return ["Nothing was judged; give the right answer with --answer."]
    if sampled.mean_reward is None:
        return ["No attempt could be judged, so there is nothing to learn from them."]
    counts = f"{_right(sampled)} of {len(attempts)} right, mean reward {sampled.mean_reward:.3g}."
    return [counts, sampled.lesson] if sampled.lesson else [counts]


def _right(sampled: "Sampled") -> int:
    return sum(attempt.right is True for attempt in sampled.attempts)
