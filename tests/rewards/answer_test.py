import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earned.rewards.answer import extract_answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("A124", "124"),
        ("47+58=105;105+19=124;A124", "124"),
        ("A124\n", "124"),
        ("A124.", "124"),
        ("A124 . \n", "124"),
        ("A-3", "-3"),
        ("A1,024.5", "1,024.5"),
        ("#### 124", "124"),
        ("####124", "124"),
        ("Answer: 124", "124"),
        ("answer:124", "124"),
        ("The final ANSWER: Paris.", "Paris"),
        ("Answer:\n124", "124"),
        ("Answer: A124", "124"),
        ("#### 1\n#### 2", "2"),
        ("A1. No: A2", "2"),
        ("A124 or A125", "125"),
        ("Answer: 1 ... #### 2", "2"),
        ("124", "124"),
        ("A 124", "124"),
        ("It must be 124.", "124"),
        ("So the total is $1,024.50!", "1,024.50"),
        ("3 + 4 = 7", "7"),
        ("First 3 + 4 = 7.\nThen 7 + 2 = 9 apples.", "9"),
        ("I have 3 and 4. They make **7**.", "7"),
        ("x = -3", "-3"),
        ("The total is 7, I think.", "7"),
        ("The sum, 7, is odd.", "7"),
        ("It is (-3).", "-3"),
        ("1. Add them. 2. The sum is 7.\n\n", "7"),
    ],
)
def test_read(text, answer):
    assert extract_answer(text).answer == answer


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no answer mark"),
        ("A", "no answer mark"),
        ("BANANA5", "no answer mark"),
        ("ÄA5", "no answer mark"),
        ("A5x", "no answer mark"),
        ("A55x", "no answer mark"),
        ("A5.5x", "no answer mark"),
        ("1A2", "no answer mark"),
        ("A1A2A3", "no answer mark"),
        ("A１２４", "no answer mark"),
        ("a124", "no answer mark"),
        ("####", "nothing follows"),
        ("Answer: . ", "nothing follows"),
        ("#### 124 #### ", "nothing follows"),
        ("A124\nand so on", "text follows"),
        ("Answer: 124\rx", "text follows"),
        ("#### 124\u2028x", "text follows"),
        ("#### " + "1" * 201, "longer than 200"),
        ("3 and 4 make 7", "states 3 numbers"),
        ("It is seven", "states no number"),
        ("3 + 4 = 7. Easy!", "states no number"),
        ("3 + 4 =", "states no number"),
        ("It is 7 or 8 or so", "doubts: 'or'"),
        ("It is not 7", "doubts: 'not'"),
        ("It isn't 7", "doubts: 'not'"),
        ("Maybe 7", "doubts: 'maybe'"),
        ("Is it 7?", "doubts: '?'"),
        ("the 7th", "no plain number"),
        ("B12", "no plain number"),
        ("1/2", "states 2 numbers"),
        ("2^10", "states 2 numbers"),
        ("15%", "no plain number"),
        ("3.14.15", "no plain number"),
        ("It is \u22125.", "no plain number"),
        ("It is 47 - 52 = - 5.", "no plain number"),
        ("It is minus 5.", "no plain number"),
        ("It is 7 1/2.", "states 3 numbers"),
        ("It is 5 x 10^3.", "states 3 numbers"),
        ("It is 20 %.", "no plain number"),
        ("It is 7 thousand.", "no plain number"),
        ("so " * 200 + "7", "longer than 400"),
    ],
)
def test_refused_with_the_reason(text, reason):
    extraction = extract_answer(text)
    assert extraction.answer is None
    assert reason in extraction.reason


@pytest.mark.parametrize(
    "unit",
    [
        "A",
        "#",
        "A1",
        "A1 ",
        "####",
        "#### ",
        "Answer:",
        "1",
        "1 ",
        "=",
        ". ",
        "x\n",
        "A1,",
        "A-",
        " ",
        "\n",
        ".",
        "1,",
        "answe",
        "A1.x",
    ],
)
def test_a_million_characters_take_less_than_a_second(unit):
    text = "A" + unit * (1_000_000 // len(unit))
    start = time.perf_counter()
    extract_answer(text)
    extract_answer(text + "x")
    assert time.perf_counter() - start < 1


@given(st.text(alphabet="A#answer:12.,-+ \nx"), st.integers(-(10**6), 10**6))
def test_only_the_last_mark_counts(before, number):
    assert extract_answer(f"{before}\n#### {number}").answer == str(number)


@pytest.mark.parametrize("text", ["A12", "#### 12", "Answer: 12", "3 + 9 = 12", "So, 12 plus"])
def test_an_answer_that_was_cut_off_is_none(text):
    assert extract_answer(text).answer is not None
    cut = extract_answer(text, truncated=True)
    assert cut.answer is None and "cut the completion off" in cut.reason


@pytest.mark.parametrize("text", ["A12\n", "#### 12.", "Answer: 12 ", "3 + 9 = 12!", "It is 12.\n\n"])
def test_an_answer_that_was_over_before_the_cut_counts(text):
    assert extract_answer(text, truncated=True).answer == "12"
