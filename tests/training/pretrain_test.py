"""What a model made from nothing sees, and that it learns from it."""

from dataclasses import replace

import pytest
import torch

from earned.policy.load import fingerprint
from earned.policy.tiny import EOS_ID, untrained_policy
from earned.pretrain_recipe import PretrainRecipe
from earned.problems.splits import make_problem
from earned.problems.sums import SumsOptions, long_answer, short_answer
from earned.recipe_file import validate
from earned.training import pretrain as room
from earned.training.pretrain import examples, pretrain
from earned.vocabulary import Split

OPTIONS = SumsOptions(terms=(2, 3), digits=1)


def recipe_of(shape, phases, per_step=32, seed=0, **optim):
    table = {"seed": seed, "phases": phases, "optim": {"sequences_per_step": per_step, "warmup_steps": 5, **optim}}
    return validate(PretrainRecipe, table).model_copy(update={"model": shape})


def texts(policy, recipe, options=OPTIONS):
    """(prompt, answer) of every example of every step."""
    return [
        [(policy.decode(example.prompt_ids), policy.decode(example.answer_ids)) for example in batch]
        for batch in examples(policy, recipe, options)
    ]


def total(prompt):
    return sum(map(int, prompt.removesuffix("=").split("+")))


@pytest.fixture
def policy(shape):
    return untrained_policy(shape, seed=0)


def test_examples_are_training_problems_with_right_answers(shape, policy):
    recipe = recipe_of(shape, [{"steps": 4, "long_share": 0.5}], per_step=256)
    pairs = [pair for batch in texts(policy, recipe) for pair in batch]
    assert len(pairs) == 1024
    for prompt, answer in pairs:
        assert make_problem(prompt, str(total(prompt)), "sums").split is Split.TRAIN
        assert answer in (short_answer(prompt), long_answer(prompt))


def test_without_the_filter_other_splits_would_be_among_them(shape, policy, monkeypatch):
    everything = room.stream

    def all_called_train(options, seed):
        return (replace(problem, split=Split.TRAIN) for problem in everything(options, seed))

    monkeypatch.setattr(room, "stream", all_called_train)
    recipe = recipe_of(shape, [{"steps": 1, "long_share": 0.5}], per_step=256)
    splits = {make_problem(p, str(total(p)), "sums").split for batch in texts(policy, recipe) for p, _ in batch}
    assert splits == set(Split)


def test_the_share_of_long_answers_is_that_of_the_phase(shape, policy):
    phases = [{"steps": 2, "long_share": 0.8}, {"steps": 2, "long_share": 0.2}]
    batches = texts(policy, recipe_of(shape, phases, per_step=500), SumsOptions(terms=(3, 3), digits=1))
    shares = [sum(answer.count(";") > 0 for _, answer in batch) / len(batch) for batch in batches]
    assert shares == pytest.approx([0.8, 0.8, 0.2, 0.2], abs=0.06)
    for share, expected in ((0.0, 0), (1.0, 32)):
        (batch,) = texts(policy, recipe_of(shape, [{"steps": 1, "long_share": share}]))
        assert sum(answer.count(";") > 0 for _, answer in batch) == expected


def test_an_answer_ends_with_one_end_of_sequence_and_a_prompt_begins_with_one_start(shape, policy):
    (batch,) = examples(policy, recipe_of(shape, [{"steps": 1, "long_share": 0.5}]), OPTIONS)
    for example in batch:
        assert example.prompt_ids.count(0) == 1 and example.prompt_ids[0] == 0
        assert example.answer_ids.count(EOS_ID) == 1 and example.answer_ids[-1] == EOS_ID
        assert example.length == len(example.prompt_ids) + len(example.answer_ids)


def test_the_loss_falls_and_a_seeded_run_is_the_same_bit_for_bit(shape):
    curves, weights = [], []
    for seed in (0, 0, 1):
        policy, losses = untrained_policy(shape, seed=0), []
        recipe = recipe_of(shape, [{"steps": 30, "long_share": 0.5}], seed=seed, learning_rate=5e-3)
        pretrain(policy, recipe, OPTIONS, lambda step, loss, losses=losses: losses.append((step, loss)))
        curves.append(losses)
        weights.append(fingerprint(policy))
    assert [step for step, _ in curves[0]] == list(range(1, 31))
    assert curves[0][0][1] == pytest.approx(4.595, abs=0.1), "log of 99 tokens at the start"
    assert curves[0][-1][1] < 2.6
    assert curves[0] == curves[1] and weights[0] == weights[1]
    assert curves[0] != curves[2] and weights[0] != weights[2]


def test_the_layout_of_micro_batches_does_not_matter(shape):
    ends = []
    for tokens in (1, 10**6):
        policy = untrained_policy(shape, seed=0)
        recipe = recipe_of(shape, [{"steps": 3, "long_share": 0.5}], per_step=8, tokens_per_micro_batch=tokens)
        losses = []
        pretrain(policy, recipe, OPTIONS, lambda step, loss, losses=losses: losses.append(loss))
        ends.append((losses, torch.cat([value.detach().flatten() for value in policy.parameters().values()])))
    assert ends[0][0] == pytest.approx(ends[1][0], abs=1e-5)
    assert torch.allclose(ends[0][1], ends[1][1], atol=1e-4)
