"""`earned eval` on files: what is measured, what is left out, and what worked examples change."""

import json
from pathlib import Path

import pytest
import torch
from tests.own_file import lay_out

from earned import api
from earned.cli.main import main
from earned.errors import RecipeError
from earned.measure import _first_answers, evaluate_model
from earned.policy.load import save_policy
from earned.policy.tiny import EOS_ID, untrained_policy
from earned.pretrain_recipe import PretrainModel
from earned.problems.few_shot import FewShot
from earned.problems.splits import id_hash, make_problem
from earned.recipe import Problems, Recipe
from earned.recipe_file import load
from earned.records.reader import RunReader
from earned.rewards.compose import Part, Rewarder
from earned.rewards.number import NumberCheck
from earned.rewards.verdict import PerAttempt
from earned.rollouts.engine import SamplingSettings
from earned.vocabulary import Attempt, Split

BRIEF = SamplingSettings(group_size=1, temperature=1.0, max_new_tokens=4)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def sums(numbers):
    return [{"question": f"{n}+{n}=", "answer": str(2 * n)} for n in numbers]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """Two runs, the second of which goes on from the first with other problems, and a file with all of theirs."""
    folder = tmp_path_factory.mktemp("workplace")
    write(folder / "my.jsonl", sums(range(10, 80)))
    write(folder / "more.jsonl", sums(range(80, 150)))
    write(folder / "all.jsonl", sums(range(10, 160)))
    worked = [("10+10=", "#### 20"), ("1+2=", "It is \\boxed{3}. Wait, is it?")]
    write(folder / "worked.jsonl", [{"question": question, "answer": answer} for question, answer in worked])
    lay_out(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("EARNED_HOME", "EARNED_SHARED"):
            patch.delenv(name, raising=False)
        api.train(load(Recipe, folder / "my.toml"), api.RunOptions(name="a"))
        flags = {"model": "runs/a/checkpoints/step_000001", "problems.source": "more.jsonl"}
        api.train(load(Recipe, folder / "my.toml", flags), api.RunOptions(name="b"))
    return folder


@pytest.fixture(autouse=True)
def inside(workplace, monkeypatch):
    monkeypatch.chdir(workplace)


def measured(model, source, **options):
    return evaluate_model(model, Problems(source=source), BRIEF, **options)


def hashes(run, *splits):
    problems = RunReader(Path("runs") / run).problems()
    return {id_hash(problem.id) for problem in problems if problem.split in splits}


def test_a_run_is_not_measured_on_what_it_trained_on_or_chose_by():
    """The file has another name than that of the run; a model of which nothing is known is measured on all of it."""
    found = measured("runs/a/checkpoints/step_000001", "all.jsonl")
    known = hashes("a", Split.TRAIN, Split.VALIDATION)
    names = {id_hash(problem.id) for problem in found.problems}
    assert len(names) == found.result.problems == 150 - len(known) and not names & known
    assert hashes("a", Split.HELD_OUT) <= names and len(known) > 40
    assert found.notes[-1] == f"{len(known)} problems left out: the run a trained on them or chose by them"
    unknown = measured("untrained", "all.jsonl")
    assert unknown.result.problems == 150 and len(unknown.notes) == 1 and "150 rows" in unknown.notes[0]


def test_nor_on_what_the_run_before_it_trained_on():
    found = measured("runs/b/checkpoints/step_000001", "all.jsonl")
    known = {run: hashes(run, Split.TRAIN, Split.VALIDATION) for run in ("a", "b")}
    assert found.result.problems == 150 - len(known["a"] | known["b"])
    assert found.notes[1:] == tuple(
        f"{len(known[run])} problems left out: the run {run} trained on them or chose by them" for run in ("b", "a")
    )


def test_when_nothing_is_left_it_says_so(workplace):
    train = RunReader(workplace / "runs" / "a").problems(Split.TRAIN)
    write(workplace / "train.jsonl", [{"prompt": problem.prompt, "gold": problem.gold} for problem in train])
    with pytest.raises(RecipeError, match=f"nothing is left to evaluate: {len(train)} problems left out: the run a tr"):
        measured("runs/a/checkpoints/step_000001", "train.jsonl")
    assert measured("untrained", "train.jsonl", limit=3).result.problems == 3


def test_examples_are_left_out_and_doubted_where_the_check_finds_no_answer_in_them():
    found = measured("untrained", "all.jsonl", limit=149, few_shot=FewShot(source="worked.jsonl", shots=2))
    assert found.shots == 2 and "10+10=" not in {problem.prompt for problem in found.problems}
    left_out, doubt, goes_on = found.notes[1:]
    assert left_out == "1 problem left out: the worked examples show them"
    assert (
        doubt.startswith("the check 'number' takes 1 of 2 worked answers for wrong")
        and "takes the answer back" in doubt
    )
    assert goes_on.startswith("the model has no chat template")
    fine = measured("untrained", "all.jsonl", limit=149, few_shot=FewShot(source="worked.jsonl", shots=1))
    assert not any("for wrong" in note for note in fine.notes)


def test_what_could_not_be_scored_is_said(workplace):
    write(workplace / "odd.jsonl", [*sums(range(3)), {"question": "how many?", "answer": "many"}])
    found = measured("untrained", "odd.jsonl")
    assert (found.result.problems, len(found.problems)) == (3, 4)
    assert found.notes[-1] == "1 attempt at 1 problem could not be scored and count in no accuracy; 1 problem left out"


def test_answers_that_nobody_can_read_are_refused_before_anything_is_sampled(workplace):
    write(workplace / "words.jsonl", [{"question": "which fruit?", "answer": "pear"}])
    with pytest.raises(RecipeError, match="not one of its problems has an answer that the check 'number' can read"):
        measured("no such model", "words.jsonl")


def test_an_answer_before_a_new_question_was_not_cut_off():
    problem = make_problem("2+2=", "4", "x")
    texts = {"goes on": " #### 4\n\nQuestion: 3+3=\nAnswer: 3+", "ends": " #### 4"}
    attempts = {
        name: Attempt(problem=problem, text=text, truncated=True, seed=0, step=0, rollout_id=name)
        for name, text in texts.items()
    }
    rewarder = Rewarder((Part(name="accuracy", weight=1.0, check=PerAttempt(NumberCheck())),))
    judged = _first_answers(rewarder.score_all)(attempts)
    assert (judged["goes on"].value, judged["ends"].value) == (1.0, 0.0)


@pytest.fixture(scope="module")
def talkative(workplace):
    """A model that answers one question, after one example, and goes on to ask and answer another."""
    policy = untrained_policy(PretrainModel(hidden_size=64, layers=2, heads=2, intermediate_size=128), seed=0)
    asked = "Question: 1+1=\nAnswer: A2\n\nQuestion: 3+4=\nAnswer:"
    prompt = policy.tokenizer(asked)["input_ids"]
    ids = torch.tensor([[*prompt, *policy.tokenizer(" A7\n\nQuestion: 9=\nAnswer: A9")["input_ids"][1:], EOS_ID]])
    labels = ids.clone()
    labels[:, : len(prompt)] = -100
    optimizer = torch.optim.AdamW(policy.parameters().values(), lr=3e-3)
    for _ in range(120):
        optimizer.zero_grad()
        loss = policy.model(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
    assert loss < 0.05
    save_policy(policy, workplace / "talkative")
    write(workplace / "one.jsonl", [{"question": "3+4=", "answer": "7"}])
    write(workplace / "shown.jsonl", [{"question": "1+1=", "answer": "A2"}])
    return str(workplace / "talkative")


def test_what_follows_a_question_of_its_own_is_not_judged_after_examples(talkative):
    """The same ids without examples, by a template: there the last answer counts, which is wrong."""
    settings = SamplingSettings(group_size=2, temperature=0.01, max_new_tokens=40)
    few_shot = FewShot(source="shown.jsonl", shots=1)
    after_examples = evaluate_model(talkative, Problems(source="one.jsonl"), settings, few_shot=few_shot)
    template = "Question: 1+1=\nAnswer: A2\n\nQuestion: {prompt}\nAnswer:"
    plain = evaluate_model(talkative, Problems(source="one.jsonl", template=template), settings)
    assert (after_examples.result.greedy, after_examples.result.mean, after_examples.result.maj_at_k) == (1, 1, 1)
    assert (plain.result.greedy, plain.result.mean) == (0, 0)
    assert after_examples.result.length_mean == plain.result.length_mean, "the completions are the same"


EVAL = ("eval", "untrained", "--problems", "odd.jsonl", "--samples", "2", "--max-new-tokens", "4")


def test_a_table_has_a_row_about_every_problem(workplace, capsys):
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `data` is not installed")
    write(workplace / "odd.jsonl", [*sums(range(3)), {"question": "how many?", "answer": "many"}])
    main([*EVAL, "--table", "table.parquet", "--json"])
    row = json.loads(capsys.readouterr().out)
    rows = parquet.read_table("table.parquet").to_pylist()
    assert [each["prompt"] for each in rows] == ["0+0=", "1+1=", "2+2=", "how many?"]
    assert [(each["samples"], each["scored"]) for each in rows] == [(2, 2)] * 3 + [(2, 0)]
    assert [each["mean"] for each in rows][3] is None and rows[3]["greedy"] is None
    assert row["mean"] == pytest.approx(sum(each["mean"] for each in rows[:3]) / 3) and row["problems"] == 3
    (workplace / "table.parquet").unlink()


def test_a_number_that_is_none_is_null_in_json_and_a_dash_on_the_screen(workplace, capsys):
    """A function of the user's reads no answers, so there is no majority; this one judges no greedy completion."""
    (workplace / "own.py").write_text(
        "def reward(completions, **kwargs):\n"
        "    return [float('nan')] * len(completions) if len(completions) == 3 else [1.0] * len(completions)\n"
    )
    write(workplace / "three.jsonl", sums(range(3)))
    words = ("eval", "untrained", "--problems", "three.jsonl", "--max-new-tokens", "4", "--check", "own.py:reward")
    main([*words, "--json"])
    row = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (row["mean"], row["greedy"], row["maj_at_k"]) == (1.0, None, None)
    main([*words])
    out = capsys.readouterr().out
    assert "greedy    -\n" in out and "maj@4     -\n" in out
