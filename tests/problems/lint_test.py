from collections import Counter

import pytest

from earned.problems.files import table_of_objects
from earned.problems.lint import KEPT, LEFT_OUT, Finding, kept, lint, prompt_keys
from earned.problems.shapes import ColumnOptions, entries, sniff
from earned.rewards.exact import read_gold_text
from earned.rewards.number import read_gold_number

GOOD = [{"id": f"q{n}", "question": f"What is {n}+1?", "answer": str(n + 1)} for n in range(40)]


def read(rows):
    table = table_of_objects("my.jsonl", rows)
    return entries(table, sniff(table, ColumnOptions()))


def found(rows, **asked):
    return {finding.kind: finding.numbers for finding in lint(read(rows), **asked)}


def test_good_rows_have_no_findings_and_are_all_kept():
    rows = read(GOOD)
    assert lint(rows, read_gold_number) == ()
    assert kept(rows, ()) == rows


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"question": " ", "answer": "1"}, "empty_prompt"),
        ({"question": None, "answer": "1"}, "empty_prompt"),
        ({"answer": "1"}, "empty_prompt"),
        ({"question": "new", "answer": ""}, "empty_gold"),
        ({"question": "new", "answer": None}, "empty_gold"),
        ({"question": "new", "answer": "work\n####"}, "empty_gold"),
        ({"question": "WHAT is  0+1? ", "answer": "1"}, "duplicate"),
        ({"question": "What is 0+1?", "answer": "2"}, "other_gold"),
        ({"question": "new", "answer": "1", "id": "q3"}, "same_id"),
        ({"question": "new", "answer": ["1", "2"]}, "no_text_gold"),
        ({"question": "new", "answer": "Proof"}, "sentinel"),
        ({"question": "new", "answer": "first\nsecond"}, "several_lines"),
    ],
)
def test_each_fault_is_found_once_at_its_row(row, kind):
    rows = read([*GOOD, row, {"question": "What is 99+1?", "answer": "100"}])
    findings = lint(rows)
    assert [(finding.kind, finding.numbers) for finding in findings] == [(kind, (41,))]
    assert [entry.number for entry in kept(rows, findings)] == [n for n in range(1, 43) if n != 41 or kind in KEPT]


def test_every_kind_is_tested_above_or_below():
    assert set(LEFT_OUT) | set(KEPT) == {
        "empty_prompt",
        "empty_gold",
        "duplicate",
        "other_gold",
        "same_id",
        "no_text_gold",
        "sentinel",
        "several_lines",
        "unreadable_gold",
        "overlap",
    }


def test_gold_that_the_check_cannot_read():
    rows = [
        {"question": str(n), "answer": gold} for n, gold in enumerate(["7", "1,024.", "\\frac{1}{2}", "4.5e33", "a\nb"])
    ]
    assert found(rows, parse=read_gold_number) == {"unreadable_gold": (3, 4, 5)}
    assert found(rows, parse=read_gold_text) == {"unreadable_gold": (5,)}
    assert found(rows) == {"several_lines": (5,)}


def test_overlap_with_another_table_is_by_prompt_whatever_the_gold():
    other = [
        entry.problem for entry in read([{"question": "what is 3+1?", "answer": "5"}, {"question": "x", "answer": "1"}])
    ]
    assert found(GOOD, others=prompt_keys(other)) == {"overlap": (4,)}


def test_no_prompt_is_in_two_splits():
    # The gold is part of a problem's hash, so without the lint one prompt with many golds falls into several splits.
    rows = read([{"question": f"q{n}", "answer": str(gold)} for n in range(30) for gold in range(8)])
    splits = Counter((entry.problem.prompt, entry.problem.split) for entry in rows)
    assert len(splits) > 30
    left = kept(rows, lint(rows))
    assert len(left) == len({entry.problem.prompt for entry in left}) == 30


def test_a_table_without_gold_is_not_called_empty():
    assert found([{"prompt": "a"}, {"prompt": "b"}], parse=read_gold_number) == {}


def test_sentences_show_five_lines_and_the_count():
    six = Finding(kind="duplicate", numbers=(2, 3, 5, 7, 11, 13))
    assert (
        six.sentence("line")
        == "6 rows left out (lines 2, 3, 5, 7, 11, ...): the same prompt and gold as an earlier row"
    )
    assert (
        Finding(kind="overlap", numbers=(8,)).sentence("row")
        == "1 row kept (row 8): a prompt that the other file has too"
    )
