import json
from pathlib import Path

import pytest
from tests.shared_data import shared

from earned.errors import RecipeError
from earned.problems.evaluation_set import evaluation_set, shown, trained_on
from earned.problems.few_shot import FewShot, in_template, read_examples
from earned.problems.sources import load_problems, read_source
from earned.problems.splits import id_hash
from earned.recipe import Problems
from earned.rewards.number import read_gold_number
from earned.vocabulary import Example, Problem, Split


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def hundred(tmp_path):
    return write(tmp_path / "my.jsonl", [{"question": f"{n}+{n}=", "answer": 2 * n} for n in range(100)])


def test_every_usable_row_of_a_file_is_measured(hundred):
    """A run would report on a tenth of them."""
    with open(hundred, "a") as file:
        file.write('{"question": "0+0=", "answer": 0}\n{"question": "more", "answer": "many"}\n')
    chosen = evaluation_set(Problems(source=hundred), seed=0, parse=read_gold_number)
    assert (len(chosen.train), len(chosen.validation), len(chosen.held_out)) == (0, 0, 101)
    assert {problem.split for problem in chosen.held_out} == {Split.HELD_OUT}
    assert chosen.notes == (
        f"{hundred}: 102 rows; prompt from 'question'; gold from 'answer', as it stands",
        "1 row left out (line 101): the same prompt and gold as an earlier row",
        "1 row kept (line 102): a gold that the check cannot read, so every answer would stay unscored",
    )
    assert 0 < len(load_problems(Problems(source=hundred), seed=0).held_out) < 30


def test_a_limit_takes_a_subset_that_neither_seed_nor_order_changes(hundred):
    once = evaluation_set(Problems(source=hundred), seed=0, limit=20)
    assert len(once.held_out) == 20 and once.notes[-1] == "measured: 20 of 100 problems"
    lines = Path(hundred).read_text().splitlines(keepends=True)
    Path(hundred).write_text("".join(reversed(lines)))
    again = evaluation_set(Problems(source=hundred), seed=7, limit=20)
    assert once.held_out == tuple(reversed(again.held_out)), "problems stay in the order of the file"
    assert {problem.prompt for problem in once.held_out} != {f"{n}+{n}=" for n in range(20)}, "not just the first"
    assert {problem.split for problem in read_source(hundred, {}).problems if problem.id in set(ids(once))} != {
        Split.HELD_OUT
    }, "of all splits of a run"
    assert evaluation_set(Problems(source=hundred), seed=0, limit=500).notes == once.notes[:-1]


def ids(problems):
    return [problem.id for problem in problems.held_out]


def test_held_out_problems_of_a_built_in():
    wanted = Problems(held_out=6)
    assert evaluation_set(wanted, seed=3).held_out == load_problems(wanted, seed=3).held_out
    assert ids(evaluation_set(wanted, seed=3, limit=4)) == ids(evaluation_set(wanted, seed=3))[:4]
    assert len(evaluation_set(Problems(), seed=0).held_out) == 256


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(hundred, limit):
    with pytest.raises(RecipeError, match=f"limit: at least 1 problem, not {limit}"):
        evaluation_set(Problems(source=hundred), seed=0, limit=limit)


def test_what_was_trained_on_is_left_out_whatever_the_file_is_called(hundred, tmp_path):
    known = [problem.id for problem in read_source(hundred, {}).problems if problem.split is not Split.HELD_OUT]
    rows = [{"prompt": f"{n} + {n} = ", "gold": str(2 * n)} for n in range(100)]
    spaced = write(tmp_path / "spaced.jsonl", rows)
    copy = write(tmp_path / "a-copy.jsonl", [{"prompt": f" {n}+{n}=", "gold": str(2 * n)} for n in range(100)])
    for source, expected in ((hundred, 100 - len(known)), (copy, 100 - len(known)), (spaced, 100)):
        chosen = evaluation_set(Problems(source=source), seed=0, exclusions=[trained_on("a", known)])
        assert len(chosen.held_out) == expected, "spaces around a text change nothing, spaces inside do"
        assert not {id_hash(each) for each in ids(chosen)} & {id_hash(each) for each in known}
    assert 70 < len(known) < 100
    limited = evaluation_set(Problems(source=copy), seed=0, limit=5, exclusions=[trained_on("a", known)])
    assert limited.notes[-2:] == (
        f"{len(known)} problems left out: the run a trained on them or chose by them",
        f"measured: 5 of {100 - len(known)} problems",
    )


def test_nothing_left_is_an_error(hundred):
    known = [problem.id for problem in read_source(hundred, {}).problems]
    with pytest.raises(RecipeError, match="nothing is left to evaluate: 100 problems left out: the run a trained on"):
        evaluation_set(Problems(source=hundred), seed=0, exclusions=[trained_on("a", known)])


def test_an_example_is_not_asked(hundred, tmp_path):
    """Neither with another gold, nor in other spacing, nor when the problems are asked in the words of a template."""
    worked = write(tmp_path / "worked.jsonl", [{"question": f"{n}+{n}= ", "answer": f"#### {n}"} for n in (3, 500)])
    examples = read_examples(FewShot(source=worked, shots=2))
    wanted = Problems(source=hundred, template="What is {prompt}?")
    chosen = evaluation_set(wanted, seed=0, exclusions=[shown(examples)])
    prompts = {problem.prompt for problem in chosen.held_out}
    assert len(prompts) == 99 and "What is 3+3=?" not in prompts and "What is 4+4=?" in prompts
    assert chosen.notes[-1] == "1 problem left out: the worked examples show them"
    assert len(evaluation_set(wanted, seed=0, exclusions=[shown(())]).held_out) == 100


def test_examples_are_the_first_usable_rows_with_their_whole_answers(tmp_path):
    rows = [
        {"question": "", "answer": "nobody asked"},
        {"question": "48 and half of it", "answer": "48/2=24\n48+24=72\n#### 72\n"},
        {"question": "7", "answer": ["7.0"]},
        {"question": "whose?", "answer": {"name": "x"}},
        {"question": "0.5*2=", "answer": 1.0},
    ]
    worked = write(tmp_path / "worked.jsonl", rows)
    examples = read_examples(FewShot(source=worked, shots=3))
    assert [(example.problem.prompt, example.answer) for example in examples] == [
        ("48 and half of it", "48/2=24\n48+24=72\n#### 72"),
        ("7", "7.0"),
        ("0.5*2=", "1"),
    ]
    assert examples[0].problem.gold == "72"
    assert read_examples(FewShot(source=worked, shots=1)) == examples[:1]
    with pytest.raises(
        RecipeError, match=r"few_shot\.shots: 4 wanted, but .* has only 3 problems with an answer as te"
    ):
        read_examples(FewShot(source=worked))


def test_examples_from_columns_that_the_user_names(tmp_path):
    worked = write(tmp_path / "worked.jsonl", [{"q": "1+1=", "steps": {"long": "1+1=2;A2", "short": "2"}}])
    options = {"prompt": "q", "answer": "steps.long"}
    (example,) = read_examples(FewShot(source=worked, shots=1, options=options))
    assert (example.problem.prompt, example.answer) == ("1+1=", "1+1=2;A2")
    with pytest.raises(RecipeError, match=r"few_shot: .*no column is known as a prompt"):
        read_examples(FewShot(source=worked, shots=1))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere.jsonl", r"few_shot: nowhere\.jsonl: no such file"),
        ("sums", r"few_shot\.source: 'sums' is built in and holds no worked answers; name a file"),
        ("some", r"few_shot: problems\.source: unknown source 'some'"),
    ],
)
def test_examples_that_cannot_be_read(source, message):
    with pytest.raises(RecipeError, match=message):
        read_examples(FewShot(source=source))


def test_the_template_reaches_the_examples():
    problem = Problem(id="e-1", prompt="1+1=", gold="2", source="own", split=Split.TRAIN)
    (example,) = in_template([Example(problem=problem, answer="#### 2")], "What is {prompt}?")
    assert (example.problem.prompt, example.problem.id, example.answer) == ("What is 1+1=?", "e-1", "#### 2")


def test_gsm8k_is_measured_whole_after_worked_examples():
    source = str(shared("data/gsm8k_test.jsonl"))
    examples = read_examples(FewShot(source=str(shared("data/gsm8k_train.jsonl"))))
    assert [example.answer.rpartition("#### ")[2] for example in examples] == [e.problem.gold for e in examples]
    assert examples[0].answer.endswith("\n#### 72") and "48" in examples[0].answer
    chosen = evaluation_set(Problems(source=source), 0, parse=read_gold_number, exclusions=[shown(examples)])
    assert len(chosen.held_out) == 1319 and len(chosen.notes) == 1
    assert len(evaluation_set(Problems(source=source), 0, limit=100).held_out) == 100
