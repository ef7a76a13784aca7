"""What tests of whole runs share: tables of their recipes, and an observer that remembers what it was told."""

RANDOM = {"allow": ["random_reward"], "luck": {"check": "random"}}
SAME = {"allow": ["constant_reward"], "same": {"check": "constant"}}
SAMPLING = {"prompts_per_step": 3, "group_size": 4, "max_new_tokens": 6}


class Witness:
    """Save with `saver` after the steps `save_at`, stop after `stop_after` steps."""

    def __init__(self, save_at=(), stop_after=None, saver=lambda progress: None):
        self.calls, self.outcomes, self.saved = [], [], []
        self.save_at, self.stop_after, self.saver = save_at, stop_after, saver

    def evaluate(self, step):
        self.calls.append(f"evaluate {step}")

    def record(self, outcome):
        self.calls.append(f"record {outcome.progress.step}")
        self.outcomes.append(outcome)

    def save(self, progress):
        self.calls.append(f"save {progress.step}")
        self.saved.append(progress)
        self.saver(progress)

    def checkpoint_due(self, step):
        return step in self.save_at

    def stop_requested(self):
        return self.stop_after is not None and len(self.outcomes) >= self.stop_after
