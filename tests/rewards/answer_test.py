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
        (r"\boxed{7}", "7"),
        (r"$$\boxed{\frac{\sqrt{3}}{2}}$$ and so on, 3 times", r"\frac{\sqrt{3}}{2}"),
        (r"Each weighs \boxed{3} kg. All of them \boxed{7}.", "7"),
        ("I get \\boxed{512}. Once more:\n\n**Final Answer**\n\\boxed{512}", "512"),
        (r"\boxed{3}, \boxed{4} and \boxed{5}", "3, 4, 5"),
        (r"\boxed{3} \text{ or }\boxed{4}", "3, 4"),
        (r"\boxed 5.", "5"),
        (r"\boxed-42.5", "-42.5"),
        (r"\boxed\pi", r"\pi"),
        (r"\boxed{\boxed{5}}", "5"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\fbox{5}", "5"),
        (r"\boxedx{5} \boxed{6}", "6"),
        (r"\boxed{5} or Answer: 6", "6"),
        ("<answer> 42 </answer>", "42"),
        (r"<answer>The result is \boxed{42}</answer>", "42"),
        ("<answer>Answer: 42</answer>", "42"),
        ("<answer>[w, A2]</answer>", "[w, A2]"),
        (r"\boxed{5}. There is no other solution.", "5"),
        (r"\boxed{5}, for 5 is odd.", "5"),
        ("<answer>7</answer> A2", "2"),
        ("<think>41? Answer: 41</think>It is 42.", "42"),
        ("41? Answer: 41</think>\n\nIt is 42.", "42"),
        ("The answer is 72,500.", "72,500"),
        ("With 3 and 4, the answer is: **7**.", "7"),
        ("The answer is $x=3$. I hope that helps.", "x=3"),
        ("The answers are 3 and 5", "3 and 5"),
        ("**Answer:** 42", "42"),
        ("**Answer: 42**", "42"),
        ("**Final Answer:** \\(42\\).", "42"),
        ("#### 42\n\nI hope that helps!", "42"),
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
        ("Answer: 124\rplus 125", "another number"),
        ("#### 124\u2028It may not be.", "in doubt: 'not'"),
        ("#### 124\nIs that so?", "in doubt: '?'"),
        ("Answer: 124\nWait, that was too fast.", "takes the answer back: 'wait'"),
        ("The answer is about 61.", "in doubt: 'about'"),
        ("The answer is not 61.", "in doubt: 'not'"),
        ("The answer is 7. Then 7 + 1 = 8.", "another number"),
        (r"I could not finish. \boxed{}", "nothing follows"),
        (r"Therefore \boxed{\frac{3}{4", "opened and not closed"),
        (r"\boxed", "opened and not closed"),
        (r"\boxed{7{ {2,4} 3}.", "opened and not closed"),
        (r"It is \boxed{12} - no wait, that is wrong.", "takes the answer back"),
        ("<answer>5", "opened and not closed"),
        ("<answer></answer>", "nothing follows"),
        ("<think>6*7 = 42, let me check", "inside its thinking block"),
        (r"<think>\boxed{42}", "inside its thinking block"),
        (r"<think>a</think>\boxed{1}<think>\boxed{42}", "inside its thinking block"),
        (r"<think>\boxed{42}</think>", "no answer mark"),
        ("about 61", "doubts: 'about'"),
        ("It might be 5.", "doubts: 'might'"),
        (r"\boxed{124}. No, that is not right; it is 125.", "takes the answer back"),
        (r"\boxed{124}. Actually it is 125.", "takes the answer back: 'actually'"),
        ("<answer>124</answer> or 125", "takes the answer back: 'or'"),
        ("#### 5\nActually, six.", "takes the answer back"),
        (r"\boxed{5}, but that isn't correct", "takes the answer back"),
        ("<Think>#### 5", "inside its thinking block"),
        ("#### " + "1" * 401, "longer than 400"),
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
        r"\boxed{",
        r"\boxed{1}",
        r"\boxed ",
        "{",
        "}",
        "<answer>",
        "</think>",
        "<think>",
        "answer is ",
        "$",
        "*",
        r"\(",
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


@pytest.mark.parametrize(
    "line", [r"Put the answer in \boxed{42}.", "Answer: 42 is an example", "For example, it is 42."]
)
def test_what_the_prompt_says_is_no_answer(line):
    assert extract_answer(line, prompt="What is 6 * 7?").answer is not None
    echo = extract_answer(f"I was asked:\n{line}", prompt=f"What is 6 * 7?\n{line}\nThink first.")
    assert echo.answer is None and "repeats the prompt" in echo.reason


def test_a_short_line_may_be_the_answer_though_the_prompt_holds_it():
    assert extract_answer(r"\boxed{42}", prompt=r"Which is larger, \boxed{41} or \boxed{42}?").answer == "42"


@pytest.mark.parametrize("text", [r"\boxed{12}, and then", "<answer>12</answer> and then"])
def test_a_closed_answer_was_over_before_the_cut(text):
    assert extract_answer(text, truncated=True).answer == "12"
    assert extract_answer(text.replace("}", "").replace("</answer>", ""), truncated=True).answer is None


@given(st.recursive(st.sampled_from("abc "), lambda inner: st.builds("{{{}}}".format, st.lists(inner).map("".join))))
def test_a_box_ends_where_its_own_brace_closes(content):
    marked = rf"So \boxed{{x{content}x}} and }} more {{"
    assert extract_answer(marked).answer == f"x{content}x"
