from dataclasses import replace

import pytest
from tests.policy.models import tiny_policy
from tokenizers import processors

from earned.errors import RecipeError
from earned.policy.load import Policy
from earned.policy.prompts import render, render_all
from earned.policy.tiny import BOS_ID, EOS_ID
from earned.vocabulary import Example, Problem, Split

PLAIN = "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }};{% endfor %}"
WITH_PROMPT = PLAIN + "{% if add_generation_prompt %}[assistant]{% endif %}"
TEMPLATES = {
    "writes the BOS": "{{ bos_token }}" + WITH_PROMPT,
    "writes no BOS": WITH_PROMPT,
    "prefills the answer": "{{ bos_token }}" + WITH_PROMPT + "{% if add_generation_prompt %}think:\n{% endif %}",
    "writes an EOS after the question": "{{ bos_token }}" + PLAIN + "{{ eos_token }}[assistant]",
}


def problem(prompt: str = "47+58=", id: str = "p-1") -> Problem:
    return Problem(id=id, prompt=prompt, gold="105", source="sums", split=Split.TRAIN)


def raw_policy(template: str | None = None, around: str = "<bos> $A") -> Policy:
    """A policy whose tokeniser puts `around` around every text."""
    policy = tiny_policy("llama")
    policy.tokenizer.chat_template = template
    policy.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=around, special_tokens=[("<bos>", BOS_ID), ("<eos>", EOS_ID)]
    )
    return policy


@pytest.mark.parametrize("around", ["<bos> $A", "<bos> $A <eos>"])
def test_a_raw_prompt_has_one_bos_and_no_eos(around):
    policy = raw_policy(around=around)
    prompt = render(policy, problem())
    assert prompt.token_ids[0] == BOS_ID and prompt.token_ids.count(BOS_ID) == 1
    assert EOS_ID not in prompt.token_ids
    assert policy.decode(prompt.token_ids) == "47+58="


def test_a_tokeniser_without_special_tokens_adds_none():
    assert BOS_ID not in render(raw_policy(around="$A"), problem()).token_ids


@pytest.mark.parametrize("around", ["<bos> $A", "<bos> $A <eos>"])
@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_a_chat_prompt_is_what_the_template_makes(template, around):
    policy = raw_policy(template, around)
    token_ids = render(policy, problem()).token_ids
    expected = policy.tokenizer.apply_chat_template(
        [{"role": "user", "content": "47+58="}], add_generation_prompt=True, tokenize=True
    )["input_ids"]
    assert list(token_ids) == expected
    assert token_ids.count(BOS_ID) == template.count("bos_token")
    assert token_ids.count(EOS_ID) == template.count("eos_token")
    assert token_ids[-1] != EOS_ID


def test_a_second_bos_would_be_seen():
    policy = raw_policy(TEMPLATES["writes the BOS"])
    text = policy.tokenizer.apply_chat_template([{"role": "user", "content": "1"}], tokenize=False)
    assert policy.tokenizer(text)["input_ids"].count(BOS_ID) == 2


def test_every_prompt_is_rendered_in_order():
    policy = raw_policy()
    problems = [problem("1+1=", "a"), problem("22+22=", "b")]
    prompts = render_all(policy, problems, max_new_tokens=8)
    assert [prompt.problem for prompt in prompts] == problems
    assert prompts == tuple(render(policy, each) for each in problems)
    assert render_all(policy, [], max_new_tokens=8) == ()


def test_what_fits_exactly_is_whole_and_one_more_is_refused():
    policy = raw_policy()
    long, longest = problem("1" * 199, "long"), problem("1" * 200, "longest")
    assert policy.context == 256
    assert len(render_all(policy, [long], max_new_tokens=56)[0].token_ids) == 200
    with pytest.raises(RecipeError) as raised:
        render_all(policy, [problem(), longest, long], max_new_tokens=56)
    for word in ("problem longest:", "201 tokens", "max_new_tokens = 56", "256 tokens of context", "'llama'"):
        assert word in str(raised.value)


@pytest.mark.parametrize("around", ["$A", "<bos> $A", "<bos> $A <eos>"])
def test_an_empty_prompt_is_refused(around):
    with pytest.raises(RecipeError, match="problem hollow: its prompt is empty"):
        render_all(raw_policy(around=around), [problem(), problem("", "hollow")], max_new_tokens=8)


def test_a_prompt_of_which_the_tokeniser_keeps_nothing_is_refused():
    with pytest.raises(RecipeError, match="problem p-1: its prompt is empty"):
        render_all(raw_policy(around="$A"), [replace(problem(), prompt="é")], max_new_tokens=8)


EXAMPLES = tuple(Example(problem=problem(f"{n}+{n}=", f"e-{n}"), answer=f"{n} twice\n#### {2 * n}") for n in (1, 2))


def test_examples_come_before_a_raw_prompt_as_blocks():
    policy = raw_policy(around="<bos> $A <eos>")
    token_ids = render(policy, problem(), EXAMPLES).token_ids
    assert policy.decode(token_ids) == (
        "Question: 1+1=\nAnswer: 1 twice\n#### 2\n\n"
        "Question: 2+2=\nAnswer: 2 twice\n#### 4\n\n"
        "Question: 47+58=\nAnswer:"
    )
    assert token_ids[0] == BOS_ID and token_ids.count(BOS_ID) == 1 and EOS_ID not in token_ids


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_examples_come_before_a_chat_prompt_as_earlier_turns(template):
    policy = raw_policy(template)
    turns = [("user", "1+1="), ("assistant", "1 twice\n#### 2"), ("user", "2+2="), ("assistant", "2 twice\n#### 4")]
    expected = policy.tokenizer.apply_chat_template(
        [{"role": role, "content": content} for role, content in (*turns, ("user", "47+58="))],
        add_generation_prompt=True,
        tokenize=True,
    )["input_ids"]
    assert list(render(policy, problem(), EXAMPLES).token_ids) == expected
    assert render(policy, problem(), EXAMPLES) != render(policy, problem())


@pytest.mark.parametrize("template", [None, *TEMPLATES.values()], ids=["raw", *TEMPLATES])
def test_without_examples_everybody_reads_the_same_ids(template):
    policy = raw_policy(template)
    alone = render(policy, problem())
    assert alone == render(policy, problem(), ())
    assert (alone,) == render_all(policy, [problem()], 8) == render_all(policy, [problem()], 8, ())


def test_examples_that_do_not_fit_are_named():
    policy = raw_policy()
    long = (Example(problem=problem("1" * 220, "long"), answer="2"),)
    assert render_all(policy, [problem()], 8, EXAMPLES)
    with pytest.raises(RecipeError, match=r"its prompt with the worked examples has 2\d\d tokens.*show fewer examples"):
        render_all(policy, [problem()], 8, long)
