import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def truncated(text, tokens=3):
    return replace(attempt(text), truncated=True, tokens=tokens)


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
        ({"form": {"check": "format", "options": {"pattern": ".*"}}}, ["form_reward"]),
        ({"steps": {"check": "steps"}, "loops": {"check": "repetition"}}, ["form_reward"]),
        (
            {"luck": {"check": "random", "gate": "steps"}, "steps": {"check": "steps", "weight": 0}},
            ["form_reward", "random_reward"],
        ),
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


def test_a_control_behind_a_real_check_needs_no_allowance():
    parts = {"form": {"check": "format", "options": {"pattern": ".*"}, "gate": "answer"}}
    gated = rewarder(**parts, answer={"check": "number", "weight": 0})
    assert (score_of(gated, attempt("A124")).value, score_of(gated, attempt("A9")).value) == (1, 0)


FORM = {"check": "format", "weight": 0.25, "options": {"pattern": r"[^?]*"}, "gate": "answer"}


def test_a_gated_part_pays_only_where_its_gate_does():
    reward = rewarder(answer={"check": "number"}, form=FORM)
    scores = [score_of(reward, attempt(text)) for text in ("A124", "A9", "so?\nA124", "so?\nA9")]
    assert [score.value for score in scores] == [1.25, 0, 1, 0]
    assert [part.value for part in scores[1].parts] == [0, 0]
    assert scores[1].parts[1].explanation == "as asked for; nothing, since answer pays nothing"
    assert scores[0].parts[1].explanation == "as asked for"
    open_door = rewarder(answer={"check": "number"}, form={**FORM, "gate": None})
    assert score_of(open_door, attempt("A9")).value == 0.25, "what the gate keeps from being paid"
    assert reward.maximum == 1.25


def test_gates_open_one_after_the_other_in_whatever_order_they_stand():
    style = {"check": "format", "weight": 0.5, "options": {"pattern": ".*;.*"}, "gate": "steps"}
    steps = {"check": "steps", "gate": "answer"}
    texts = ("47+58=105;105+19=124;A124", "A124;", "47+58=105;A105", "47+58=105 105+19=124 A124")
    for parts in (
        {"style": style, "steps": steps, "answer": {"check": "number"}},
        {"answer": {"check": "number"}, "steps": steps, "style": style},
    ):
        assert [score_of(rewarder(**parts), attempt(text)).value for text in texts] == [2.5, 0, 0, 2]


def test_a_gate_does_not_hide_a_failure():
    checks = {"answer": PerAttempt(giving(0.0)), "own": PerAttempt(giving(None))}
    for gate, gated in (("answer", "own"), ("own", "answer")):
        parts = [
            Part(name=name, weight=1.0, check=check, gate=gate if name == gated else None)
            for name, check in checks.items()
        ]
        assert score_of(Rewarder(tuple(parts)), attempt("A124")).status is ScoreStatus.UNSCORED


def test_a_gate_that_does_not_apply_is_closed():
    nothing_to_say = lambda _: Verdict(value=None, extracted=None, explanation="not mine", applies=False)  # noqa: E731
    parts = (
        Part(name="gate", weight=1.0, check=PerAttempt(nothing_to_say)),
        Part(name="own", weight=1.0, check=PerAttempt(giving(1.0)), gate="gate"),
    )
    assert score_of(Rewarder(parts), attempt("A124")).value == 0


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        ({"form": "anwser"}, r"^rewards\.form\.gate: there is no part 'anwser', others are: 'answer', .*'answer'\?$"),
        ({"form": "form"}, r"^rewards\.form\.gate: form waits for form, so none of them could ever pay$"),
        ({"form": "answer", "answer": "form"}, r"^rewards\.\w+\.gate: \w+ waits for \w+ waits for \w+, so none"),
        ({"answer": "form", "form": "steps", "steps": "form"}, r"^rewards\.steps\.gate: answer waits for form waits "),
        (
            {"form": "short"},
            r"^rewards\.form\.gate: 'short' is a penalty, which never pays, so 'form' would not either$",
        ),
    ],
)
def test_gates_that_could_never_open_are_refused(gates, message):
    parts = {
        "answer": {"check": "number"},
        "form": {"check": "format", "options": {"pattern": ".*"}},
        "steps": {"check": "steps"},
        "short": {"check": "length", "options": {"max_tokens": 9}},
    }
    assert rewarder(**parts).parts
    with pytest.raises(RecipeError, match=message):
        rewarder(**{name: {**part, "gate": gates.get(name)} for name, part in parts.items()})


def test_the_maximum_leaves_penalties_out():
    parts = {"answer": {"check": "number", "weight": 2.0}, "short": {"check": "length", "options": {"max_tokens": 9}}}
    assert rewarder(**parts).maximum == 2
    with pytest.raises(RecipeError, match=r"rewards.short.weight: -0.5 would pay for what 'length' is against"):
        rewarder(answer=parts["answer"], short={**parts["short"], "weight": -0.5})


def test_sums_that_differ_by_rounding_alone_are_equal():
    def total(*values):
        parts = [
            Part(name=str(place), weight=1.0, check=PerAttempt(giving(value))) for place, value in enumerate(values)
        ]
        return score_of(Rewarder(tuple(parts)), attempt("A124")).value

    assert 0.1 + 0.2 != 0.3
    assert total(0.1, 0.2) == total(0.3, 0.0) == 0.3
    assert total(0.1, 0.2, -0.3) == total(0.0, 0.0) == 0.0 != 0.1 + 0.2 - 0.3
    assert total(0.1, 0.2) != total(0.1, 0.2 + 1e-9)
    assert total(0.1 + 0.2) == 0.1 + 0.2, "a single part is left as it is"


TEXTS = st.one_of(
    st.sampled_from(
        [
            *(
                "A124",
                "A9",
                "",
                "47+58=105;105+19=124;A124\n",
                "47+58=105;A105.",
                "<think>1</think><answer>124</answer>",
            ),
            *(
                "<think>47+58=105</think><answer>9</answer>\n",
                "so so so so so so so so A124 ",
                "#### 9\n",
                "1+1=2;A2\n",
            ),
        ]
    ),
    st.text(alphabet="A0124+=;. \n<>/think", max_size=40),
)
WEIGHTS = st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0])
KINDS = {
    "number": {},
    "exact": {},
    "steps": {"supports_answer": False},
    "format": {"tags": ["think", "answer"]},
    "length": {"max_tokens": 12, "min_tokens": 3},
    "repetition": {"n": 2, "threshold": 0.0},
}


@st.composite
def rewards(draw):
    """Some of the checks that read the text, with weights that are not negative and gates that open downwards."""
    kinds = draw(st.lists(st.sampled_from([*KINDS]), unique=True, min_size=1))
    parts = {}
    for kind in kinds:
        gates = [None, *(name for name, part in parts.items() if part["check"] not in ("length", "repetition"))]
        parts[kind] = {
            "check": kind,
            "weight": draw(WEIGHTS),
            "options": KINDS[kind],
            "gate": draw(st.sampled_from(gates)),
        }
    return rewarder(allow=["form_reward", "constant_reward"], **parts)


@given(rewards(), TEXTS, st.integers(1, 30))
def test_to_be_cut_off_is_never_better_than_to_end(reward, text, tokens):
    ended = replace(attempt(text), tokens=tokens)
    assert score_of(reward, truncated(text, tokens)).value <= score_of(reward, ended).value


@given(rewards(), TEXTS, TEXTS, st.integers(1, 30), st.integers(1, 30))
def test_without_a_right_answer_no_truncated_text_is_better_than_any_that_ended(reward, cut, text, some, others):
    if NumberCheck()(truncated(cut)).value or ExactCheck()(truncated(cut)).value:
        return
    ended = replace(attempt(text), tokens=some)
    assert score_of(reward, truncated(cut, others)).value <= score_of(reward, ended).value


def test_a_gate_does_not_spare_a_truncated_attempt_its_penalty():
    short = {"check": "length", "options": {"max_tokens": 4, "buffer": 4}, "gate": "form"}
    reward = rewarder(answer={"check": "number"}, form={**FORM, "gate": None}, short=short)
    ended, cut = replace(attempt("A9"), tokens=4), truncated("A9", 3)
    assert (score_of(reward, ended).value, score_of(reward, cut).value) == (-0.75, -1)
    assert score_of(reward, replace(attempt("so? A9"), tokens=4)).value == 0, "the gate spares all others"


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
