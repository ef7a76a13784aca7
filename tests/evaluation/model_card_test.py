"""The README of a checkpoint."""

import pytest
import yaml

from earned.evaluation.model_card import CardFacts, model_card
from earned.recipe import Recipe
from earned.recipe_file import validate
from earned.vocabulary import EvaluationResult, Split

FACTS = CardFacts(run="first-try", recipe_name="tiny_sums", step=50, version="1.2.3")


def recipe(**changes):
    return validate(Recipe, {"rewards": {"answer": {"check": "number"}}, **changes})


def accuracy(step, mean):
    return EvaluationResult(
        step=step,
        split=Split.HELD_OUT,
        problems=256,
        units=256,
        samples=4,
        mean=mean,
        low=mean - 0.05,
        high=mean + 0.05,
        greedy=mean + 0.1,
        pass_at_k=0.9,
        maj_at_k=0.9,
        length_mean=10.0,
        truncated_share=0.0,
    )


def test_it_says_how_the_model_was_made_and_what_it_can_do():
    algorithm = {"name": "grpo", "clip_high": 0.28}
    card = model_card(FACTS, recipe(algorithm=algorithm), [accuracy(0, 0.2), accuracy(20, 0.4), accuracy(40, 0.75)])
    for line in (
        "# first-try, step 50",
        "| base model | tiny |",
        "| recipe | tiny_sums, all of it in `recipe.toml` of the run |",
        "| step | 50 of 60 |",
        "| algorithm | grpo, clip_high 0.28 |",
        "| rewards | answer (number, weight 1) |",
        "| library | earned 1.2.3 |",
    ):
        assert line in card.splitlines()
    assert "held-out accuracy at step 0 | 0.200 [0.150, 0.250] (95 %), mean of 4 samples at temperature 1" in card
    assert "held-out accuracy at step 40 | 0.750 [0.700, 0.800] (95 %)" in card
    assert "| power | n = 256 can see a difference of 0.12 |" in card.splitlines()
    assert "step 20" not in card and "controls" not in card


def test_the_head_is_what_model_hubs_read():
    head = yaml.safe_load(model_card(FACTS, recipe(), []).split("---")[1])
    assert head == {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["reinforcement-learning", "earned"],
    }


def test_one_evaluation_is_one_line():
    card = model_card(FACTS, recipe(), [accuracy(0, 0.2)])
    assert card.count("held-out accuracy") == 1 and "power" not in card, "there is nothing to compare"


def test_without_held_out_problems_nothing_is_claimed():
    assert "not measured" in model_card(FACTS, recipe(), [])


def test_a_control_is_named():
    card = model_card(FACTS, recipe(rewards={"allow": ["random_reward"], "luck": {"check": "random"}}), [])
    assert "| controls allowed | random_reward |" in card.splitlines()


@pytest.mark.parametrize("step", [0, 60])
def test_the_step_is_that_of_the_checkpoint(step):
    facts = CardFacts(run="a", recipe_name="b", step=step, version="1")
    assert f"# a, step {step}" in model_card(facts, recipe(), [])
