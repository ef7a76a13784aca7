import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earned.optimization.schedule import warmup_constant, warmup_cosine


@pytest.mark.parametrize(
    ("step", "warmup", "expected"),
    [(1, 5, 2e-5), (4, 5, 8e-5), (5, 5, 1e-4), (6, 5, 1e-4), (1000, 5, 1e-4), (1, 0, 1e-4), (1, 1, 1e-4)],
)
def test_warmup_then_constant(step, warmup, expected):
    assert warmup_constant(step, 1e-4, warmup) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (1, 0.1),
        (10, 1.0),
        # A third of the way down: 0.1 + 0.45 * (1 + cos 60 degrees).
        (40, 0.775),
        (55, 0.55),
        (70, 0.325),
        (100, 0.1),
        (150, 0.1),
    ],
)
def test_warmup_then_cosine(step, expected):
    assert warmup_cosine(step, 1.0, 10, 100) == pytest.approx(expected)


def test_no_warmup_and_nothing_after_the_warmup():
    assert warmup_cosine(1, 2.0, 0, 2) == pytest.approx(2 * (0.1 + 0.45 * (1 + math.cos(math.pi / 2))))
    assert warmup_cosine(5, 2.0, 5, 5) == 2.0
    assert warmup_cosine(6, 2.0, 5, 5) == pytest.approx(0.2)


@settings(deadline=None)
@given(st.integers(0, 50), st.integers(1, 200))
def test_rates_rise_then_fall_and_stay_in_bounds(warmup, steps):
    rates = [warmup_cosine(step, 1.0, warmup, steps) for step in range(1, steps + 1)]
    peak = min(warmup, steps)
    assert all(0 < rate <= 1 for rate in rates)
    assert rates[:peak] == sorted(rates[:peak])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
