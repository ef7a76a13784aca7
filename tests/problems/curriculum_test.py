"""A curriculum by measured pass rate: cases by hand, promises over random runs, and whether it pays, with controls."""

import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from earned.errors import RecipeError, RecordError
from earned.problems.curriculum import (
    CurriculumState,
    Standing,
    Tally,
    chosen,
    standing,
    standing_metrics,
    updated,
)
from earned.problems.problem_set import ProblemSet, step_problems
from earned.randomness import generator
from earned.recipe import Curriculum, Recipe
from earned.recipe_file import to_toml, validate
from earned.records.metrics import require_declared
from earned.vocabulary import Problem, Split

SETTINGS = Curriculum()
G = 8


def problems(count):
    return tuple(Problem(id=f"p{n}", prompt=str(n), gold="0", source="list", split=Split.TRAIN) for n in range(count))


def verdicts(right, attempts=G):
    return [True] * right + [False] * (attempts - right)


def state_of(*right, step=1, visits=1):
    """Problem n was right `right[n]` times in G at each of the visits; None was never tried."""
    outcomes = {f"p{n}": verdicts(count) for n, count in enumerate(right) if count is not None}
    state = CurriculumState()
    for visit in range(visits):
        state = updated(state, outcomes, step + visit)
    return state


def ids(picked):
    return [each.id for each in picked]


# Cases by hand


def test_recent_attempts_weigh_twice_as_much_as_those_before():
    state = CurriculumState()
    for step, right in enumerate((8, 4, 0), start=1):
        state = updated(state, {"p0": verdicts(right)}, step)
    tally = state.tallies["p0"]
    assert (tally.attempts, tally.right, tally.step) == (24, 12, 3)
    assert (tally.recent_attempts, tally.recent_right) == (8 + 4 + 2, 0 + 2 + 2)
    assert tally.rate == 4 / 14, "the plain mean would be a half"


def test_what_could_not_be_scored_is_no_measurement():
    state = updated(updated(CurriculumState(), {"p0": verdicts(4)}, 1), {"p0": [], "p1": []}, 2)
    assert state.tallies["p0"] == Tally(attempts=8, right=4, recent_attempts=8, recent_right=4, step=2)
    assert state.tallies["p1"] == Tally(step=2)
    assert standing(state.tallies["p1"], SETTINGS) is Standing.OUTSIDE, (
        "an unscored problem does not come at once again"
    )


@pytest.mark.parametrize(
    ("right", "attempts", "expected"),
    [
        (1, 10, Standing.PREFERRED),
        (5, 10, Standing.PREFERRED),
        (8, 9, Standing.PREFERRED),
        (9, 10, Standing.RETIRED),
        (10, 10, Standing.RETIRED),
        (1, 11, Standing.OUTSIDE),
        (1, 1000, Standing.OUTSIDE),
        (0, 31, Standing.OUTSIDE),
        (0, 32, Standing.PARKED),
        (0, 0, Standing.OUTSIDE),
    ],
)
def test_standings_at_the_bounds(right, attempts, expected):
    state = updated(CurriculumState(), {"p": verdicts(right, attempts)}, 1)
    assert standing(state.tallies["p"], SETTINGS) is expected
    assert standing(None, SETTINGS) is Standing.UNTRIED


def test_a_problem_that_was_solved_once_is_never_parked():
    state = updated(CurriculumState(), {"p": verdicts(1)}, 1)
    for step in range(2, 60):
        state = updated(state, {"p": verdicts(0)}, step)
    assert state.tallies["p"].rate < 1e-9 and standing(state.tallies["p"], SETTINGS) is Standing.OUTSIDE


def test_between_the_preferred_and_the_retired_there_may_be_room():
    tally = updated(CurriculumState(), {"p": verdicts(7)}, 1).tallies["p"]
    assert standing(tally, Curriculum(prefer=(0.1, 0.8), retire=0.95)) is Standing.OUTSIDE


def test_preferred_come_before_what_is_given_up():
    """4 preferred, 4 retired, 4 parked; no re-checks, so the preferred and nothing else."""
    state = state_of(*[4] * 4, *[8] * 4, *[0] * 4, visits=4)
    picked = chosen(problems(12), state, 0, 9, 4, Curriculum(recheck_share=0.0))
    assert sorted(ids(picked)) == ["p0", "p1", "p2", "p3"]


def test_a_share_of_the_slots_rechecks_the_longest_untried():
    state = state_of(*[4] * 20, *[8] * 3, *[0] * 3, visits=4)
    state = updated(state, {"p20": verdicts(8), "p24": verdicts(0)}, 7)
    stale = {"p21", "p22", "p23", "p25"}
    for step in range(8, 30):
        given_up = set(ids(chosen(problems(26), state, 0, step, 10, SETTINGS))) - {f"p{n}" for n in range(20)}
        assert len(given_up) == 1 and given_up < stale
    assert {
        each for step in range(8, 60) for each in ids(chosen(problems(26), state, 0, step, 10, SETTINGS))
    } >= stale, "among those tried at the same step chance decides"


def test_small_steps_recheck_now_and_then():
    """A tenth of 4 slots is two re-checks in five steps."""
    state = state_of(*[4] * 10, *[8] * 10)
    old = {f"p{n}" for n in range(10, 20)}
    counts = [len(old & set(ids(chosen(problems(20), state, 0, step, 4, SETTINGS)))) for step in range(1, 101)]
    assert set(counts) == {0, 1} and sum(counts) == 40


def test_every_problem_given_up_is_rechecked_in_turn():
    everything, state = problems(40), state_of(*[4] * 20, *[8] * 10, *[0] * 10, visits=4)
    seen = Counter()
    for step in range(5, 105):
        picked = ids(chosen(everything, state, 0, step, 10, SETTINGS))
        outcomes = {each: verdicts(4 if int(each[1:]) < 20 else 8 if int(each[1:]) < 30 else 0) for each in picked}
        state = updated(state, outcomes, step)
        seen.update(picked)
    assert [seen[f"p{n}"] for n in range(20, 40)] == [5] * 20, "100 re-checks of 20 problems"


def test_a_forgotten_problem_and_a_solved_one_come_back():
    state = updated(state_of(8, 0, visits=4), {"p0": verdicts(2), "p1": verdicts(3)}, 9)
    assert [standing(state.tallies[name], SETTINGS) for name in ("p0", "p1")] == [Standing.PREFERRED] * 2


def test_problems_outside_are_tried_less_but_not_forgotten():
    """Equally many preferred and outside: four preferred slots for one outside."""
    state = state_of(*[4] * 100, *[0] * 100)
    counts = Counter(
        int(name[1:]) // 100
        for step in range(1, 501)
        for name in ids(chosen(problems(200), state, 0, step, 10, Curriculum(recheck_share=0.0)))
    )
    assert counts[1] / counts.total() == pytest.approx(0.2, abs=0.02)


def test_untried_problems_do_not_crowd_out_the_few_preferred():
    state = state_of(*[4] * 50, *[None] * 950)
    counts = Counter(
        int(name[1:]) < 50
        for step in range(1, 201)
        for name in ids(chosen(problems(1000), state, 0, step, 10, Curriculum(recheck_share=0.0)))
    )
    assert counts[True] / counts.total() == pytest.approx(0.5, abs=0.05), "in a uniform draw it would be .05"


@pytest.mark.parametrize("right", [8, 0], ids=["all solved", "all parked"])
@pytest.mark.parametrize("count", [1, 5, 6])
def test_a_step_is_filled_when_all_is_given_up_with_the_oldest(right, count):
    state = state_of(*[right] * 6, visits=4)
    state = updated(state, {"p5": verdicts(right)}, 6)
    picked = ids(chosen(problems(6), state, 0, 7, count, SETTINGS))
    assert len(set(picked)) == count
    assert ("p5" in picked) == (count == 6)


def test_without_any_measurement_it_is_a_random_draw():
    seen = Counter(
        each for step in range(1, 401) for each in ids(chosen(problems(8), CurriculumState(), 3, step, 2, SETTINGS))
    )
    assert len(seen) == 8 and max(seen.values()) < 2 * min(seen.values())


def test_the_order_inside_a_step_says_nothing():
    """Mini-batches are cut from it: the re-checked one must not always come first."""
    state = state_of(*[4] * 20, 8)
    places = Counter(
        ids(chosen(problems(21), state, 0, step, 4, Curriculum(recheck_share=0.25))).index("p20")
        for step in range(1, 201)
    )
    assert set(places) == {0, 1, 2, 3} and min(places.values()) > 25


def test_shares_of_the_standings():
    state = state_of(4, 4, 8, 0, None, 0)
    for step in (2, 3, 4):
        state = updated(state, {"p3": verdicts(0)}, step)
    metrics = standing_metrics(problems(6), state, SETTINGS)
    assert metrics == {
        "curriculum/preferred_share": 2 / 6,
        "curriculum/untried_share": 1 / 6,
        "curriculum/outside_share": 1 / 6,
        "curriculum/retired_share": 1 / 6,
        "curriculum/parked_share": 1 / 6,
    }
    assert all(require_declared(key).unit == "share" for key in metrics)


def test_a_state_that_is_none_is_refused():
    for text in ("", "[]", '{"p": 3}', '{"p": {"attempts": 1}}', '{"p": {"step": 1, "tries": 1}}'):
        with pytest.raises(RecordError, match="curriculum"):
            CurriculumState.from_json(text)


def test_it_needs_no_torch():
    code = "import sys, earned.problems.curriculum; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Promises over random runs


rates = st.lists(st.sampled_from([0.0, 0.05, 0.3, 0.7, 1.0]), min_size=1, max_size=30)


@st.composite
def runs(draw):
    """The pass rates of a few problems, the size of a step, settings, and how many steps went before."""
    of = draw(rates)
    prefer = draw(st.sampled_from([(0.1, 0.9), (0.0, 0.5), (0.3, 0.6)]))
    settings = Curriculum(
        prefer=prefer,
        retire=draw(st.sampled_from([0.9, 1.0])),
        park_after=draw(st.sampled_from([1, 8, 32])),
        recheck_share=draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])),
    )
    return of, draw(st.integers(1, len(of))), settings, draw(st.integers(0, 12)), draw(st.integers(0, 2**31))


def go(of, count, settings, steps, seed, order=chosen):
    """Run steps on problems with these pass rates; return the state and how many groups of each step were mixed."""
    everything, state, mixed = problems(len(of)), CurriculumState(), []
    for step in range(1, steps + 1):
        picked = order(everything, state, seed, step, count, settings)
        outcomes = {}
        for each in picked:
            draws_G = generator(seed, step, "attempts", each.id).random(G)
            outcomes[each.id] = [bool(value < of[int(each.id[1:])]) for value in draws_G]
        mixed.append(sum(len(set(found)) == 2 for found in outcomes.values()))
        state = updated(state, outcomes, step)
    return state, mixed


@hypothesis_settings(deadline=None, max_examples=150)
@given(runs())
def test_a_step_is_full_of_different_problems_and_a_function_of_its_state(run):
    of, count, settings, steps, seed = run
    state, _ = go(of, count, settings, steps, seed)
    picked = chosen(problems(len(of)), state, seed, steps + 1, count, settings)
    assert len(picked) == count == len(set(ids(picked)))
    restored = CurriculumState.from_json(state.to_json())
    assert restored == state and chosen(problems(len(of)), restored, seed, steps + 1, count, settings) == picked


@hypothesis_settings(deadline=None, max_examples=150)
@given(runs())
def test_what_is_given_up_comes_only_as_a_recheck_or_to_fill(run):
    of, count, settings, steps, seed = run
    state, _ = go(of, count, settings, steps, seed)
    everything = problems(len(of))
    given_up = {
        each.id
        for each in everything
        if standing(state.tallies.get(each.id), settings) in (Standing.RETIRED, Standing.PARKED)
    }
    picked = given_up & set(ids(chosen(everything, state, seed, steps + 1, count, settings)))
    to_fill = max(0, count - (len(of) - len(given_up)))
    assert len(picked) <= max(to_fill, math.ceil(settings.recheck_share * count))
    shares = standing_metrics(everything, state, settings)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["curriculum/retired_share"] + shares["curriculum/parked_share"] == pytest.approx(
        len(given_up) / len(of)
    )


@given(
    st.dictionaries(
        st.text(),
        st.builds(
            Tally,
            attempts=st.integers(0),
            right=st.integers(0),
            recent_attempts=st.floats(0, allow_nan=False, allow_infinity=False),
            recent_right=st.floats(0, allow_nan=False, allow_infinity=False),
            step=st.integers(0),
        ),
    )
)
def test_the_round_trip_through_json_is_exact(tallies):
    state = CurriculumState(tallies=tallies)
    again = CurriculumState.from_json(state.to_json())
    assert again == state and list(again.tallies) == list(state.tallies)


def test_a_run_that_was_cut_in_two_is_the_same_run():
    of = [0.0, 0.05, 0.3, 0.7, 1.0] * 8
    whole, _ = go(of, 8, SETTINGS, 30, seed=5)
    state, _ = go(of, 8, SETTINGS, 13, seed=5)
    state = CurriculumState.from_json(state.to_json())
    for step in range(14, 31):
        picked = chosen(problems(40), state, 5, step, 8, SETTINGS)
        outcomes = {
            each.id: [bool(v < of[int(each.id[1:])]) for v in generator(5, step, "attempts", each.id).random(G)]
            for each in picked
        }
        state = updated(state, outcomes, step)
    assert state == whole


def test_another_seed_and_another_step_choose_otherwise():
    picked = {
        (seed, step): ids(chosen(problems(50), CurriculumState(), seed, step, 8, SETTINGS))
        for seed in (0, 1)
        for step in (1, 2)
    }
    assert len({tuple(each) for each in picked.values()}) == 4


# Whether it pays


def in_turn(everything, state, seed, step, count, settings):
    return step_problems(ProblemSet(train=everything, validation=(), held_out=()), seed, step, count)


def useful(of, order, seed, steps=60, count=16):
    """Return the share of mixed groups in the second half of a run."""
    _, mixed = go(of, count, SETTINGS, steps, seed, order)
    return sum(mixed[steps // 2 :]) / (count * (steps - steps // 2))


def gains(of):
    return np.array([useful(of, chosen, seed) - useful(of, in_turn, seed) for seed in range(6)])


def test_more_groups_are_useful_when_problems_differ_much():
    """Two in five are solved always, two in five never, one in five now and then."""
    of = [1.0, 1.0, 0.0, 0.0, 0.5] * 60
    assert np.mean([useful(of, in_turn, seed) for seed in range(6)]) == pytest.approx(0.2, abs=0.03)
    assert gains(of).min() > 0.25


@pytest.mark.parametrize("rate", [0.5, 0.05])
def test_nothing_is_gained_when_problems_are_alike(rate):
    """The control: what was measured of a problem then says nothing about it, so there is nothing to choose by."""
    found = gains([rate] * 300)
    assert abs(found.mean()) < 0.03
    assert abs(found.mean()) <= 3 * found.std(ddof=1) / math.sqrt(len(found)) + 1e-9


def test_it_follows_a_policy_that_learns():
    """Hard problems become easy one after the other: what was parked is found again, what was learned is let go."""
    everything, state = problems(60), CurriculumState()
    settings = Curriculum(recheck_share=0.25)
    for step in range(1, 241):
        picked = chosen(everything, state, 0, step, 12, settings)
        level = step / 4
        outcomes = {}
        for each in picked:
            rate = 1 / (1 + math.exp(int(each.id[1:]) - level))
            draws_G = generator(0, step, "attempts", each.id).random(G)
            outcomes[each.id] = [bool(value < rate) for value in draws_G]
        state = updated(state, outcomes, step)
        if step == 40:
            early = standing_metrics(everything, state, settings)
    late = standing_metrics(everything, state, settings)
    assert early["curriculum/parked_share"] > 0.5 and early["curriculum/retired_share"] < 0.2
    assert late["curriculum/parked_share"] < 0.05 and late["curriculum/retired_share"] > 0.7


# The table of the recipe


def recipe(**curriculum):
    return validate(Recipe, {"rewards": {"answer": {"check": "number"}}, **curriculum})


def test_it_is_off_until_the_recipe_has_the_table():
    assert recipe().curriculum is None and "curriculum" not in to_toml(recipe())
    assert recipe(curriculum={}).curriculum == SETTINGS
    assert "[curriculum]" in to_toml(recipe(curriculum={}))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"prefer": [0.9, 0.1]}, r"curriculum: prefer = \[0.9, 0.1\] and retire = 0.9: the first number"),
        ({"retire": 0.5}, r"curriculum: prefer = \[0.1, 0.9\] and retire = 0.5: .* at most retire"),
        ({"prefer": [0.1, 1.5]}, r"curriculum\.prefer\.1: .*, not 1\.5"),
        ({"park_after": 0}, r"curriculum\.park_after: .*, not 0"),
        ({"recheck_share": 2}, r"curriculum\.recheck_share: .*, not 2"),
        ({"recheck": 0.1}, r"curriculum\.recheck: unknown key\. Did you mean 'recheck_share'\?"),
    ],
)
def test_settings_that_cannot_be_are_named(table, sentence):
    with pytest.raises(RecipeError, match=sentence):
        recipe(curriculum=table)
