import ast
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earned.rewards.arithmetic import MAX_CHARACTERS, MAX_DEPTH, NotArithmetic, read_expression

OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
WRITINGS = {"+": "+", "-": "-−", "*": "*×·⋅", "/": "/÷"}

trees = st.recursive(
    st.integers(0, 99),
    lambda inner: st.tuples(st.sampled_from("+-*/"), inner, inner),
    max_leaves=8,
)


def numbers_of(tree):
    return (tree,) if isinstance(tree, int) else (*numbers_of(tree[1]), *numbers_of(tree[2]))


def value_of(tree):
    """Compute a tree without any of our code; None for a division by zero."""
    if isinstance(tree, int):
        return Fraction(tree)
    left, right = value_of(tree[1]), value_of(tree[2])
    if left is None or right is None or (tree[0] == "/" and right == 0):
        return None
    return OPERATIONS[tree[0]](left, right)


def written(tree, draw, around=False):
    """Write a tree with random spaces, signs and parentheses beside those that it needs."""
    space = draw(st.sampled_from(["", " ", "  ", "\t"]))
    if isinstance(tree, int):
        text = str(tree)
    else:
        sign = draw(st.sampled_from(WRITINGS[tree[0]]))
        text = written(tree[1], draw, True) + space + sign + space + written(tree[2], draw, True)
    needed = around and not isinstance(tree, int)
    return f"({space}{text}{space})" if needed or draw(st.integers(0, 4)) == 0 else text


@given(trees, st.data())
def test_whatever_way_a_tree_is_written_its_exact_value_is_read(tree, data):
    text = written(tree, data.draw)
    if len(text) > MAX_CHARACTERS:
        return
    if value_of(tree) is None:
        with pytest.raises(NotArithmetic, match="it divides by zero"):
            read_expression(text)
        return
    expression = read_expression(text)
    assert expression.value == value_of(tree)
    assert expression.numbers == numbers_of(tree)


@given(st.lists(st.tuples(st.sampled_from("+-*/"), st.integers(1, 99)), max_size=8), st.integers(0, 99))
def test_without_parentheses_products_come_first_and_all_goes_from_left_to_right(rest, first):
    text = str(first) + "".join(f"{sign}{number}" for sign, number in rest)
    total, product, sign = Fraction(0), Fraction(first), 1
    for operation, number in rest:
        if operation in "*/":
            product = OPERATIONS[operation](product, number)
        else:
            total, product, sign = total + sign * product, Fraction(number), 1 if operation == "+" else -1
    assert read_expression(text).value == total + sign * product


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("0", 0),
        ("2-3-4", -5),
        ("2-(3-4)", 3),
        ("24/4/3", 2),
        ("24/(4/3)", 18),
        ("1/3+1/3+1/3", 1),
        ("(2+3)*4", 20),
        (r"3 \times 4 \div 6 \cdot 5", 10),
        ("(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH, 1),
    ],
)
def test_worked_by_hand(text, value):
    assert read_expression(text).value == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "nothing comes first, where a number or a parenthesis has to stand"),
        ("  ", "nothing comes first"),
        ("+3", "'+' comes first, where a number"),
        ("-3", "'-' comes first, where a number"),
        ("3*-4", "'-' follows '*', where a number"),
        ("3--4", "'-' follows '-', where a number"),
        ("3+", "nothing follows '+', where a number"),
        ("*3", "'*' comes first"),
        ("()", "')' follows '(', where a number"),
        ("3()", "'(' follows '3', where an operation"),
        ("3 4 + 5", "'4' follows '3', where an operation"),
        ("(3)(4)+5", "'(' follows ')', where an operation"),
        ("3(4+5)", "'(' follows '3', where an operation"),
        ("3*4)", "')' follows '4', where an operation"),
        ("(3*4", "nothing follows '4', where an operation or the closing parenthesis"),
        ("(3 4)", "'4' follows '3', where an operation or the closing"),
        ("9**9**9", "** is none of the operations"),
        ("9 * * 9", "'*' follows '*', where a number"),
        ("7//2", "// is none of the operations"),
        ("2.5*4", "'.' is no digit"),
        ("2,5", "',' is no digit"),
        ("03*4", "03 has a leading zero"),
        ("00", "00 has a leading zero"),
        ("3x4", "'x' is no digit"),
        ("3*4e1", "'e' is no digit"),
        ("3_0", "'_' is no digit"),
        ("3*4%5", "'%' is no digit"),
        ("3*4!", "'!' is no digit"),
        ("3^4", "'^' is no digit"),
        ("3*4 # +5", "'#' is no digit"),
        ("3*4\n+5", r"'\n' is no digit"),
        ("3*4\r+5", r"'\r' is no digit"),
        ("[3+4]", "'[' is no digit"),
        ("{3+4}", "'{' is no digit"),
        ("3=3", "'=' is no digit"),
        ("３*4", r"'\uff13' is no digit"),
        ("٣", r"'\u0663' is no digit"),
        ("3²", r"'\xb2' is no digit"),
        ("½", r"'\xbd' is no digit"),
        ("3*4\u200b", r"'\u200b' is no digit"),
        ("3*4\x00", r"'\x00' is no digit"),
        ("\ud800", r"'\ud800' is no digit"),
        (r"3\timesx", r"'\\' is no digit"),
        (r"\frac{3}{4}", r"'\\' is no digit"),
        ("3/(4-4)", "it divides by zero"),
        ("3/0*0", "it divides by zero"),
        ("17 if 3+4+5 else 0", "'i' is no digit"),
        ("__import__('os').getpid()*0+3*4+5", "'_' is no digit"),
        ("lambda: 3", "'l' is no digit"),
        ("(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1), "more than 50 parentheses"),
        ("1+" * MAX_CHARACTERS + "1", "it is longer than 300 characters"),
    ],
)
def test_everything_else_is_refused_with_the_reason(text, reason):
    with pytest.raises(NotArithmetic) as refusal:
        read_expression(text)
    assert reason in str(refusal.value)


def test_other_writings_can_be_turned_off():
    assert read_expression("3×4").value == 12
    for text in ("3×4", "3−4", "3÷4", "3·4", r"3\times 4"):
        with pytest.raises(NotArithmetic, match="is no digit"):
            read_expression(text, symbols=False)
    assert read_expression("3*4", symbols=False).value == 12


@given(st.text(alphabet="0123456789+-*/() .×=eE_", max_size=30))
def test_what_is_read_is_what_the_syntax_tree_of_python_says(text):
    try:
        expression = read_expression(text, symbols=False)
    except NotArithmetic:
        return
    assert computed(ast.parse(text.strip(), mode="eval").body) == expression.value


def computed(node):
    if isinstance(node, ast.Constant):
        return Fraction(node.value)
    return OPERATIONS[{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}[type(node.op)]](
        computed(node.left), computed(node.right)
    )


@pytest.mark.parametrize("unit", ["(", ")", "9", "*", "3*", " ", "((1)", "1/"])
def test_huge_texts_are_refused_at_once(unit):
    start = time.perf_counter()
    for size in (10**4, 10**6):
        with pytest.raises(NotArithmetic, match="longer"):
            read_expression(unit * size)
    assert time.perf_counter() - start < 0.1
