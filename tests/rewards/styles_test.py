"""Reward functions written for other systems, in files, called in the worker pool."""

import re
from pathlib import Path

import pytest

from earned.recipe import Rewards
from earned.recipe_file import validate
from earned.rewards.compose import Rewarder
from earned.rewards.styles import RECOGNISED_BY, Style, style_of
from earned.rewards.user_reward import Resources
from earned.sandbox.workers import WorkerPool
from earned.vocabulary import Attempt, Problem, ScoreStatus, Split

PAGE = (Path(__file__).parents[2] / "docs" / "rewards.md").read_text(encoding="utf-8")
SHOWN = {name: code for name, code in re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE, re.DOTALL)}
PROMPT, GOLD = "47+58+19=", "124"

OTHERS = """
def needs_trl(completions, completion_ids, trainer_state, log_extra=None, **kwargs):
    assert completion_ids is None and trainer_state is None and log_extra is None
    assert not {"log_metric", "environments"} & set(kwargs)
    return [1.0 for _ in completions]

def tensor(queries, prompts, labels):
    import numpy
    return numpy.array([float(query.endswith(gold)) for query, gold in zip(queries, labels)])

def bare_score(solution_str, ground_truth):
    return solution_str.endswith(ground_truth)

def no_score(solution_str, **kwargs):
    return {"reward": 1.0}

def dict_in_trl(completions, **kwargs):
    return {"rewards": [1.0 for _ in completions]}

def dict_of_verl_for_one(completion):
    return {"score": 1.0}

def short_rewards(queries, **kwargs):
    return {"rewards": [1.0]}

def seen_verl(solution_str, data_source, extra_info, level):
    assert (data_source, extra_info, level) == ("gsm8k", {"level": 3, "data_source": "gsm8k"}, 3)
    return 1

def seen_info(completion, info):
    assert info == {"difficulty": 2}
    return 1

def seen_state(state):
    assert state["prompt"] == "47+58+19=" and state["answer"] == "124" and state["info"] == {"difficulty": 2}
    return float(state["completion"].endswith(state["answer"]))

def seen_states(states):
    return [float(state["completion"].endswith(state["answer"])) for state in states]

def entry_is_a_column(completions, answer, entry):
    assert entry == ["e"] * len(completions)
    return [1.0 for _ in completions]

def answers_is_a_column(completions, answers):
    assert answers == [["124", "one hundred and twenty-four"]] * len(completions)
    return [1.0 for _ in completions]

def read_answer(answer, entry):
    assert entry["metadata"] == {"difficulty": 2}
    return {"124": 1.0, None: 0.25}.get(answer, 0.0)

def with_parser(parser, completion, answer):
    return 1.0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("styles")
    for name, code in SHOWN.items():
        (folder / f"{name}.py").write_text(code)
    (folder / "others.py").write_text(OTHERS)
    return folder


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(2) as pool:
        yield pool


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def scores(pool, check, *texts, **columns):
    problem = Problem(id="p", prompt=PROMPT, gold=GOLD, source="sums", split=Split.TRAIN, columns=columns)
    attempts = {
        str(n): Attempt(problem=problem, text=text, seed=0, step=1, rollout_id=str(n)) for n, text in enumerate(texts)
    }
    rewards = validate(Rewards, {"own": {"check": check}})
    resources = Resources(pool=pool, columns=tuple(columns))
    return list(Rewarder.from_recipe(rewards, resources).score_all(attempts).values())


def function_of(name):
    return re.search(r"def (\w+)", SHOWN[name])[1]


def test_every_style_is_shown():
    shown = {style_of(re.findall(r"(\w+)(?:=\w+)?[,)]", code.partition(":\n")[0])).system for code in SHOWN.values()}
    assert shown == {style.system for _, style in RECOGNISED_BY}


@pytest.mark.parametrize("name", SHOWN)
def test_a_function_of_the_documents_pays_right_answers_and_no_others(pool, name):
    check = f"{name}.py:{function_of(name)}"
    found = scores(pool, check, "I think\nAnswer: 124", "I think\nAnswer: 125", "", "Answer: 124")
    assert [score.value for score in found] == [1.0, 0.0, 0.0, 1.0], found


@pytest.mark.parametrize("name", SHOWN)
def test_a_function_of_the_documents_is_about_six_lines(name):
    assert len(SHOWN[name].splitlines()) <= 7


@pytest.mark.parametrize(
    ("function", "columns"),
    [
        ("needs_trl", {}),
        ("seen_verl", {"level": 3, "data_source": "gsm8k"}),
        ("seen_info", {"difficulty": 2}),
        ("seen_info", {"info": {"difficulty": 2}, "level": 3}),
        ("seen_state", {"difficulty": 2}),
        ("seen_states", {}),
        ("entry_is_a_column", {"entry": "e"}),
        ("answers_is_a_column", {"answers": ["124", "one hundred and twenty-four"]}),
        ("tensor", {}),
        ("bare_score", {}),
    ],
)
def test_a_style_is_given_what_its_system_gives(pool, function, columns):
    found = scores(pool, f"others.py:{function}", "It is 124", "Answer: 124", **columns)
    assert [score.value for score in found] == [1.0, 1.0], found[0].explanation


def test_reasoning_gym_is_given_the_answer_that_was_read_and_none_where_there_is_none(pool):
    found = scores(pool, "others.py:read_answer", "Answer: 124", "It is 124 or 125", "#### 12", difficulty=2)
    assert [score.value for score in found] == [1.0, 0.25, 0.0]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("no_score", "returned {'reward': 1.0} (dict), which is no finite number"),
        ("dict_of_verl_for_one", "returned {'score': 1.0} (dict), which is no finite number"),
        ("dict_in_trl", "(dict) for 2 completions, where a list of numbers is needed"),
        ("short_rewards", "returned 1 values for 2 completions"),
    ],
)
def test_a_dict_of_another_style_is_unscored_with_a_sentence(pool, function, reason):
    found = scores(pool, f"others.py:{function}", "124", "7")
    assert {score.status for score in found} == {ScoreStatus.UNSCORED}
    assert all(reason in score.explanation for score in found)


def test_what_no_style_gives_is_refused_at_the_start(pool):
    with pytest.raises(ValueError, match=r"asks for 'parser', 'completion', 'answer', but there is no 'parser'\. It m"):
        scores(pool, "others.py:with_parser", "124")


def test_the_row_that_decides_is_the_first_and_the_last_takes_what_is_left():
    assert style_of([]) is style_of(["anything"]) is RECOGNISED_BY[-1][1]
    assert all(isinstance(style, Style) and {*style.completion_in} <= {*style.names} for _, style in RECOGNISED_BY)
