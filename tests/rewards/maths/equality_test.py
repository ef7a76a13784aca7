from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from earned.rewards.maths.equality import same
from earned.rewards.maths.evaluate import TooLargeError, UndefinedError, agree, exact
from earned.rewards.maths.policy import Policy
from earned.rewards.maths.structure_parser import readings

NATURALS = st.integers(1, 10**6)


def equal(gold, answer, **policy):
    options = Policy(**policy)
    given_readings = readings(answer, decimal_comma=options.decimal_comma)
    return any(same(g, a, options) for g in readings(gold) for a in given_readings)


def renderings(value):
    top, bottom = value.numerator, value.denominator
    whole, rest = divmod(abs(top), bottom)
    sign = "-" if top < 0 else ""
    yield f"{top}/{bottom}"
    yield rf"\frac{{{top}}}{{{bottom}}}"
    yield rf"{sign}\dfrac{{{abs(top)}}}{{{bottom}}}"
    yield rf"\frac{{{-top}}}{{{-bottom}}}"
    yield rf"\frac{{{3 * top}}}{{{3 * bottom}}}"
    yield f"({top})/({bottom})"
    yield rf"{top} \div {bottom}"
    yield rf"{top} \cdot {bottom}^{{-1}}"
    yield rf"\frac{{{100 * top}}}{{{bottom}}}\%"
    if rest:
        yield rf"{sign}{whole}\frac{{{rest}}}{{{bottom}}}" if whole else f"{top}/{bottom}"
        yield f"{sign}{whole} {rest}/{bottom}" if whole else f"{top}/{bottom}"
    else:
        yield f"{top // bottom:,}"
        yield f"{top // bottom:,}".replace(",", "{,}")
        yield f"{top // bottom}.0"
        yield rf"{top // bottom}e0"


@settings(max_examples=60, deadline=None)
@given(st.fractions(-(10**5), 10**5, max_denominator=999), st.fractions(-(10**5), 10**5, max_denominator=999))
def test_equal_rationals_are_equal_in_any_writing_and_different_ones_never(value, other):
    assume(value not in (other, other / 100, other * 100))
    golds, others = list(renderings(value)), list(renderings(other))
    for text in golds:
        assert equal(golds[0], text), text
        assert equal(text, golds[0]), text
    for text in others:
        assert not equal(golds[0], text), text


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 999), st.text("0123456789", max_size=4), st.text("0123456789", min_size=1, max_size=5))
def test_repeating_decimals_are_the_fractions_they_are(whole, start, block):
    shift, nines = 10 ** len(start), 10 ** len(block) - 1
    value = whole + Fraction(int(start or "0"), shift) + Fraction(int(block), shift * nines)
    gold = f"{value.numerator}/{value.denominator}"
    assert equal(gold, rf"{whole}.{start}\overline{{{block}}}")
    assert equal(gold, f"{whole}.{start}({block})")
    assert equal(gold, f"{whole}.{start}{block * 3}...")
    assert not equal(gold, rf"{whole}.{start}\overline{{{block}1}}") or set(block) == {"1"}


@settings(max_examples=40, deadline=None)
@given(NATURALS, NATURALS)
def test_near_is_not_equal(first, second):
    assert not equal(rf"\sqrt{{{first}}}", rf"\sqrt{{{first}}} + 10^{{-{second % 300 + 20}}}")
    assert not equal(rf"10^{{{second % 900}}}", rf"10^{{{second % 900}}} + 1")
    assert equal(rf"\sqrt{{{first * second * second}}}", rf"{second}\sqrt{{{first}}}")


def test_a_famous_near_miss_is_told_apart():
    assert not equal("262537412640768744", r"e^{\pi \sqrt{163}}")
    assert not equal("884736744", r"e^{\pi \sqrt{43}}")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=3, max_size=3), st.integers(-9, 9))
def test_a_polynomial_equals_its_expansion_and_no_other(roots, shift):
    a, b, c = roots
    factored = f"(x-({a}))(x-({b}))(x-({c}))"
    expanded = f"x^3 + ({-(a + b + c)})x^2 + ({a * b + b * c + a * c})x + ({-a * b * c + shift})"
    assert equal(factored, expanded) == (shift == 0)


@pytest.mark.parametrize(
    ("option", "off", "gold", "answer"),
    [
        ("tolerance", 0.01, r"\frac{1}{3}", "0.333"),
        ("missing_units", False, r"48\text{ cm}", "48"),
        ("percent_as_number", False, r"36\%", "36"),
        ("scaled_ratios", False, "3:4", "6:8"),
        ("decimal_comma", True, "3.14", "3,14"),
        ("intervals_as_inequalities", False, "(1, 7.5)", "1 < x < 7.5"),
        ("unevaluated", False, "3", r"\log_2 8"),
        ("domain", "complex", r"\sqrt{1/k}", r"\frac{1}{\sqrt{k}}"),
    ],
)
def test_every_matter_of_opinion_has_an_option_that_turns_the_verdict(option, off, gold, answer):
    assert equal(gold, answer) != equal(gold, answer, **{option: off})
    assert equal(gold, gold, **{option: off})


def test_tolerance_is_relative():
    assert equal("1000", "1009", tolerance=0.01) and not equal("1000", "1011", tolerance=0.01)
    assert equal(r"\pi", "3.14", tolerance=0.01) and not equal(r"\pi", "3.2", tolerance=0.01)


@pytest.mark.parametrize("text", [r"\frac{1}{0}", "0^0", "0^{-1}", r"\frac{1}{\sin \pi}", r"\ln 0", r"\frac{0}{2-2}"])
def test_what_has_no_value_equals_nothing(text):
    with pytest.raises(UndefinedError):
        equal("1", text)


@pytest.mark.parametrize("text", ["9^{9^9}", "(10^9)!", r"\binom{10^9}{5}", "e^{10^9}", "10^{-10^9}", r"\sin 10^{300}"])
def test_what_is_too_large_is_refused_before_it_is_computed(text):
    with pytest.raises(TooLargeError):
        equal("1", text)


def test_letters_are_compared_where_both_sides_are_real():
    assert not equal("x", "|x|")
    assert equal(r"\ln x^2", r"2\ln |x|")
    assert equal(r"\frac{x^2-1}{x-1}", "x+1")
    assert not equal("x", "x + 0.000000001")


@pytest.mark.parametrize("letter", [*"abcdfghjklmnopqrstuvwxyzABCDEFGHJS", r"\theta"])
def test_no_letter_is_only_positive_or_only_small(letter):
    assert not equal(letter, f"|{letter}|")
    assert not equal(letter, rf"\sqrt{{{letter}^2}}")
    assert not equal("10", rf"\max({letter}, 10)")
    assert not equal(f"{letter}^2", rf"{letter}^2+\lfloor {letter}^2/100 \rfloor")


def test_a_bare_list_is_a_point_but_no_interval():
    assert equal("(1,2)", "1,2")
    assert not equal("[1,2]", "1,2") and not equal("1,2", "[1,2)")


def test_values_agree_only_beyond_the_scale_of_what_is_written():
    (first,), (second,) = readings(r"\sqrt{2}"), readings(r"\sqrt{2}+10^{-200}")
    assert agree(first, first, 0) == (True, True)
    assert agree(first, second, 0) == (False, True)
    assert exact(first) is None and exact(readings("2/4")[0]) == Fraction(1, 2)
