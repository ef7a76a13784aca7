import pytest
from hypothesis import given
from hypothesis import strategies as st

from earned.problems.golds import GoldForm, boxed, read_gold


@pytest.mark.parametrize(
    ("value", "text", "form"),
    [
        ("48/2 = <<48/2=24>>24\n#### 24", "24", GoldForm.AFTER_MARK),
        ("#### 1,450 ", "1,450", GoldForm.AFTER_MARK),
        ("#### 1\nmore\n#### 2", "2", GoldForm.AFTER_MARK),
        ("#### Step 1\nadd\nso 5", "#### Step 1\nadd\nso 5", GoldForm.PLAIN),
        ("#### Step 1\nadd\nso $\\boxed{5}$", "5", GoldForm.BOXED),
        ("####", "", GoldForm.EMPTY),
        ("so $\\boxed{\\frac{1}{\\sqrt{2}}}$ m", "\\frac{1}{\\sqrt{2}}", GoldForm.BOXED),
        ("\\boxed{1} or \\boxed{2}", "2", GoldForm.BOXED),
        ("\\boxed{\\boxed{3}}", "3", GoldForm.BOXED),
        ("\\boxed {x \\} y}", "x \\} y", GoldForm.BOXED),
        ("\\fbox{4}", "4", GoldForm.BOXED),
        ("$\\boxed 5$ done", "5", GoldForm.BOXED),
        ("\\boxed{}", "", GoldForm.EMPTY),
        ("\\boxed{never closed", "\\boxed{never closed", GoldForm.PLAIN),
        ("\\boxedx{5}", "\\boxedx{5}", GoldForm.PLAIN),
        (" B ", "B", GoldForm.PLAIN),
        (145.0, "145", GoldForm.PLAIN),
        (0.875, "0.875", GoldForm.PLAIN),
        (1e-7, "0.0000001", GoldForm.PLAIN),
        (12, "12", GoldForm.PLAIN),
        (0, "0", GoldForm.PLAIN),
        (["7"], "7", GoldForm.PLAIN),
        ([[1]], None, GoldForm.STRUCTURED),
        ([], None, GoldForm.STRUCTURED),
        (["1", "2"], None, GoldForm.STRUCTURED),
        ({"target": 98}, None, GoldForm.STRUCTURED),
        (None, "", GoldForm.EMPTY),
        ("  ", "", GoldForm.EMPTY),
        (float("nan"), "", GoldForm.EMPTY),
        (float("inf"), "", GoldForm.EMPTY),
    ],
)
def test_gold_is_read_where_it_stands(value, text, form):
    gold = read_gold(value)
    assert (gold.text, gold.form) == (text, form)


@given(st.text(alphabet="ab{}\\ $\n#"))
def test_any_text_has_a_reading(text):
    gold = read_gold(text)
    assert gold.text is not None and (gold.text == "") == (gold.form is GoldForm.EMPTY)


@given(st.text(alphabet="ab{}"))
def test_balanced_braces_come_back_whole(inner):
    depths = [inner[: i + 1].count("{") - inner[: i + 1].count("}") for i in range(len(inner))]
    balanced = min(depths, default=0) >= 0 and (depths or [0])[-1] == 0
    if balanced:
        assert boxed(f"x \\boxed{{{inner}}} y}}") == inner


def test_a_hostile_solution_is_read_in_linear_time():
    assert boxed("\\boxed{" * 200_000) is None
