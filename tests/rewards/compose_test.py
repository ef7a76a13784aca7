import random
from dataclasses import replace

import pytest

from earned.errors import RecipeError, VerifierError
from earned.recipe import Rewards
from earned.rewards.compose import Part, Rewarder, require_scored
from earned.rewards.exact import ExactCheck
from earned.rewards.number import NumberCheck
from earned.rewards.verdict import PerAttempt, Verdict
from earned.vocabulary import Attempt, Problem, ScoreStatus, Split


def attempt(text, gold="124"):
    problem = Problem(id="p", prompt="47+58+19=", gold=gold, source="sums", split=Split.TRAIN)
    return Attempt(problem=problem, text=text, seed=0, step=1, rollout_id="train/1/p/0")


def rewarder(**tables):
    return Rewarder.from_recipe(Rewards.model_validate(tables))


def score_of(reward, attempt):
    return reward.score_all({attempt.rollout_id: attempt})[attempt.rollout_id]


def giving(value):
    return lambda _: Verdict(value=value, extracted=None, explanation="made up")


def two_parts(check):
    checks = {"answer": PerAttempt(NumberCheck()), "own": PerAttempt(check)}
    return Rewarder(tuple(Part(name=name, weight=1.0, check=check) for name, check in checks.items()))


def test_weighted_sum_of_the_parts():
    reward = rewarder(
        answer={"check": "number", "weight": 2.0},
        same={"check": "exact", "weight": 0.5},
        cost={"check": "constant", "weight": -0.25},
    )
    right, close, wrong = (score_of(reward, attempt(text)) for text in ("A124", "A124.0", "A9"))
    assert (right.value, close.value, wrong.value) == (2.25, 1.75, -0.25)
    assert [(part.name, part.weight, part.value) for part in close.parts] == [
        ("answer", 2.0, 1.0),
        ("same", 0.5, 0.0),
        ("cost", -0.25, 1.0),
    ]
    assert right.status is ScoreStatus.SCORED and right.extracted == "124"
    assert reward.maximum == 2.5


def raising(_):
    raise ZeroDivisionError("by design")


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (raising, "ZeroDivisionError: by design"),
        (giving(None), "made up"),
        (giving(float("nan")), "nan"),
        (giving(float("inf")), "inf"),
        (giving(float("-inf")), "-inf"),
        (lambda _: None, "AttributeError"),
        (giving("1"), "TypeError"),
    ],
)
def test_a_part_that_cannot_judge_leaves_the_score_unscored(check, reason):
    score = score_of(two_parts(check), attempt("A124"))
    assert score.value is None and score.status is ScoreStatus.UNSCORED
    assert reason in score.explanation
    assert score.parts[0].value == 1, "what the other part said is kept"
    assert score_of(two_parts(giving(0.5)), attempt("A124")).value == 1.5, "the same with a part that can judge"


def test_bad_gold_is_unscored_and_a_bad_completion_is_zero():
    reward = rewarder(answer={"check": "number"})
    assert score_of(reward, attempt("A124", gold="many")).status is ScoreStatus.UNSCORED
    assert score_of(reward, attempt("I give up")).value == 0


def test_scores_are_matched_by_id():
    attempts = {f"train/1/p/{n}": replace(attempt(f"A{n}"), rollout_id=f"train/1/p/{n}") for n in range(120, 130)}
    reward = rewarder(answer={"check": "number"})
    scores = reward.score_all(attempts)
    assert {name for name, score in scores.items() if score.value == 1} == {"train/1/p/124"}
    shuffled = list(attempts.items())
    random.Random(0).shuffle(shuffled)
    assert reward.score_all(dict(shuffled)) == scores


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"check": "numbre"}, r"^rewards\.answer\.check: unknown check 'numbre', allowed: .*Did you mean 'number'\?"),
        ({"check": "number", "options": {"tolerance": 1}}, r"^rewards\.answer\.options\.tolerance: unknown key"),
        ({"check": "random", "options": {"prob": 1}}, r"^rewards\.answer\.options\.prob: unknown key"),
        ({"check": "random", "options": {"p": 2}}, r"^rewards\.answer\.options\.p: .*not 2"),
    ],
)
def test_faults_in_the_recipe_are_named(part, message):
    with pytest.raises(RecipeError, match=message):
        rewarder(answer=part)


@pytest.mark.parametrize(
    ("parts", "needed"),
    [
        ({"luck": {"check": "random"}}, ["random_reward"]),
        ({"same": {"check": "constant"}}, ["constant_reward"]),
        ({"luck": {"check": "random"}, "same": {"check": "constant"}}, ["constant_reward", "random_reward"]),
        ({"luck": {"check": "random"}, "answer": {"check": "number", "weight": 0}}, ["random_reward"]),
        ({"answer": {"check": "number", "weight": 0}}, ["constant_reward"]),
    ],
)
def test_a_control_alone_must_be_allowed_by_name(parts, needed):
    with pytest.raises(RecipeError) as error:
        rewarder(**parts)
    assert str(error.value).startswith("rewards.allow:")
    assert all(f'"{word}"' in str(error.value) for word in needed)
    for word in needed:
        with pytest.raises(RecipeError):
            rewarder(allow=[other for other in needed if other != word], **parts)
    assert score_of(rewarder(allow=needed, **parts), attempt("A1")).value is not None


def test_a_control_beside_a_real_check_needs_no_allowance():
    assert rewarder(answer={"check": "number"}, cost={"check": "constant", "weight": -0.1}).maximum == 1


def test_too_many_unscored_stop_the_run_and_show_three():
    good = score_of(two_parts(giving(1.0)), attempt("A124"))
    bad = score_of(two_parts(raising), attempt("A124"))
    scores = {f"r{n}": bad if n < 4 else good for n in range(16)}
    with pytest.raises(VerifierError) as error:
        require_scored(scores, 0.2)
    text = str(error.value)
    assert text.startswith("4 of 16 completions could not be scored")
    assert [f"r{n}:" in text for n in range(4)] == [True, True, True, False]
    assert "ZeroDivisionError: by design" in text
    require_scored(scores, 0.25)
    require_scored({}, 0.0)


def test_exact_and_number_read_the_same_answer():
    for text in ("A124", "Answer: 124 apples", "x", "####", "A124 or A125"):
        assert NumberCheck()(attempt(text)).extracted == ExactCheck()(attempt(text)).extracted
