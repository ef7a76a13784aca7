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
    ],
)
def test_read(text, answer):
    assert extract_answer(text).answer == answer


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no answer mark"),
        ("124", "no answer mark"),
        ("A", "no answer mark"),
        ("A 124", "no answer mark"),
        ("BANANA 5", "no answer mark"),
        ("BANANA5", "no answer mark"),
        ("ÄA5", "no answer mark"),
        ("A5x", "no answer mark"),
        ("A55x", "no answer mark"),
        ("A5.5x", "no answer mark"),
        ("1A2", "no answer mark"),
        ("A1A2A3", "no answer mark"),
        ("A１２４", "no answer mark"),
        ("### 5", "no answer mark"),
        ("##### 5", "no answer mark"),
        ("myanswer: 5", "no answer mark"),
        ("anſwer: 5", "no answer mark"),
        ("a124", "no answer mark"),
        ("####", "nothing follows"),
        ("Answer: . ", "nothing follows"),
        ("#### 124 #### ", "nothing follows"),
        ("A124\nand so on", "text follows"),
        ("Answer: 124\rx", "text follows"),
        ("#### 124\u2028x", "text follows"),
        ("#### " + "1" * 201, "longer than 200"),
    ],
)
def test_refused_with_the_reason(text, reason):
    extraction = extract_answer(text)
    assert extraction.answer is None
    assert reason in extraction.reason


@pytest.mark.parametrize(
    "unit", ["A", "#", "A1", "A1 ", "####", "#### ", "Answer:", "1", "A1,", "A-", " ", "\n", ".", "1,", "answe", "A1.x"]
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
