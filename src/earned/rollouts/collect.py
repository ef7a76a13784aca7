"""From prompts to scored groups: sample, then judge, matching by id and never by position."""

from collections.abc import Callable, Mapping, Sequence

from earned.rollouts.engine import Draw
from earned.vocabulary import Attempt, Completion, Prompt, Rollout, RolloutGroup, Score

ScoreAttempts = Callable[[Mapping[str, Attempt]], Mapping[str, Score]]
"""Judges attempts by their rollout ids."""


def scored_groups(
    prompts: Sequence[Prompt],
    completions: Sequence[Sequence[Completion]],
    score: ScoreAttempts,
    stamp: Draw,
    first_attempt: int = 0,
) -> tuple[RolloutGroup, ...]:
    """Return one group a prompt with every completion scored; rollout ids are `purpose/step/problem/attempt`."""
    ids = [
        [f"{stamp.purpose}/{stamp.step}/{prompt.problem.id}/{first_attempt + index}" for index in range(len(group))]
        for prompt, group in zip(prompts, completions, strict=True)
    ]
    attempts = {
        rollout_id: Attempt(
            problem=prompt.problem,
            text=completion.text,
            truncated=completion.truncated,
            tokens=completion.length,
            seed=stamp.seed,
            step=stamp.step,
            rollout_id=rollout_id,
        )
        for prompt, group, group_ids in zip(prompts, completions, ids, strict=True)
        for completion, rollout_id in zip(group, group_ids, strict=True)
    }
    scores = score(attempts)
    return tuple(
        RolloutGroup(
            prompt=prompt,
            rollouts=tuple(
                Rollout(id=rollout_id, attempt=attempt, completion=completion, score=scores[rollout_id])
                for attempt, (completion, rollout_id) in enumerate(
                    zip(group, group_ids, strict=True), start=first_attempt
                )
            ),
        )
        for prompt, group, group_ids in zip(prompts, completions, ids, strict=True)
    )
