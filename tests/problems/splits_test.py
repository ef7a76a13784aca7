from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earned.errors import RecipeError
from earned.problems.sources import load_problems
from earned.problems.splits import choose_splits, make_problem, place_of, problem_hash
from earned.problems.sums import SumsOptions, generate
from earned.recipe import Problems
from earned.vocabulary import Split


def ids(problems):
    return {problem.id for problem in problems}


def test_split_of_a_problem_never_changes():
    # printf '47+58+19=\n124' | b2sum -l 128; a changed hash would move problems between the splits of old and new runs.
    assert problem_hash("47+58+19=", "124") == "4a517ceb46c6e36572cf9077005dec08"
    assert make_problem("47+58+19=", "124", "sums").split is Split.TRAIN


@pytest.mark.parametrize(
    "other", ["  what is\t2+2?", "WHAT IS 2+2?", "What is\u00a02+2?", "What is ２+２?", "What\n\nis 2+2? "]
)
def test_the_same_text_in_other_clothes_is_the_same_problem(other):
    assert place_of(other, "4") == place_of("What is 2+2?", "4")


def test_gold_counts_and_no_gold_is_not_an_empty_gold():
    hashes = {problem_hash("p", "1"), problem_hash("p", "2"), problem_hash("p", ""), problem_hash("p", None)}
    assert len(hashes) == 4
    assert problem_hash("a b", "c") != problem_hash("a", "b c")


@given(st.text(), st.none() | st.text())
def test_place_is_within_the_unit_interval_and_survives_normalising(prompt, gold):
    assert 0 <= place_of(prompt, gold) < 1
    assert place_of(f" {prompt}\n", gold) == place_of(prompt, gold)


def test_proportions():
    problems = generate(SumsOptions(digits=4), seed=1, count=10_000)
    counts = Counter(problem.split for problem in problems)
    assert abs(counts[Split.TRAIN] / 10_000 - 0.8) < 0.015
    assert abs(counts[Split.VALIDATION] / 10_000 - 0.1) < 0.012
    assert abs(counts[Split.HELD_OUT] / 10_000 - 0.1) < 0.012


def test_splits_are_disjoint_whatever_the_seed():
    # 1,000 different problems in all, so the seeds are certain to meet the same ones.
    table = Problems(source="sums", options={"terms": [3, 3], "digits": 1}, train=500, validation=60, held_out=60)
    sets = [load_problems(table, seed) for seed in range(4)]
    trained = set().union(*(ids(each.train) for each in sets))
    validated = set().union(*(ids(each.validation) for each in sets))
    reported = set().union(*(ids(each.held_out) for each in sets))
    assert ids(sets[0].train) != ids(sets[1].train)
    assert ids(sets[0].train) & ids(sets[1].train)
    assert not trained & validated and not trained & reported and not validated & reported


def test_counts_are_met_and_duplicates_dropped():
    drawn = generate(SumsOptions(), seed=0, count=300)
    once = choose_splits(drawn, train=100, validation=10, held_out=10)
    assert (len(once.train), len(once.validation), len(once.held_out)) == (100, 10, 10)
    assert choose_splits([*drawn[:50], *drawn], train=100, validation=10, held_out=10) == once


def test_default_recipe_loads_the_same_problems_each_time():
    table = Problems()
    problems = load_problems(table, seed=0)
    assert (len(problems.train), len(problems.validation), len(problems.held_out)) == (4096, 256, 256)
    assert load_problems(table, seed=0) == problems
    assert problems.train[0].id.startswith("sums-") and len(problems.train[0].id) == len("sums-") + 12


def test_finite_source_that_is_too_small_says_how_many_there_are():
    drawn = [make_problem(f"{n}", "0", "list") for n in range(40)]
    counts = Counter(problem.split for problem in drawn)
    with pytest.raises(RecipeError) as error:
        choose_splits(drawn, train=100, validation=0, held_out=0)
    assert f"problems.train: the source has too few problems: found {counts[Split.TRAIN]} of 100 train" in str(
        error.value
    )


def test_endless_source_with_few_problems_stops():
    options = {"terms": [2, 2], "digits": 1}
    with pytest.raises(RecipeError, match="among 100 different ones") as error:
        load_problems(Problems(options=options, train=90, validation=50, held_out=5), seed=0)
    assert str(error.value).startswith("problems.train and problems.validation: ")


def test_endless_source_with_few_problems_gives_all_of_them():
    everything = [make_problem(f"{a}+{b}=", str(a + b), "sums") for a in range(10) for b in range(10)]
    counts = Counter(problem.split.value for problem in everything)
    problems = load_problems(Problems(options={"terms": [2, 2], "digits": 1}, **counts), seed=7)
    assert ids(problems.train + problems.validation + problems.held_out) == ids(everything)


def test_empty_source():
    with pytest.raises(RecipeError, match="found 0 of 1 train"):
        choose_splits([], train=1, validation=0, held_out=0)


def test_unknown_source_and_option():
    with pytest.raises(RecipeError) as error:
        load_problems(Problems(source="sum"), seed=0)
    assert str(error.value).startswith(
        "problems.source: unknown source 'sum'. Allowed: 'sums', 'addition', 'countdown', 'reasoning_gym:NAME', a file"
    )
    assert str(error.value).endswith(" Did you mean 'sums'?")
    with pytest.raises(RecipeError, match=r"^problems\.options\.term: unknown key"):
        load_problems(Problems(options={"term": [3, 3]}), seed=0)
