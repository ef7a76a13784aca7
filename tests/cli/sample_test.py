"""`earned sample`: many attempts at one problem, each marked right or wrong with its advantage."""

import json

import pytest
import torch

import earned as library
from earned.assembly import assemble
from earned.cli.sample import _summary
from earned.errors import RecipeError
from earned.recipe import Recipe
from earned.recipe_file import load
from earned.rollouts.engine import SamplingSettings
from earned.sandbox.workers import WorkerPool
from earned.task import task_of
from earned.vocabulary import Attempt, Split

SUM = ("sample", "tiny", "2+3=", "--max-new-tokens", "24")
JUDGED = (*SUM, "--answer", "5")
SETTINGS = SamplingSettings(group_size=8, temperature=1.0, max_new_tokens=24)
LENGTH_CHECK = "def short(completion):\n    return 1.0 if len(completion) < 4 else 0.25\n"


def row_of(ended):
    assert (ended.code, ended.err) == (0, "")
    (line,) = ended.out.splitlines()
    return json.loads(line)


def column(row, name):
    return [attempt[name] for attempt in row["attempts"]]


def mixed_row(earned, *words):
    """Attempts of which some are right and some are wrong, whatever the built-in model can do."""
    row = row_of(earned("sample", "tiny", "20+30+40=", "--answer", "90", "-n", "16", "--json", *words))
    assert 0 < row["right"] < 16, "this problem should be neither solved nor hopeless"
    return row


def test_rewards_and_advantages_are_what_the_checks_and_the_algorithm_say(earned):
    row = mixed_row(earned)
    rewards = column(row, "reward")
    assert rewards == [float(answer == "90") for answer in column(row, "extracted")]
    assert column(row, "right") == [reward == 1 for reward in rewards]
    mean = sum(rewards) / 16
    assert row["mean_reward"] == mean and row["right"] == sum(rewards)
    assert column(row, "advantage") == pytest.approx([reward - mean for reward in rewards])
    assert row["lesson"] == f"Of 16 attempts: {row['right']} made likelier, {16 - row['right']} made less likely."


def test_another_algorithm_makes_other_advantages_of_the_same_attempts(earned):
    default, grpo = mixed_row(earned), mixed_row(earned, "--algorithm", "grpo")
    assert column(grpo, "text") == column(default, "text")
    deviation = (default["mean_reward"] * (1 - default["mean_reward"])) ** 0.5
    assert column(grpo, "advantage") == pytest.approx([value / deviation for value in column(default, "advantage")])


def test_the_prompt_and_the_numbers_are_those_of_training(workplace):
    flags = {"model": "tiny", "rewards.luck.check": "number", "algorithm.name": "grpo"}
    recipe = load(Recipe, workplace / "recipe.toml", flags, environment={})
    with WorkerPool(1) as pool:
        training = assemble(task_of(recipe, pool), recipe.model)
        for prompt in training.prompts[Split.TRAIN][:4]:
            problem = prompt.problem
            sampled = library.sample("tiny", problem.prompt, SETTINGS, answer=problem.gold, algorithm="grpo")
            assert sampled.prompt.token_ids == prompt.token_ids
            attempts = {
                str(number): Attempt(problem=problem, text=attempt.text, seed=0, step=1, rollout_id=str(number))
                for number, attempt in enumerate(sampled.attempts)
            }
            rewards = [score.value for score in training.score(attempts).values()]
            assert [attempt.reward for attempt in sampled.attempts] == rewards
            advantages_PG = training.algorithm.advantage(torch.tensor([rewards], dtype=torch.float64), None)
            assert [attempt.advantage for attempt in sampled.attempts] == advantages_PG[0].tolist()


def test_the_same_seed_gives_the_same_attempts():
    first, again = (library.sample("tiny", "2+3=", SETTINGS, answer="5") for _ in range(2))
    assert first == again
    assert library.sample("tiny", "2+3=", SETTINGS, answer="5", seed=1) != first


def test_text_is_a_list_with_marks_advantages_and_the_answers_read(earned):
    ended = earned("sample", "tiny", "20+30+40=", "--answer", "90", "-n", "16")
    row = mixed_row(earned)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "20+30+40="
    heads = [line for line in lines if line[:3].strip().isdecimal()]
    for number, (head, attempt) in enumerate(zip(heads, row["attempts"], strict=True), start=1):
        mark = "right   " if attempt["right"] else "wrong   "
        start = f"{number:>3}  {mark}  reward {attempt['reward']:g}  advantage {attempt['advantage']:+.3f}  "
        assert head == f"{start}{attempt['tokens']} tokens"
    read = f"read {row['attempts'][0]['extracted']}; {row['attempts'][0]['explanation']}"
    assert lines[2:4] == [f"     {row['attempts'][0]['text']}", f"     {read}"]
    assert lines[-2:] == [f"{row['right']} of 16 right, mean reward {row['mean_reward']:.3g}.", row["lesson"]]


def test_without_an_answer_nothing_is_judged(earned):
    row = row_of(earned(*SUM, "-n", "2", "--json"))
    for name in ("right", "reward", "extracted", "explanation", "advantage"):
        assert column(row, name) == [None, None]
    assert (row["right"], row["mean_reward"], row["lesson"]) == (None, None, None)
    ended = earned(*SUM, "-n", "2")
    assert not {"right  ", "wrong  ", "advantage"} & set(ended.out.split())
    assert ended.out.splitlines()[-1] == "Nothing was judged; give the right answer with --answer."


def test_equal_rewards_teach_nothing(earned):
    row = row_of(earned(*JUDGED, "-n", "4", "--temperature", "0", "--json"))
    assert len(set(column(row, "text"))) == 1, "the most likely completion, four times"
    assert column(row, "advantage") == [0.0] * 4
    assert "the group teaches nothing" in row["lesson"]


def test_one_attempt_has_nothing_to_be_compared_with(earned):
    row = row_of(earned(*JUDGED, "-n", "1", "--json"))
    assert column(row, "advantage") == [0.0] and row["lesson"].startswith("One attempt has nothing to be compared")


def test_what_was_cut_off_says_so(earned):
    ended = earned("sample", "tiny", "2+3=", "--answer", "5", "-n", "2", "--max-new-tokens", "1")
    assert ended.out.count("1 tokens, cut off") == 2 and "read" not in ended.out


def test_a_check_of_the_users_own_judges_without_an_answer(earned, workplace):
    (workplace / "mine.py").write_text(LENGTH_CHECK)
    row = row_of(earned(*SUM, "-n", "8", "--check", "mine.py:short", "--json"))
    assert column(row, "reward") == [1.0 if len(text) < 4 else 0.25 for text in column(row, "text")]
    assert column(row, "right") == [reward == 1 for reward in column(row, "reward")]


def test_a_check_that_breaks_leaves_attempts_unscored(earned, workplace):
    (workplace / "mine.py").write_text("def broken(completion):\n    return 1 / 0\n")
    words = (*JUDGED, "-n", "2", "--check", "mine.py:broken")
    row = row_of(earned(*words, "--json"))
    assert column(row, "reward") == [None, None] and column(row, "advantage") == [0.0, 0.0]
    ended = earned(*words)
    assert ended.out.count("unscored") == 2 and ended.out.count("ZeroDivisionError") == 2
    assert ended.out.splitlines()[-1] == "No attempt could be judged, so there is nothing to learn from them."


def test_top_k_of_one_is_the_most_likely_completion(earned):
    greedy = column(row_of(earned(*SUM, "-n", "1", "--temperature", "0", "--json")), "text")
    for flags in (("--top-k", "1"), ("--top-p", "1e-9")):
        assert column(row_of(earned(*SUM, "-n", "3", *flags, "--json")), "text") == greedy * 3


def test_a_prompt_is_shown_as_it_is(earned):
    ended = earned("sample", "tiny", "[red]2+3=\x1b[2J", "-n", "1", "--max-new-tokens", "2")
    assert ended.out.splitlines()[0] == "[red]2+3=\\x1b[2J"


def test_a_negative_answer_is_no_flag(earned):
    assert row_of(earned(*SUM, "-n", "1", "--answer", "-5", "--json"))["answer"] == "-5"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--answer", "seven"), "answer: the check 'number' cannot read 'seven', so it could judge no attempt"),
        (("--answer", ""), "answer: the check 'number' cannot read ''"),
        (("--answer", "5", "--check", "nmber"), "unknown check 'nmber'"),
        (("--algorithm", "gpro"), "algorithm.name: no 'gpro'. Did you mean 'grpo'?"),
        (("-n", "0"), "group_size: 0 cannot be; give 1 or more attempts"),
        (("--temperature", "-1"), "temperature: -1.0 cannot be"),
        (("--temperature", "nan"), "temperature: nan cannot be"),
        (("--top-p", "0"), "top_p: 0.0 cannot be; give a share above 0 and at most 1"),
        (("--top-k", "-1"), "top_k: -1 cannot be"),
        (("--max-new-tokens", "0"), "max_new_tokens: 0 cannot be"),
    ],
)
def test_a_mistake_is_found_before_the_model_is_looked_for(earned, words, sentence):
    ended = earned("sample", "nowhere", "2+3=", *words)
    assert ended.code == 2 and ended.out == "" and sentence in ended.err
    assert "no such folder" not in ended.err


def test_a_prompt_that_does_not_fit_is_refused(earned):
    assert "256 tokens of context" in earned("sample", "tiny", "2+3=", "--max-new-tokens", "999").err
    assert "its prompt is empty" in earned("sample", "tiny", "").err


def test_an_algorithm_without_a_sentence_has_no_lesson(monkeypatch):
    from earned import sampling

    monkeypatch.setattr(sampling, "COMPARISONS", {})
    sampled = library.sample("tiny", "2+3=", SETTINGS, answer="5")
    assert sampled.lesson is None and len(_summary(sampled)) == 1


def test_a_refusal_reaches_the_library_too():
    with pytest.raises(RecipeError, match="cannot read 'five'"):
        library.sample("tiny", "2+3=", SETTINGS, answer="five")
