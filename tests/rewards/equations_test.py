"""Equations are read as they are meant, or not at all."""

import math
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earned.rewards.equations import MAX_NUMBERS, read_equations, read_numbers


def written(text):
    return [str(equation) for equation in read_equations(text)]


def faults(text):
    return [equation.fault for equation in read_equations(text)]


@pytest.mark.parametrize(
    ("text", "equations"),
    [
        ("47+58=105;105+19=124;A124", ["47+58=105", "105+19=124"]),
        ("Natalia sold 48/2 = <<48/2=24>>24 clips.", ["48/2=24"]),
        ("So 3 + 4 = 7 apples, and 7 - 2 = 5.", ["3+4=7", "7-2=5"]),
        ("$10*2=$<<10*2=20>>20", ["10*2=20"]),
        ("80,000 + 50,000 = $130,000", ["80000+50000=130000"]),
        ("$3 \\times 4 = 12$", ["3*4=12"]),
        (r"\(3 \cdot 4 = 12\) and 12 \div 4 = 3", ["3*4=12", "12/4=3"]),
        ("3 x 4 = 12, 3×4=12, 12÷4=3, 3·4=12", ["3*4=12", "3*4=12", "12/4=3", "3*4=12"]),
        ("5 − 8 = −3; 8 – 5 = 3", ["5-8=-3", "8-5=3"]),
        ("-3 + 5 = 2; 5*-3=-15", ["-3+5=2", "5*-3=-15"]),
        ("total = 3*4 = 12", ["3*4=12"]),
        ("105 = 47 + 58", ["105=47+58"]),
        ("2+3=5+4=9", ["2+3=5+4=9"]),
        ("3+4==7", ["3+4=7"]),
        (".5 + 1.50 = 2.0.", [".5+1.50=2.0"]),
        ("50*20%=10, 1/2=50 \\%", ["50*20%=10", "1/2=50%"]),
        ("- 48/2 = 24\n* 3+4=7\n  - 7-3=4", ["48/2=24", "3+4=7", "7-3=4"]),
        ("1. 3+4=7\n2) 7-3=4\nStep 3: 1+1=2", ["3+4=7", "7-3=4", "1+1=2"]),
        ("**3+4=7** (7-3=4)", ["3+4=7", "7-3=4"]),
        ("3+4=7 5+2=7", ["3+4=7", "5+2=7"]),
        (r"3+4=7\\5+2=7", ["3+4=7", "5+2=7"]),
        ("6/0=3", ["6/0=3"]),
    ],
)
def test_what_is_read(text, equations):
    assert written(text) == equations


@pytest.mark.parametrize(
    "text",
    [
        *("", "=", "==", "=7", "7=", "3+4=", "3+4", "5=5", "x=5", "5=5=5", "+", "-=-", "1+=2", "1+2=+", "= = ="),
        *("x + 3 + 2 = 7", "y - 3 + 2 = 7", "x-3+2=7", "2x + 3 = 7", "3 + 4 = 7x", "a3+4=7", "3+4=7th", "3e4+1=2"),
        *("2^3+4=12", "3^2 + 4 = 13", "2**3+4=12", "3!+4=10", "√9+4=7", "3+4=7√2", "3²+4=13", r"\sqrt 9 + 4 = 7"),
        *("(3+4)*2=14", "2*(3+4)=14", "2(3)+4=10", "f(3)+4=5", "3+4=7(2)", "|3-5|+2=4", r"\frac{1}{2}+3=3.5"),
        *("3 apples + 4 apples = 7", "10%3=1", "7 % 3 = 1", "1.2.3+4=7", "12,4+1=13", "5:30 + 2 = 7:30", "3+\n4=7"),
        *("٣+٤=٧", "３+4=7", "3+4 ≈ 7", "3+4 != 8 "),
        "1" * 101 + "+1=2",
        "+".join(["1"] * MAX_NUMBERS) + f"={MAX_NUMBERS}",
    ],
)
def test_what_cannot_be_read_for_sure_is_not_read(text):
    assert written(text) == []


def test_why_it_is_false():
    assert faults("47+58=106") == ["47+58 is 105, not 106"]
    assert faults("2+3=5+4=9") == ["2+3 is 5, not 5+4"]
    assert faults("10/4=2") == ["10/4 is 5/2, not 2"]
    assert faults("10/3=3.33; 1/3=0.3333333333333333") == [
        "10/3 is 10/3, not 3.33",
        "1/3 is 1/3, not 0.3333333333333333",
    ]
    assert faults("6/0=6/0") == ["6/0 divides by zero"]


NUMBERS = st.integers(0, 999)
PRODUCTS = st.lists(NUMBERS, min_size=1, max_size=3)


@given(PRODUCTS, st.lists(st.tuples(st.sampled_from("+-"), PRODUCTS), max_size=3), st.integers(-2, 2))
def test_times_binds_closer_and_minus_goes_from_left_to_right(first, rest, off):
    total = math.prod(first) + sum(math.prod(factors) * (1 if sign == "+" else -1) for sign, factors in rest)
    terms = [("+", first), *rest]
    text = "".join(sign + " * ".join(map(str, factors)) for sign, factors in terms).removeprefix("+")
    for said in (f"{text}={total + off}", f"so {total + off} = {text}."):
        if any(sign in text for sign in "+-*"):
            assert [fault is None for fault in faults(said)] == [off == 0]
        else:
            assert faults(said) == []


@given(st.fractions(min_value=-99, max_value=99, max_denominator=8), st.integers(1, 9))
def test_division_is_exact(value, divisor):
    numerator = Fraction(value * divisor)
    if numerator.denominator == 1 and value.denominator in (1, 2, 4, 5, 8):
        decimal = format(float(value), "f")
        assert faults(f"{numerator}/{divisor}={decimal}") == [None]
        assert faults(f"{numerator}/{divisor}={decimal}1") != [None]


def test_the_same_equation_in_other_signs_is_equal():
    first, second, other = read_equations("3 x 4 = 12; 3*4 = 12.0; 4*3=12")
    assert first == second and first != other


def test_numbers_of_a_text():
    text = "He has -3 of 1,200 (20%), 2.50 and 3/4, .5 or A7b; " + "9" * 101
    percent = {Fraction(20), Fraction(1, 5)}
    others = {Fraction(n) for n in ("3", "1200", "2.5", "4", "1/2", "7")}
    assert read_numbers(text) == percent | others


BOMBS = ["1", "1+", "1+1=", "=", "-", "1,", "1.", ",", "1 ", "* ", "\\", "**", "1**", "$", "(", "\n- ", "x ", "1%", " "]


@pytest.mark.parametrize("unit", [*BOMBS, "1+1=2;", "9" * 99 + "*"])
def test_fifty_thousand_characters_take_less_than_two_seconds(unit):
    text = unit * (50_000 // len(unit))
    start = time.process_time()
    assert all(equation.fault is None for equation in read_equations(text))
    read_numbers(text)
    assert time.process_time() - start < 2
