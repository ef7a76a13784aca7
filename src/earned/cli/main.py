"""The verbs of `earned`, and what becomes of errors."""

import sys
from typing import Literal

import cyclopts
from rich.console import Console

from earned import __version__
from earned.errors import EarnedError

app = cyclopts.App(
    name="earned",
    help="Reinforcement learning for reasoning, honest about whether the reward was earned.",
    version=__version__,
    help_format="markdown",
)
# By name, so that `--help` imports none of them; the help is given here because their docstrings are not read for it.
RECIPE_FLAGS = """

Every key of the recipe is also a flag after the file, for example `--algorithm.name rloo --steps 10`, and a variable of
the environment, for example `EARNED_OPTIM__LEARNING_RATE=1e-5`. Defaults < file < environment < flags; `--dry-run`
shows what they come to."""
app.command(
    "earned.cli.demo:demo",
    help="Train a model by GRPO and show it before and after: the built-in one, in two minutes, or a real one.",
)
app.command("earned.cli.train:train", help=f"Train a model by reinforcement learning, as a recipe says.{RECIPE_FLAGS}")
app.command("earned.cli.evaluate:evaluate", name="eval", help="Measure a model on held-out problems.")
app.command(
    "earned.cli.sample:sample",
    help="Let a model attempt one problem many times, each attempt marked right or wrong with its advantage.",
)
app.command(
    "earned.cli.screen:screen",
    help="Look whether training problems suit a model: how often it solves each, and what share of groups would teach.",
)
app.command("earned.cli.problems:problems", help="Look at problems before training on them.")
app.command(
    "earned.cli.check_reward:check_reward",
    help=f"Try the reward of a recipe on texts that must earn nothing, and on right answers.{RECIPE_FLAGS}",
)
app.command(
    "earned.cli.verify:verify",
    help="Measure a check on labelled answers: what it pays wrongly, refuses wrongly, or takes too long over.",
)
app.command(
    "earned.cli.pretrain:pretrain",
    help=f"Train a small model from nothing by next-token prediction, as a recipe says.{RECIPE_FLAGS}",
)
app.command("earned.cli.runs:app", name="runs", help="Look at recorded runs.")
app.command("earned.cli.models:app", name="models", help="List the known models, and fetch one.")
app.command(
    "earned.cli.algorithms:algorithms",
    help="List the algorithms with their parts, defaults and sources.",
)
app.command("earned.cli.explain:app", name="explain", help="Show how advantages, the clip and metrics are worked out.")

USAGE_ERROR, INTERRUPTED = 2, 130


@app.command
def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print a completion script, for example `eval "$(earned completion bash)"`.

    Args:
        shell: The shell it is for.
    """
    sys.stdout.write(app.generate_completion(shell=shell))


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit: 0 done, 1 failure or finding, 2 usage or recipe, 75 resumable, 130 Ctrl-C."""
    console = Console(stderr=True, highlight=False)
    try:
        app(arguments, error_console=console, exit_on_error=False, result_action="return_value")
    except EarnedError as error:
        console.print(type(error).__name__, style="bold red")
        console.print(str(error), markup=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except cyclopts.CycloptsError:
        sys.exit(USAGE_ERROR)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
