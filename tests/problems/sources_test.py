import json
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.shared_data import shared

from earned.errors import RecipeError
from earned.problems.sources import load_problems, read_source
from earned.problems.splits import make_problem, take_splits
from earned.recipe import Problems
from earned.recipe_file import validate
from earned.rewards.number import read_gold_number
from earned.vocabulary import Split


def write_sums(path, count, first=0):
    rows = ({"question": f"{n}+{n}=", "answer": 2 * n} for n in range(first, first + count))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def sizes(problems):
    return len(problems.train), len(problems.validation), len(problems.held_out)


def test_counts_of_a_recipe_are_upper_bounds_for_a_file(tmp_path):
    source = write_sums(tmp_path / "my.jsonl", 200)
    everything = load_problems(Problems(source=source), seed=0)
    assert sum(sizes(everything)) == 200
    few = load_problems(Problems(source=source, train=50, validation=0, held_out=5), seed=0)
    assert sizes(few) == (50, 0, 5)
    assert few.notes[-1] == "used: 50 train, 0 validation, 5 held-out (the recipe asks for at most 50, 0, 5)"


def test_the_choice_among_too_many_depends_on_neither_seed_nor_order(tmp_path):
    source = write_sums(tmp_path / "my.jsonl", 200)
    table = Problems(source=source, train=20, validation=5, held_out=5)
    once = load_problems(table, seed=0)
    lines = Path(source).read_text().splitlines(keepends=True)
    Path(source).write_text("".join(reversed(lines)))
    again = load_problems(table, seed=7)
    assert {problem.id for problem in once.train} == {problem.id for problem in again.train}
    assert once.train == tuple(reversed(again.train)), "problems stay in the order of the file"
    first = [make_problem(f"{n}+{n}=", str(2 * n), source) for n in range(200)]
    assert once.train != tuple([problem for problem in first if problem.split is Split.TRAIN][:20]), (
        "not just the first"
    )


def test_an_empty_split_is_refused_only_where_it_is_wanted():
    train = [p for p in (make_problem(str(n), "0", "list") for n in range(20)) if p.split is Split.TRAIN]
    assert sizes(take_splits(train, train=99, validation=0, held_out=0)) == (len(train), 0, 0)
    with pytest.raises(RecipeError) as error:
        take_splits(train, train=99, validation=1, held_out=0)
    assert str(error.value) == (
        f"problems.validation: no problem of the source falls into this split ({len(train)} train, 0 validation, "
        "0 held_out; a hash of its text puts each problem into one). Add problems, or set problems.validation = 0"
    )
    with pytest.raises(RecipeError, match=r"problems\.train: .*Add problems$"):
        take_splits([], train=1, validation=0, held_out=0)


def test_relative_paths_start_at_the_current_folder(tmp_path, monkeypatch):
    write_sums(tmp_path / "my.jsonl", 100)
    monkeypatch.chdir(tmp_path)
    problem = load_problems(Problems(source="my.jsonl"), seed=0).train[0]
    assert problem.source == "my.jsonl" and problem.id.startswith("my-") and "/" not in problem.id


def test_the_notes_say_rows_columns_counts_and_faults(tmp_path):
    source = write_sums(tmp_path / "my.jsonl", 100)
    with open(source, "a") as file:
        file.write('{"question": "0+0=", "answer": 0}\n{"question": "more", "answer": "many"}\n')
    notes = load_problems(Problems(source=source), 0, read_gold_number).notes
    counts = Counter(make_problem(f"{n}+{n}=", str(2 * n), source).split for n in range(100))
    counts[make_problem("more", "many", source).split] += 1
    in_words = ", ".join(f"{counts[split]} {split.value.replace('_', '-')}" for split in Split)
    assert notes == (
        f"{source}: 102 rows; prompt from 'question'; gold from 'answer', as it stands",
        f"101 problems: {in_words}",
        "1 row left out (line 101): the same prompt and gold as an earlier row",
        "1 row kept (line 102): a gold that the check cannot read, so every answer would stay unscored",
        f"used: {in_words} (the recipe asks for at most 4,096, 256, 256)",
    )


def test_a_file_without_one_usable_row_says_why(tmp_path):
    (tmp_path / "my.jsonl").write_text('{"question": "", "answer": 1}\n{"question": "a", "answer": ""}\n')
    with pytest.raises(RecipeError) as error:
        read_source(str(tmp_path / "my.jsonl"), {})
    assert "not one of its rows can be used. prompt from 'question'; gold from 'answer'" in str(error.value)
    assert "1 row left out (line 1): no prompt; 1 row left out (line 2): an empty gold answer" in str(error.value)


def test_unknown_option_of_a_file(tmp_path):
    with pytest.raises(RecipeError, match=r"problems\.options\.promt: unknown key\. Did you mean 'prompt'"):
        read_source(write_sums(tmp_path / "my.jsonl", 3), {"promt": "question"})
    with pytest.raises(RecipeError, match=r"problems\.options\.split: unknown key"):
        read_source(write_sums(tmp_path / "my.jsonl", 3), {"split": "train"})


@pytest.mark.parametrize(
    ("name", "rows", "problems", "unreadable", "words"),
    [
        ("gsm8k_test.jsonl", 1319, 1319, 0, "prompt from 'question'; gold from 'answer', the text after ####"),
        ("gsm8k_train.jsonl", 7473, 7473, 0, "prompt from 'question'; gold from 'answer', the text after ####"),
        (
            "svamp_test.jsonl",
            1000,
            1000,
            0,
            "prompt from 'Body' and 'Question', one below the other; gold from 'Answer'",
        ),
        ("mawps_singleop.jsonl", 562, 531, 0, "prompt from 'input'; gold from 'target', as it stands"),
        (
            "minerva_math_test.jsonl",
            272,
            272,
            142,
            "prompt from 'problem'; gold from 'solution', the content of the last",
        ),
    ],
)
def test_known_data_sets_load(name, rows, problems, unreadable, words):
    source = read_source(str(shared(f"data/{name}")), {}, read_gold_number)
    assert (source.rows, len(source.problems)) == (rows, problems)
    assert source.shape.startswith(words)
    found = {finding.kind: len(finding.numbers) for finding in source.findings}
    assert found.get("unreadable_gold", 0) == unreadable
    assert found.get("duplicate", 0) == rows - problems
    assert set(found) <= {"unreadable_gold", "duplicate"}


def test_known_programming_problems_are_refused():
    with pytest.raises(RecipeError, match="programming problems, judged by running tests, are not read yet"):
        read_source(str(shared("data/HumanEval.jsonl.gz")), {})


def test_gsm8k_loads_and_lints_within_a_second():
    path = str(shared("data/gsm8k_test.jsonl"))
    start = time.process_time()
    read_source(path, {}, read_gold_number)
    assert time.process_time() - start < 1.0


def test_the_template_reaches_every_prompt_and_leaves_ids_and_splits(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text("".join(f'{{"question": "{n}+{n}", "answer": "{2 * n}"}}\n' for n in range(40)))
    wanted = {"source": str(file), "validation": 0, "held_out": 0}
    plain = load_problems(Problems(**wanted), 0)
    asked = load_problems(Problems(**wanted, template="What is {prompt}?"), 0)
    assert [p.id for p in asked.train] == [p.id for p in plain.train]
    assert [p.prompt for p in asked.train] == [f"What is {p.prompt}?" for p in plain.train]


def test_a_template_without_a_place_for_the_problem_is_refused():
    with pytest.raises(RecipeError, match=r"template: \{prompt\} has to stand where the problem goes"):
        validate(Problems, {"template": "What is it?"}, "problems")
