"""Votes, units and pass@k of real checks' verdicts on attempts written by hand."""

from math import comb
from statistics import fmean

import pytest

from earned.evaluation.per_problem import majority_accuracy, pass_at_each_k, problem_result, unit_means
from earned.recipe import RewardPart
from earned.rewards.checks import GOLD_PARSERS, make_check
from earned.rewards.compose import Part, Rewarder
from earned.vocabulary import (
    Attempt,
    Completion,
    Problem,
    Prompt,
    Rollout,
    RolloutGroup,
    Segment,
    Split,
    StopReason,
)


def attempts_at(problem, texts, check):
    """The group of these completions, judged by a built-in check; a text of n characters has n tokens."""
    judge = Rewarder((Part(name="accuracy", weight=1.0, check=make_check("evaluation", RewardPart(check=check))),))
    ids = [f"held_out/0/{problem.id}/{number}" for number in range(len(texts))]
    scores = judge.score_all(
        {
            name: Attempt(problem=problem, text=text, seed=0, step=0, rollout_id=name)
            for name, text in zip(ids, texts, strict=True)
        }
    )
    rollouts = tuple(
        Rollout(
            id=name,
            attempt=number,
            completion=Completion(
                segments=(Segment(token_ids=(7,) * len(text), sampled=True, sampler_logprobs=(0.0,) * len(text)),),
                text=text,
                stop_reason=StopReason.LENGTH if text.endswith("...") else StopReason.EOS,
                policy_version=0,
            ),
            score=scores[name],
        )
        for number, (name, text) in enumerate(zip(ids, texts, strict=True))
    )
    return RolloutGroup(prompt=Prompt(problem=problem, token_ids=(1,)), rollouts=rollouts)


def found(*texts, gold="1024", check="number", id="a", cluster=None, greedy="#### 0"):
    problem = Problem(id=id, prompt="2^10", gold=gold, source="own", split=Split.HELD_OUT, cluster=cluster)
    return problem_result(
        attempts_at(problem, texts, check), attempts_at(problem, [greedy], check), GOLD_PARSERS.get(check)
    )


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([], 0.0),
        ([("7", 1.0)], 1.0),
        ([("7", 1.0), ("8", 0.0), ("8", 0.0)], 0.0),
        ([("7", 1.0), ("8", 0.0)], 1 / 2),
        ([("7", 1.0), ("8", 0.0), ("9", 0.0)], 1 / 3),
        ([("7", 1.0), ("8", 0.0), ("9", 0.0), ("8", 0.0), ("7", 1.0)], 1 / 2),
    ],
)
def test_the_majority_by_hand(votes, expected):
    assert majority_accuracy(votes) == pytest.approx(expected)


def test_answers_that_the_check_takes_for_the_same_vote_together():
    """Two spellings of the right number outvote two of the same wrong one, with three of them."""
    texts = ("#### 1,024", "#### 1024.0", "#### 1024", "#### 7", "#### 7")
    assert found(*texts).maj_at_k == 1.0
    problem = Problem(id="a", prompt="2^10", gold="1024", source="own", split=Split.HELD_OUT)
    group = attempts_at(problem, texts, "number")
    assert problem_result(group, group, None).maj_at_k == 0.0, "as texts they are three answers of one vote each"
    accents = ("#### caf\u00e9", "#### cafe\u0301", "#### tea")
    assert found(*accents, gold="cafe\u0301", check="exact").maj_at_k == 1.0


def test_who_gives_no_answer_does_not_vote():
    assert found("none", "nothing", "#### 1024").maj_at_k == 1.0
    assert found("none", "nothing").maj_at_k == 0.0
    assert found("#### 5 apples", "#### 5 apples", "#### 1024").maj_at_k == 0.0, "what is no number is an answer"


def test_nobody_votes_where_nothing_could_be_scored():
    result = found("#### 1", "#### 2", gold="many")
    assert (result.scored, result.mean, result.greedy, result.maj_at_k) == (0, None, None, 0.0)


def test_a_check_that_reads_no_answers_has_no_majority():
    """Random rewards by the seed: some attempts are right, and none has an answer."""
    result = found(*["#### 1"] * 16, check="random")
    assert 0 < result.right < 16 and result.maj_at_k is None


def test_every_column_by_hand():
    result = found("#### 1024", "#### 7", "none...", "#### 1,024", greedy="#### 1024", cluster="powers")
    assert (result.id, result.prompt, result.gold, result.cluster) == ("a", "2^10", "1024", "powers")
    assert (result.samples, result.scored, result.right, result.mean) == (4, 4, 2, 0.5)
    assert (result.greedy, result.pass_at_k, result.maj_at_k, result.truncated) == (1.0, 1.0, 1.0, 1)
    assert result.length_mean == fmean(len(text) for text in ("#### 1024", "#### 7", "none...", "#### 1,024"))


def test_a_cluster_counts_as_one_and_comes_where_its_first_problem_does():
    right, wrong = "#### 1024", "#### 7"
    problems = [
        found(right, id="a", cluster="x"),
        found(wrong, id="x"),
        found(wrong, id="b", cluster="x"),
        found(right, id="c", gold="many", cluster="y"),
    ]
    assert unit_means(problems, lambda problem: problem.mean) == (0.5, 0.0), "x the cluster is not x the problem"


def test_pass_at_k_for_powers_of_two_and_for_all():
    right, wrong = "#### 1024", "#### 7"
    problems = [found(right, *[wrong] * 4, id="a"), found(*[wrong] * 5, id="b")]
    curve = pass_at_each_k(problems, 5)
    assert curve == {k: pytest.approx((1 - comb(4, k) / comb(5, k)) / 2) for k in (1, 2, 4, 5)}
    assert curve[1] == pytest.approx(fmean(problem.right / 5 for problem in problems)) and curve[5] == 0.5
    assert list(pass_at_each_k(problems, 1)) == [1]
    unread = found(*[right] * 5, id="c", gold="many")
    assert pass_at_each_k([*problems, unread], 5) == curve, "what could not be scored is left out"
