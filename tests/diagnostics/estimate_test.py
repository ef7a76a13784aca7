"""The estimate on numbers worked by hand."""

import pytest

from earned.diagnostics.estimate import PROGRAM, Memory, ModelSize, Trial, Work, memory, seconds, sentence

MEASURED = Trial(attempts=10, tokens=120, sample_seconds=2.0, score_seconds=1.0, read_seconds=0.5)
SIZE = ModelSize(parameters=1000, layers=2, hidden=8, intermediate=16, key_value=4, vocabulary=100)


def work(**changes):
    asked = {
        "steps": 40,
        "attempts": 20,
        "group": 4,
        "max_new_tokens": 48,
        "evaluations": 3,
        "evaluated": 10,
        "reads": 3,
        "rows": 20,
        "longest": 50,
        "micro_batch": 500,
        "chunk": 10_000,
        "reference": False,
    }
    return Work(**(asked | changes))


def test_time_by_hand():
    """An attempt costs 0.3 s to sample and score and 3 x 0.05 s to train on: 40 x 20 x 0.45 + 3 x 10 x 0.3."""
    assert seconds(work(), MEASURED) == pytest.approx(369.0)
    assert seconds(work(reads=4), MEASURED) == pytest.approx(369.0 + 40 * 20 * 0.05)
    assert seconds(work(evaluations=0), MEASURED) == pytest.approx(360.0)


def test_memory_by_hand():
    found = memory(work(), SIZE)
    assert found.weights == 16 * 1000
    assert found.sampling == 20 * (50 * 2 * 2 * 4 * 4 + 24 * 100)
    tokens = 10 * 48 + 3 * 2
    assert found.update == 4 * (tokens * 2 * (18 * 8 + 5 * 16) + 4 * 10_000)
    assert found.peak == PROGRAM + found.weights + found.update
    assert memory(work(reference=True), SIZE).weights == 20 * 1000
    assert memory(work(micro_batch=10**9), SIZE).update == memory(work(micro_batch=20 * 50), SIZE).update, (
        "no more rows"
    )


@pytest.mark.parametrize(
    ("parts", "remedy"),
    [((9, 2, 3), "smaller model"), ((1, 5, 3), "sampling.batch_size"), ((1, 2, 3), "optim.tokens_per_micro_batch")],
)
def test_the_largest_part_is_the_one_to_lower(parts, remedy):
    assert remedy in Memory(**dict(zip(("weights", "sampling", "update"), parts, strict=True))).remedy


def test_one_line_says_tokens_time_and_memory():
    assert sentence(work(), MEASURED, 0.94e9) == (
        "40 steps of 20 completions: about 9,600 tokens at the present length of 12.0, about 6.1 min, about 0.9 GB"
    )
    assert sentence(work(steps=1), None, 0.94e9) == (
        "1 step of 20 completions: at most 960 tokens, about 0.9 GB; no pre-flight, so no time is known"
    )
