"""A run on the screen: one live line on a terminal, plain lines elsewhere."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from earned.vocabulary import EvaluationResult, Split

PLAIN_LINES = 60
"""A long run prints about so many step lines where there is no terminal."""


class RunProgress:
    """Implements `observer.Listener`; use as a context manager around the run, which begins after step `first`."""

    def __init__(self, console: Console, steps: int, first: int = 0) -> None:
        self._console = console
        self._steps = steps
        self._held_out = ""
        self._started: tuple[int, float] | None = None
        self._every = max(1, steps // PLAIN_LINES)
        self._bar = Progress(
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            BarColumn(bar_width=20),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        doing = "going on" if first else "measuring the start"
        self._task = self._bar.add_task(doing, total=steps, completed=first)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def evaluated(self, result: EvaluationResult) -> None:
        """Print an accuracy, and keep the held-out one for the live line."""
        name = result.split.in_words
        if result.split is Split.HELD_OUT:
            self._held_out = f"held-out {_share(result.mean)}  "
        self._console.print(
            f"step {result.step:>4}  {name:<10} {_share(result.mean)} "
            f"[{_share(result.low)}, {_share(result.high)}]  greedy {_share(result.greedy)}  "
            f"length {result.length_mean:.1f}",
            markup=False,
            soft_wrap=True,
        )

    def stepped(self, step: int, metrics: Mapping[str, float]) -> None:
        """Move the live line, or print one."""
        text = (
            f"reward {_share(metrics.get('reward/mean'))}  {self._held_out}mixed "
            f"{metrics['groups/mixed_share']:.0%}  length {metrics['completions/length_mean']:.1f}  "
            f"{metrics['throughput/sampled_tokens_per_second']:,.0f} tokens/s"
        )
        if self._console.is_terminal:
            self._bar.update(self._task, completed=step, description=text)
        elif step % self._every == 0 or step == self._steps:
            self._console.print(
                f"step {step:>4}  {text}  {metrics['time/step_seconds']:.1f} s{self._remaining(step)}",
                markup=False,
                soft_wrap=True,
            )
        self._started = self._started or (step, time.monotonic())

    def said(self, text: str) -> None:
        """Print a sentence that matters."""
        self._console.print(text, style="yellow", markup=False, soft_wrap=True)

    def _remaining(self, step: int) -> str:
        if self._started is None or step >= self._steps:
            return ""
        done, since = step - self._started[0], time.monotonic() - self._started[1]
        minutes, seconds = divmod(round(since / done * (self._steps - step)), 60)
        return f"  {minutes}:{seconds:02d} left"


def _share(value: float | None) -> str:
    """Write a share without its leading zero: .53."""
    return "-" if value is None else f"{value:.2f}".removeprefix("0")
