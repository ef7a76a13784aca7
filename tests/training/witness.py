"""An observer of a run for tests: it remembers what it was told, saves and stops when it is asked to."""


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
