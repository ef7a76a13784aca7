"""Attempts at a problem on the screen: what a person is shown of a completion."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from earned.records.rows import CompletionRow

if TYPE_CHECKING:
    from earned.sampling import SampledAttempt

INDENT = 5
STYLES = {"right": "green", "wrong": "red", "unscored": "yellow"}


def visible(text: str) -> str:
    r"""Write control characters out, since a model may write what a terminal would obey.

    >>> visible("a\x1b[2J")
    'a\\x1b[2J'
    """
    return "".join(letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text)


def print_prompt(console: Console, prompt: str) -> None:
    """Print what all the attempts below are attempts at."""
    console.print(Text(visible(prompt), "bold"), soft_wrap=True)


def print_attempt(
    console: Console, name: int | str, attempt: "SampledAttempt | CompletionRow", right: bool | None
) -> None:
    """Print one attempt: how it was judged, its text, and the answer that was read in it and why.

    `right` is None for an attempt without a reward: unscored where there is a reason, else not judged at all.
    """
    head = Text(f"{name:>3}  ")
    if attempt.explanation:
        mark = "unscored" if right is None else "right" if right else "wrong"
        head.append(f"{mark:<8}  ", STYLES[mark])
    if attempt.reward is not None:
        head.append(f"reward {attempt.reward:g}  ")
    if attempt.advantage is not None:
        head.append(f"advantage {attempt.advantage:+.3f}{_by_part(attempt)}  ")
    head.append(f"{attempt.tokens} tokens{', cut off' if attempt.truncated else ''}")
    console.print(head, soft_wrap=True)
    _print_indented(console, attempt.text)
    if attempt.explanation:
        read = "" if attempt.extracted is None else f"read {attempt.extracted}; "
        _print_indented(console, read + attempt.explanation, "dim")


def _by_part(attempt: "SampledAttempt | CompletionRow") -> str:
    """Return what each part of the reward contributed to the advantage, where there are several."""
    parts = attempt.parts if isinstance(attempt, CompletionRow) and len(attempt.parts) > 1 else ()
    shares = [f"{part.name} {part.contribution:+.3f}" for part in parts if part.contribution is not None]
    return f" ({', '.join(shares)})" if shares else ""


def _print_indented(console: Console, text: str, style: str = "") -> None:
    """Print below the head; lines are wrapped for a terminal only, so that the words of a file stay together."""
    for line in visible(text).split("\n"):
        if console.is_terminal:
            console.print(Padding(Text(line, style), (0, 0, 0, INDENT), expand=False))
        else:
            console.print(Text(" " * INDENT + line), soft_wrap=True)
