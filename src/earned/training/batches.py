"""From a step to its batch: choose problems, sample attempts, score them, and try others where nothing can be learned.

With a policy lag L the batch of step k is sampled by the weights after step k - 1 - L, so L further batches are always
waiting. Those of the first steps are all sampled by the first weights.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from earned.diagnostics.groups import carries_signal, outcomes
from earned.problems.curriculum import CurriculumState, updated
from earned.rollouts.collect import ScoreAttempts, scored_groups
from earned.rollouts.engine import Draw, Engine, SamplingSettings
from earned.training.clock import Clock
from earned.training.progress import Batch, Progress
from earned.vocabulary import Prompt, RolloutGroup

ChoosePrompts = Callable[[int, int, Sequence[Prompt], CurriculumState], tuple[Prompt, ...]]
"""From a step, the number wanted, those taken already and how all went so far, to prompts; fewer if there are no more.
"""


@dataclass(frozen=True, kw_only=True)
class BatchSource:
    """What it takes to make batches."""

    seed: int
    steps: int
    """Of the run; nothing is sampled for a step beyond."""
    prompts_per_step: int
    lag: int
    refill_rounds: int
    choose: ChoosePrompts
    engine: Engine
    settings: SamplingSettings
    score: ScoreAttempts
    tallies: bool
    """Whether to keep count of how every problem went, for a curriculum."""

    def sampled_ahead(self, progress: Progress, clock: Clock) -> Progress:
        """Return the progress with every batch pending that the next step and its lag ask for."""
        pending, state = list(progress.pending), progress.curriculum
        first = pending[-1].step + 1 if pending else progress.step + 1
        last = min(progress.step + 1 + self.lag, self.steps)
        for step in range(first, last + 1):
            batch = self._batch(step, state, clock)
            if self.tallies:
                state = updated(state, outcomes((*batch.groups, *batch.discarded)), step)
            pending.append(batch)
        return replace(progress, pending=tuple(pending), curriculum=state)

    def _batch(self, step: int, state: CurriculumState, clock: Clock) -> Batch:
        wanted = self.prompts_per_step
        tried = self._attempted(step, self.choose(step, wanted, (), state), clock)
        if self.refill_rounds == 0:
            return Batch(step=step, groups=tried)
        for _ in range(self.refill_rounds):
            missing = wanted - sum(map(carries_signal, tried))
            prompts = self.choose(step, missing, [group.prompt for group in tried], state) if missing else ()
            if not prompts:
                break
            tried += self._attempted(step, prompts, clock)
        return Batch(
            step=step,
            groups=tuple(group for group in tried if carries_signal(group)),
            discarded=tuple(group for group in tried if not carries_signal(group)),
        )

    def _attempted(self, step: int, prompts: Sequence[Prompt], clock: Clock) -> tuple[RolloutGroup, ...]:
        draw = Draw(seed=self.seed, step=step, purpose="train")
        with clock.part("sample"):
            completions = self.engine.generate(prompts, self.settings, draw)
        with clock.part("score"):
            return scored_groups(prompts, completions, self.score, draw)
