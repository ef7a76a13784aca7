"""Stopping politely: SIGTERM and the first Ctrl-C let the step finish and the run save itself."""

import signal
from types import FrameType


class StopFlag:
    """Set by a signal, read by the loop between steps; a second signal of the same kind acts at once."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked)

    def __call__(self) -> bool:
        """Return whether to stop."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """75 (resumable) after SIGTERM, 130 after Ctrl-C."""
        return 130 if self.signal is signal.SIGINT else 75

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.signal = signal.Signals(number)
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
