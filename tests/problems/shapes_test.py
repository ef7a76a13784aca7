import pytest

from earned.errors import RecipeError
from earned.problems.files import table_of_objects
from earned.problems.shapes import ColumnOptions, entries, in_words, sniff


def read(rows, **options):
    table = table_of_objects("my.jsonl", rows)
    shape = sniff(table, ColumnOptions(**options))
    found = entries(table, shape)
    return found, in_words(shape, found)


SHAPES = [
    (
        {"question": "2+2?", "answer": "2+2 = 4\n#### 4"},
        "2+2?",
        "4",
        "prompt from 'question'; gold from 'answer', the text after ####",
    ),
    (
        {"problem": "2+2?", "solution": "so \\boxed{4}"},
        "2+2?",
        "4",
        "prompt from 'problem'; gold from 'solution', the content of the last \\boxed{}",
    ),
    (
        {"problem": "2+2?", "solution": "so \\boxed{5}", "answer": "4"},
        "2+2?",
        "4",
        "prompt from 'problem'; gold from 'answer', as it stands",
    ),
    (
        {"Body": "Two.", "Question": "Twice?", "Answer": 4.0, "Equation": "( 2 * 2 )"},
        "Two.\nTwice?",
        "4",
        "prompt from 'Body' and 'Question', one below the other; gold from 'Answer', as it stands",
    ),
    ({"input": "2+2?", "target": 4.0}, "2+2?", "4", "prompt from 'input'; gold from 'target', as it stands"),
    (
        {"instruction": "Add.", "input": "2+2", "output": "4"},
        "Add.\n2+2",
        "4",
        "prompt from 'instruction' and 'input', one below the other; gold from 'output', as it stands",
    ),
    (
        {"instruction": "Add 2+2.", "input": "", "output": "4"},
        "Add 2+2.",
        "4",
        "prompt from 'instruction' and 'input', one below the other; gold from 'output', as it stands",
    ),
    ({"prompt": "2+2?", "gold": "4"}, "2+2?", "4", "prompt from 'prompt'; gold from 'gold', as it stands"),
    ({"query": "2+2?", "final_ans": 4}, "2+2?", "4", "prompt from 'query'; gold from 'final_ans', as it stands"),
    (
        {"prompt": [{"role": "user", "content": "2+2?"}], "solution": "4"},
        "2+2?",
        "4",
        "prompt from 'prompt'; gold from 'solution', as it stands",
    ),
    (
        {
            "data_source": "x",
            "prompt": [{"role": "user", "content": "2+2?"}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": "4"},
            "extra_info": {"split": "test", "answer": "no"},
        },
        "2+2?",
        "4",
        "prompt from 'prompt'; gold from 'reward_model.ground_truth', as it stands",
    ),
    (
        {"question": "2+2?", "answer": "4", "info": "{}"},
        "2+2?",
        "4",
        "prompt from 'question'; gold from 'answer', as it stands",
    ),
    (
        {"prompt": "A poem.", "chosen": "Roses", "rejected": "No"},
        "A poem.",
        None,
        "prompt from 'prompt'; no answer column, so no gold",
    ),
    (
        {"question": "2+2?", "answer": ["4", "four"]},
        "2+2?",
        None,
        "prompt from 'question'; gold from 'answer', a list or an object",
    ),
]


@pytest.mark.parametrize(("row", "prompt", "gold", "words"), SHAPES)
def test_columns_are_recognised_and_the_choice_said(row, prompt, gold, words):
    (entry,), said = read([row])
    assert (entry.problem.prompt, entry.problem.gold, said) == (prompt, gold, words)


def test_all_columns_but_the_prompt_are_handed_on_as_they_are():
    row = {"Body": "Two.", "Question": "Twice?", "Answer": 4.0, "ID": "chal-1", "extra": {"n": [1]}}
    (entry,), _ = read([row])
    assert entry.problem.columns == {"Answer": 4.0, "ID": "chal-1", "extra": {"n": [1]}}
    assert entry.own_id == "chal-1"


def test_mixed_forms_of_gold_are_counted():
    rows = [{"question": str(n), "answer": answer} for n, answer in enumerate(["#### 1", "#### 2", "3", ""])]
    assert read(rows)[1].endswith("gold from 'answer', the text after #### (2 rows), as it stands (1 row)")


def test_columns_that_the_user_names_win():
    rows = [{"question": "wrong", "text": "2+2?", "meta": {"gold": "4"}, "answer": "5"}]
    (entry,), said = read(rows, prompt="text", answer="meta.gold")
    assert (entry.problem.prompt, entry.problem.gold) == ("2+2?", "4")
    assert said == "prompt from 'text'; gold from 'meta.gold', as it stands"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"prompt": "txt"},
            "problems.options.prompt: my.jsonl has no column 'txt'. Found: text, label. Did you mean 'text'?",
        ),
        ({"answer": "gold"}, "problems.options.answer: my.jsonl has no column 'gold'. Found: text, label."),
        ({}, "my.jsonl: no column is known as a prompt. Found: text, label. Accepted: prompt, body+question, question"),
    ],
)
def test_no_usable_column_says_what_was_found_and_what_is_accepted(options, message):
    with pytest.raises(RecipeError) as error:
        read([{"text": "2+2?", "label": "4"}], **options)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (
            [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
            "a conversation with messages of system, user",
        ),
        ([{"role": "assistant", "content": "a"}], "a conversation with messages of assistant"),
        ([], "a conversation with messages of nobody"),
        (["text"], "a conversation with messages of ?"),
        ([{"role": "user", "content": [{"type": "image"}]}], "a conversation with parts that are not text"),
        ({"text": "2+2?"}, "the prompt is an object with the keys text, not text"),
    ],
)
def test_other_conversations_are_refused_with_their_row(prompt, message):
    with pytest.raises(RecipeError) as error:
        read([{"prompt": "fine"}, {"prompt": prompt}])
    assert str(error.value).startswith("my.jsonl, row 2: ") and message in str(error.value)


def test_programming_problems_are_refused_unless_a_text_answer_is_named():
    row = {"task_id": "a/0", "prompt": "def f():", "entry_point": "f", "canonical_solution": "    pass", "test": "f()"}
    with pytest.raises(RecipeError, match=r"programming problems.*not read yet\. Found: task_id, prompt, entry_point"):
        read([row])
    (entry,), _ = read([row], answer="canonical_solution")
    assert entry.problem.gold == "pass"
    (entry,), _ = read([{**row, "answer": "7"}])
    assert entry.problem.gold == "7"
