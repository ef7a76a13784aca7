import json
import subprocess
import sys
from dataclasses import replace
from decimal import getcontext
from itertools import islice

import pytest

from earned.errors import RecipeError
from earned.problems.evaluation_set import evaluation_set
from earned.problems.few_shot import FewShot, read_examples
from earned.problems.reasoning_gym_problems import CHUNK, plain, stream
from earned.problems.sources import load_problems
from earned.problems.splits import make_problem
from earned.recipe import Problems

pytest.importorskip("reasoning_gym")


def some(count, name="chain_sum", seed=0, **options):
    return list(islice(stream(name, options, seed), count))


def test_problems_are_what_the_library_makes_with_the_options():
    for problem in some(50, min_terms=2, max_terms=2, max_digits=1):
        entry = problem.columns["entry"]
        assert entry["metadata"]["num_terms"] == 2
        assert (problem.prompt, problem.gold) == (entry["question"], entry["answer"])
        assert problem.columns["dataset"] == "chain_sum"
        assert problem.columns["options"] == {"min_terms": 2, "max_terms": 2, "max_digits": 1}
        assert problem.source == "reasoning_gym:chain_sum" and problem.id.startswith("reasoning_gym:chain_sum-")
        assert json.loads(json.dumps(problem.columns)), "a reward of the user's own gets them as JSON"


def test_a_recipe_gets_disjoint_splits_of_as_many_as_it_asks_for():
    table = Problems(source="reasoning_gym:chain_sum", train=600, validation=80, held_out=80)
    first, again, other = (load_problems(table, seed) for seed in (0, 0, 1))
    assert first == again and first.train != other.train
    assert (len(first.train), len(first.validation), len(first.held_out)) == (600, 80, 80)
    trained = {problem.prompt for problem in first.train + other.train}
    assert not trained & {problem.prompt for problem in first.validation + other.held_out}


def test_the_stream_goes_on_with_other_seeds_after_a_data_set():
    problems = some(3 * CHUNK, name="gcd")
    first, second, third = (problems[n : n + CHUNK] for n in (0, CHUNK, 2 * CHUNK))
    assert len({problem.id for problem in problems}) > 2.9 * CHUNK
    assert first[0] != second[0] != third[0]


def test_a_small_source_ends_with_a_sentence_and_an_evaluation_takes_what_there_is():
    options = {"min_terms": 2, "max_terms": 2, "max_digits": 1}
    table = Problems(source="reasoning_gym:chain_sum", options=options, train=500, validation=0, held_out=0)
    with pytest.raises(RecipeError, match=r"the source has too few problems: found 1[0-9]{2} of 500 train"):
        load_problems(table, 0)
    found = evaluation_set(Problems(source="reasoning_gym:chain_sum", options=options, held_out=256), 0)
    assert 10 < len(found.held_out) < 60


def test_the_question_alone_decides_where_a_problem_with_many_solutions_goes():
    for name, shown in (("word_ladder", True), ("rubiks_cube", False)):
        for problem in some(5, name=name):
            assert problem == replace(
                make_problem(problem.prompt, None, problem.source, problem.columns), gold=problem.gold
            )
            assert (problem.gold is not None) == shown


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("chain_sums", {}, "problems.source: reasoning-gym has no data set 'chain_sums'. Did you mean 'chain_sum'?"),
        ("zzz", {}, "problems.source: reasoning-gym has no data set 'zzz'. There are ab, acre, "),
        ("composite", {}, "problems.source: reasoning-gym has no data set 'composite'."),
        ("chain_sum", {"min_term": 2}, "problems.options.min_term: unknown key. Did you mean 'min_terms'?"),
        ("chain_sum", {"colour": 2}, "problems.options.colour: unknown key. Known here: min_terms, max_terms, "),
        ("chain_sum", {"seed": 2}, "problems.options.seed: no option here: it follows from the seed of the run"),
        ("chain_sum", {"size": 2}, "problems.options.size: no option here: problems.train, problems.validation"),
        (
            "chain_sum",
            {"min_terms": 9},
            "problems.options: reasoning-gym makes no chain_sum with {'min_terms': 9}: AssertionError: "
            "max_terms must be >= min_terms",
        ),
        (
            "chain_sum",
            {"min_terms": "two"},
            "problems.options: reasoning-gym makes no chain_sum with {'min_terms': 'two'}",
        ),
    ],
)
def test_mistakes_are_sentences(name, options, message):
    with pytest.raises(RecipeError) as error:
        load_problems(Problems(source=f"reasoning_gym:{name}", options=options), 0)
    assert str(error.value).startswith(message)


def test_there_are_no_worked_examples_to_read():
    with pytest.raises(RecipeError, match="'reasoning_gym:gcd' is built in and holds no worked answers"):
        read_examples(FewShot(source="reasoning_gym:gcd"))


def test_tuples_and_whole_number_keys_of_an_entry_stay():
    assert plain({1: (2, [3.5, None, True])}) == {1: (2, [3.5, None, True])}
    entry = some(1, name="rearc")[0].columns["entry"]
    assert isinstance(entry["metadata"]["output"], tuple), "which the library's scorer compares with"


def test_what_a_data_set_prints_does_not_reach_the_output(capsys):
    some(30, name="codeio")
    assert capsys.readouterr().out == ""


def test_without_the_library_the_extra_is_named():
    program = """
import sys
sys.modules["reasoning_gym"] = None
from earned.cli.main import main
main(["problems", "reasoning_gym:chain_sum"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "reasoning_gym:chain_sum needs reasoning-gym, which comes with the extra `puzzles`" in done.stderr
    assert 'pip install "earned[puzzles]"' in done.stderr


def test_what_a_data_set_does_to_the_precision_of_decimals_stays_with_it():
    before = getcontext().prec
    some(1, "decimal_arithmetic")
    assert getcontext().prec == before
