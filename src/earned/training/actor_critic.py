"""PPO's two models in one update: the value model on what came, the policy on what was better than forecast."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from earned.training.credit import Credit
from earned.training.critic import Critic
from earned.training.forward import scored_rows
from earned.training.update import Updater, UpdateReport, nothing_learned
from earned.vocabulary import RolloutGroup


@dataclass(frozen=True, kw_only=True)
class ActorCritic:
    """An updater that trains a value model beside the policy, and alone for the first steps of a run."""

    updater: Updater
    critic: Critic

    def update(self, groups: Sequence[RolloutGroup], credit: Credit, step: int) -> UpdateReport:
        """Train both on the groups of one step, which counts from 1.

        Raises:
            EngineError: a gradient was not finite several updates in a row.
        """
        settings = self.critic.settings
        alone = step <= settings.warmup_steps
        report = nothing_learned(credit, empty=False) if alone else self.updater.update(groups, credit, step)
        measured = self.critic.update(scored_rows(groups), credit.values, credit.returns, settings.learning_rate)
        return replace(report, metrics=report.metrics | measured)
