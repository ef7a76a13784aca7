from fractions import Fraction

import pytest

from earned.rewards.maths.gold import gold_readings, read_gold_expression
from earned.rewards.maths.structure_parser import readings
from earned.rewards.maths.tokens import tokenize
from earned.rewards.maths.tree import (
    Apply,
    FiniteSet,
    Group,
    Listing,
    Number,
    Quantity,
    Ratio,
    Relation,
    SetOperation,
    Symbol,
    UnreadableError,
    Words,
)


def number(value):
    return Number(Fraction(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("1,024", 1024),
        ("1{,}024{,}000", 1024000),
        (r"1\,024", 1024),
        ("0.125", "1/8"),
        (".5", "1/2"),
        ("3.", 3),
        ("1e3", 1000),
        ("1.5E-2", "3/200"),
        (r"0.\overline{3}", "1/3"),
        ("0.(142857)", "1/7"),
        (r"0.1\dot{6}", "1/6"),
        ("0.333...", "1/3"),
        (r"0.1212\ldots", "4/33"),
        ("1011_2", 11),
        ("2A_{16}", 42),
        ("２０", 20),
        ("2½", "5/2"),
        ("1e000000002", 100),
    ],
)
def test_a_number_is_read_exactly(text, value):
    assert readings(text)[0] == number(Fraction(value))


@pytest.mark.parametrize(
    "text", ["0.33...", "3.14159...", "12 13", "12.5.1", "1" * 1001, "1e6000", "129_2", "12_x", "1e000000010000000"]
)
def test_what_only_looks_like_a_number_is_none(text):
    with pytest.raises(UnreadableError):
        readings(text)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("xy", Apply("multiply", (Symbol("x"), Symbol("y")))),
        (r"x_{\text{red}}", Symbol("x_red")),
        (r"\vec{v}", Symbol("vec v")),
        (r"y^{\prime\prime}", Symbol("y''")),
        (r"\frac12", Apply("divide", (number(1), number(2)))),
        (r"\sqrt[3]5", Apply("root", (number(5), number(3)))),
        (r"\sqrt 5", Apply("root", (number(5), number(2)))),
        ("2^10", Apply("power", (number(2), number(10)))),
        ("x**-1", Apply("power", (Symbol("x"), number(-1)))),
        ("x²", Apply("power", (Symbol("x"), number(2)))),
        (r"\sin^{-1} x", Apply("arcsin", (Symbol("x"),))),
        ("f(x)", Apply("f", (Symbol("x"),))),
        ("I(0)", Apply("I", (number(0),))),
        ("a(b+c)", Apply("multiply", (Symbol("a"), Apply("add", (Symbol("b"), Symbol("c")))))),
        ("|x|", Apply("abs", (Symbol("x"),))),
        ("2 1/3", number(Fraction(7, 3))),
        ("(0,1]", Group("(", (number(0), number(1)), "]")),
        (r"\{1, 2\}", FiniteSet((number(1), number(2)))),
        (r"\pm 2", Listing((number(2), number(-2)))),
        ("1 or 2", Listing((number(1), number(2)), "or")),
        ("3:4", Ratio((number(3), number(4)))),
        ("x<=2", Relation(("<=",), (Symbol("x"), number(2)))),
        (r"\text{Area} = 6", Relation(("=",), (Words("Area"), number(6)))),
        (r"\{1\}\cup\{2\}", SetOperation("union", (FiniteSet((number(1),)), FiniteSet((number(2),))))),
        (r"5\text{ cm}^2", Quantity(number(5), "cm^2")),
        ("5 square metres", Quantity(number(5), "m^2")),
        ("36%", Quantity(number(36), "%")),
        (r"\$4.50", Quantity(number(Fraction(9, 2)), "$")),
        ("5 million", number(5_000_000)),
        ("Tuesday.", Words("tuesday")),
        ("9:05 p.m.", Words("9:05 pm")),
        (r"\textbf{(B)}", Symbol("B")),
    ],
)
def test_text_becomes_a_tree(text, tree):
    assert readings(text)[0] == tree


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(" * 200 + "1" + ")" * 200, "nested"),
        ("x" * 2001, "longer than 2000"),
        ("(1", "not closed"),
        ("1)", "not opened"),
        ("1+", "ends where"),
        ("__import__('os')", "'_'"),
        ("木", "'木'"),
        (",".join("1" * 300), "more than 200"),
        ("=".join("x" * 300), "more than 60 relations"),
        (r"\int_0^1 x", "int"),
        ("12 or", "ends with nothing"),
        (r"\text{a", "not closed"),
        ("", "nothing"),
    ],
)
def test_what_is_not_in_the_grammar_is_refused_with_the_reason(text, reason):
    with pytest.raises(UnreadableError, match=reason.replace("(", r"\(")):
        readings(text)


def test_a_comma_before_three_digits_is_read_both_ways_and_inside_brackets_one_way():
    assert readings("1,234") == (number(1234), Listing((number(1), number(234))))
    assert readings("1,023") == (number(1023),) and readings("1,000") == (number(1000),)
    assert readings("(1,234)") == (Group("(", (number(1), number(234)), ")"),)
    assert [token.text for token in tokenize("1,234", grouped=False)] == ["1", ",", "234"]


@pytest.mark.parametrize("gold", ["proof", r"\text{See solution}", r"\frac{1}{0}", "", "???", r"\int x"])
def test_a_gold_that_nothing_can_equal_is_found_at_load(gold):
    assert read_gold_expression(gold) is None


def test_a_gold_may_stand_in_a_box_or_between_dollars():
    assert gold_readings(r"So $\boxed{\frac{1}{2}}$.") == gold_readings(r"$\frac{1}{2}$") == gold_readings(r"\frac12")
