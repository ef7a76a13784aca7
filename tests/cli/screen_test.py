"""What a person sees while a run goes on and when it ends, and what a signal does."""

import os
import re
import signal
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from earned import api
from earned.cli.outcome import power, show
from earned.cli.progress import RunProgress
from earned.cli.stopping import StopFlag
from earned.recipe import Recipe
from earned.recipe_file import load
from earned.vocabulary import EvaluationResult, Split

METRICS = {
    "reward/mean": 0.625,
    "groups/mixed_share": 0.5,
    "completions/length_mean": 12.25,
    "throughput/sampled_tokens_per_second": 1234.5,
    "time/step_seconds": 1.5,
}


def result(step, mean, width=0.05, split=Split.HELD_OUT):
    return EvaluationResult(
        step=step,
        split=split,
        problems=256,
        units=256,
        samples=4,
        mean=mean,
        low=mean - width,
        high=mean + width,
        greedy=mean,
        pass_at_k=mean,
        maj_at_k=mean,
        length_mean=10.0 + step,
        truncated_share=0.0,
    )


def screen(terminal=False):
    return Console(file=StringIO(), force_terminal=terminal, width=120, highlight=False, _environ={})


def test_plain_lines_where_there_is_no_terminal():
    console = screen()
    with RunProgress(console, steps=2) as progress:
        progress.evaluated(result(0, 0.25))
        progress.stepped(1, METRICS)
        progress.said("step 1: [red] is a word here")
        progress.stepped(2, METRICS)
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "step    0  held-out   .25 [.20, .30]  greedy .25  length 10.0"
    assert lines[1] == "step    1  reward .62  held-out .25  mixed 50%  length 12.2  1,234 tokens/s  1.5 s"
    assert lines[2] == "step 1: [red] is a word here"
    assert lines[3].startswith("step    2") and len(lines) == 4


def test_a_long_run_prints_about_sixty_lines():
    console = screen()
    with RunProgress(console, steps=600) as progress:
        for step in range(1, 601):
            progress.stepped(step, METRICS)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 60 and lines[-1].startswith("step  600")
    assert re.search(r" \d+:\d\d left$", lines[10]) and "left" not in lines[-1]


def test_a_step_without_any_reward_shows_a_dash():
    console = screen()
    with RunProgress(console, steps=1) as progress:
        progress.stepped(1, {key: value for key, value in METRICS.items() if key != "reward/mean"})
    assert "reward -  mixed" in console.file.getvalue()


def test_one_live_line_on_a_terminal():
    console = screen(terminal=True)
    with RunProgress(console, steps=3) as progress:
        for step in (1, 2, 3):
            progress.stepped(step, METRICS)
    text = console.file.getvalue()
    assert "\x1b" in text and "3/3" in text and "reward .62" in text
    assert "step    3" not in text


def test_a_resumed_run_is_shown_from_where_it_goes_on():
    console = screen(terminal=True)
    with RunProgress(console, steps=40, first=20):
        pass
    assert "20/40" in console.file.getvalue() and "going on" in console.file.getvalue()


@pytest.fixture
def run(workplace):
    flags = {"steps": "1", "problems.validation": "0"}
    return api.train(load(Recipe, workplace / "recipe.toml", flags, environment={}), api.RunOptions(name="a"))


def test_the_verdict_is_a_sentence_with_its_evidence(run):
    for after, sentence in (
        (result(1, 0.8), "Held-out accuracy rose by 0.60, the intervals are apart. Length x1.1."),
        (result(1, 0.1), "Held-out accuracy fell by 0.10, the intervals are apart."),
        (result(1, 0.22), "Held-out accuracy changed by +0.02, which is within the intervals: no change shown."),
    ):
        console = screen()
        show(replace(run, before=result(0, 0.2, 0.02), after=after), console)
        text = console.file.getvalue()
        assert sentence in text
        assert "(n = 256 can see a difference of 0.12.)" in text
        assert "before (step 0)" in text and "after (step 1)" in text and "0.200 [0.180, 0.220]" in text


def test_wordings_do_not_make_an_evaluation_see_more():
    assert power(result(1, 0.5)) == "n = 256 can see a difference of 0.12"
    clustered = replace(result(1, 0.5), problems=256, units=64)
    assert power(clustered) == "n = 64 problems in 256 wordings can see a difference of 0.25"


def test_a_completion_is_shown_as_it_is(run, monkeypatch):
    """What a model writes is no markup and no escape code."""
    from earned.cli import outcome

    original = outcome.RunReader.completions

    def rude(self, **wanted):
        return [replace(row, text="[/bold] [red] \x1b[2J") for row in original(self, **wanted)]

    monkeypatch.setattr(outcome.RunReader, "completions", rude)
    console = screen(terminal=True)
    show(replace(run, before=result(0, 0.2), after=result(1, 0.2)), console)
    text = console.file.getvalue()
    assert "[/bold] [red]" in text
    assert "\x1b[2J" not in text and "\\x1b[2J" in text


@pytest.fixture
def flag():
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield StopFlag()
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_the_first_signal_asks_and_the_second_acts(flag):
    assert not flag()
    os.kill(os.getpid(), signal.SIGINT)
    assert flag() and flag.exit_code == 130
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_termination_can_be_resumed(flag):
    os.kill(os.getpid(), signal.SIGTERM)
    assert flag() and flag.exit_code == 75
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "a second one ends the process at once"
