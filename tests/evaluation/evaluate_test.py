"""Accuracy of a real, untrained model by scorers made for the purpose."""

import math
from dataclasses import replace
from math import comb
from statistics import fmean

import pytest

from earned.errors import VerifierError
from earned.evaluation.evaluate import attempts_at, evaluate
from earned.policy.prompts import render_all
from earned.policy.tiny import EOS_ID, untrained_policy
from earned.pretrain_recipe import PretrainModel
from earned.problems.sources import load_problems
from earned.recipe import Problems
from earned.rewards.number import read_gold_number
from earned.rollouts.engine import Draw, SamplingSettings
from earned.rollouts.torch_engine import TorchEngine
from earned.vocabulary import GREEDY_ATTEMPT, PartScore, Score, ScoreStatus, Split

SETTINGS = SamplingSettings(group_size=5, temperature=1.0, max_new_tokens=12)
STAMP = Draw(seed=0, step=20, purpose="held_out")
SUMS = Problems(options={"terms": [2, 2], "digits": 1}, train=4, validation=0, held_out=8)


@pytest.fixture(scope="module")
def policy():
    return untrained_policy(PretrainModel(hidden_size=32, layers=2, heads=2, intermediate_size=64), seed=1)


@pytest.fixture
def engine(policy):
    return TorchEngine(policy, batch_size=16)


@pytest.fixture(scope="module")
def prompts(policy):
    return render_all(policy, load_problems(SUMS, seed=0).split(Split.HELD_OUT), 12)


def score_of(value):
    status = ScoreStatus.UNSCORED if value is None else ScoreStatus.SCORED
    part = PartScore(name="own", weight=1.0, value=value, extracted=None, explanation="made for a test")
    return Score(value=value, status=status, parts=(part,))


def scorer(judge):
    """A scorer of (text, rollout id) -> value."""
    return lambda attempts: {name: score_of(judge(attempt.text, name)) for name, attempt in attempts.items()}


def has_a_digit(text, name):
    return float(any(character.isdigit() for character in text))


def is_greedy(name):
    return name.endswith(f"/{GREEDY_ATTEMPT}")


def sampled_values(found):
    return [[r.score.value for r in group.rollouts] for group in found.groups if group.rollouts[0].attempt >= 0]


def test_every_number_can_be_computed_again_from_the_completions(engine, prompts):
    found = evaluate(engine, prompts, scorer(has_a_digit), SETTINGS, STAMP)
    result, sampled, greedy = found.result, found.groups[:8], found.groups[8:]
    assert (result.step, result.split, result.problems, result.samples) == (20, Split.HELD_OUT, 8, 5)
    values = sampled_values(found)
    assert 0 < result.mean < 1, "a scorer that cannot tell would prove nothing"
    assert result.mean == pytest.approx(fmean(fmean(row) for row in values))
    assert result.low < result.mean < result.high
    assert result.pass_at_k == fmean(float(1.0 in row) for row in values)
    assert [group.rollouts[0].attempt for group in greedy] == [GREEDY_ATTEMPT] * 8
    assert result.greedy == fmean(group.rollouts[0].score.value for group in greedy)
    completions = [rollout.completion for group in sampled for rollout in group.rollouts]
    assert len(completions) == 40
    assert result.length_mean == pytest.approx(fmean(len(completion.token_ids) for completion in completions))
    assert result.truncated_share == fmean(completion.token_ids[-1] != EOS_ID for completion in completions)
    assert [group.prompt for group in sampled] == [group.prompt for group in greedy] == list(prompts)


def test_rollout_ids_name_the_step_and_the_split(engine, prompts):
    found = evaluate(engine, prompts[:2], scorer(has_a_digit), SETTINGS, STAMP)
    expected = [f"held_out/20/{prompt.problem.id}/{attempt}" for prompt in prompts[:2] for attempt in range(5)]
    expected += [f"held_out/20/{prompt.problem.id}/-1" for prompt in prompts[:2]]
    assert [rollout.id for group in found.groups for rollout in group.rollouts] == expected


def test_greedy_does_not_count_in_the_mean(engine, prompts):
    judged = {True: 1.0, False: 0.0}
    result = evaluate(engine, prompts, scorer(lambda _, name: judged[is_greedy(name)]), SETTINGS, STAMP).result
    assert (result.greedy, result.mean, result.pass_at_k) == (1.0, 0.0, 0.0)
    result = evaluate(engine, prompts, scorer(lambda _, name: judged[not is_greedy(name)]), SETTINGS, STAMP).result
    assert (result.greedy, result.mean, result.pass_at_k) == (0.0, 1.0, 1.0)


def test_all_wrong_and_all_right_still_have_a_width(engine, prompts):
    wrong, right = (
        evaluate(engine, prompts, scorer(lambda text, name, value=value: value), SETTINGS, STAMP).result
        for value in (0.0, 1.0)
    )
    assert wrong.low == 0 and wrong.high > 0.2 and right.high == 1 and right.low < 0.8


def test_the_problem_is_the_unit(engine, prompts):
    """Half the problems always right says less than half the attempts at each, though as many are right."""
    place = {prompt.problem.id: number for number, prompt in enumerate(prompts)}

    def by_problem(text, name):
        return float(place[name.split("/")[2]] < 4)

    def by_attempt(text, name):
        return float((place[name.split("/")[2]] + int(name.split("/")[3])) % 2)

    widths = []
    for judge in (by_problem, by_attempt):
        result = evaluate(engine, prompts, scorer(judge), SETTINGS, STAMP).result
        assert result.mean == pytest.approx(0.5)
        widths.append(result.high - result.low)
    assert widths[0] > 1.5 * widths[1]


def wordings(prompts, count, together):
    """Every problem in so many wordings, of one cluster or, wrongly, each alone."""
    return [
        replace(
            prompt,
            problem=replace(
                prompt.problem, id=f"{prompt.problem.id}.{n}", cluster=prompt.problem.id if together else None
            ),
        )
        for prompt in prompts
        for n in range(count)
    ]


def test_wordings_of_a_problem_are_one_problem(engine, prompts):
    """What is judged by the problem and the attempt says no more in three wordings than in one."""
    place = {prompt.problem.id: number for number, prompt in enumerate(prompts)}

    def judge(text, name):
        _, _, problem, attempt = name.split("/")
        return float(int(attempt) < place[problem.partition(".")[0]])

    def result(asked):
        return evaluate(engine, asked, scorer(judge), SETTINGS, STAMP).result

    alone, clustered = result(prompts), result(wordings(prompts, 3, together=True))
    assert (alone.problems, alone.units, clustered.problems, clustered.units) == (8, 8, 24, 8)
    for field in ("mean", "low", "high", "greedy", "pass_at_k"):
        assert getattr(clustered, field) == pytest.approx(getattr(alone, field))
    apart = result(wordings(prompts, 3, together=False))
    assert apart.units == 24 and apart.mean == pytest.approx(alone.mean)
    assert apart.high - apart.low < 0.7 * (alone.high - alone.low), "as if they were independent"


def test_a_cluster_weighs_as_much_as_a_problem_alone(engine, prompts):
    asked = [*wordings(prompts[:1], 3, together=True), prompts[1]]
    alone = prompts[1].problem.id
    result = evaluate(engine, asked, scorer(lambda text, name: float(alone in name)), SETTINGS, STAMP).result
    assert (result.problems, result.units) == (4, 2)
    assert result.mean == result.greedy == result.pass_at_k == 0.5 and result.low < 0.5 < result.high


def test_the_majority_is_a_mean_over_problems_or_no_number(engine, prompts):
    """The first of five attempts answers 1, the next two 2.0 and 2, the others nothing; 2 is right."""

    def score(attempts, read=True):
        answers = {"0": "1", "1": "2.0", "2": "2"}
        answer_of = {name: answers.get(name.split("/")[3]) for name in attempts}
        parts = {
            name: PartScore(
                name="own",
                weight=1.0,
                value=float(answer in ("2", "2.0")),
                extracted=answer if read else None,
                explanation="made for a test",
            )
            for name, answer in answer_of.items()
        }
        return {name: Score(value=part.value, status=ScoreStatus.SCORED, parts=(part,)) for name, part in parts.items()}

    numbers = evaluate(engine, prompts, score, SETTINGS, STAMP, read_answer=read_gold_number)
    assert (numbers.result.mean, numbers.result.maj_at_k) == (pytest.approx(0.4), 1.0)
    assert [(problem.right, problem.scored) for problem in numbers.problems] == [(2, 5)] * 8
    texts = evaluate(engine, prompts, score, SETTINGS, STAMP).result
    assert texts.maj_at_k == pytest.approx(2 / 3), "three answers with one vote each, two of them right"
    unread = evaluate(engine, prompts, lambda attempts: score(attempts, read=False), SETTINGS, STAMP).result
    assert math.isnan(unread.maj_at_k) and unread.mean == pytest.approx(0.4)


def test_unscored_completions_are_left_out(engine, prompts):
    """Attempt 0 could not be judged anywhere, nor anything about the first problem; the rest is right half the time."""
    first = prompts[0].problem.id

    def judge(text, name):
        _, _, problem, attempt = name.split("/")
        return None if problem == first or attempt == "0" else float(int(attempt) in (1, 2))

    found = evaluate(engine, prompts, scorer(judge), SETTINGS, STAMP)
    result = found.result
    assert result.problems == 7 and result.mean == 0.5, "2 of the 4 that were scored"
    assert result.pass_at_k == 1.0 == 1 - comb(2, 4) / comb(4, 4)
    assert result.greedy == 0.0
    lengths = [len(r.completion.token_ids) for group in found.groups[:8] for r in group.rollouts]
    assert result.length_mean == pytest.approx(fmean(lengths)), "a length is known whether scored or not"
    assert len(found.groups) == 16, "every completion is kept"


def test_nothing_scored_is_an_error(engine, prompts):
    with pytest.raises(VerifierError, match="could be scored, for example"):
        evaluate(engine, prompts, scorer(lambda text, name: None), SETTINGS, STAMP)


def completions(engine, prompts, step, fixed):
    stamp = Draw(seed=0, step=step, purpose="watched")
    groups = attempts_at(engine, prompts, scorer(has_a_digit), SETTINGS, stamp, fixed=fixed)
    assert all(f"/{step}/" in rollout.id for group in groups for rollout in group.rollouts)
    return [
        [rollout.completion.token_ids for group in half for rollout in group.rollouts]
        for half in (groups[:8], groups[8:])
    ]


def test_fixed_random_numbers_give_the_same_completions_while_the_weights_stay(engine, prompts):
    assert completions(engine, prompts, 20, fixed=True) == completions(engine, prompts, 40, fixed=True)
    (fresh_20, greedy_20), (fresh_40, greedy_40) = (completions(engine, prompts, s, fixed=False) for s in (20, 40))
    assert greedy_20 == greedy_40
    differ = [one != other for one, other in zip(fresh_20, fresh_40, strict=True)]
    assert sum(differ) > 35, "otherwise every evaluation draws afresh"


def test_with_other_weights_fixed_random_numbers_give_other_completions(prompts):
    shape = PretrainModel(hidden_size=32, layers=2, heads=2, intermediate_size=64)
    one, other = (
        completions(TorchEngine(untrained_policy(shape, seed=seed), batch_size=64), prompts, 20, fixed=True)
        for seed in (1, 2)
    )
    assert one != other
