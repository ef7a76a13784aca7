"""Problems as the model reads them. Train, sample and eval all call `render`, so they see identical ids."""

from collections.abc import Sequence

from earned.errors import RecipeError
from earned.policy.load import Policy
from earned.vocabulary import Example, Problem, Prompt

QUESTION, ANSWER, BETWEEN = "Question:", "Answer:", "\n\n"
"""How worked examples are laid out for a model that has no chat template."""


def render(policy: Policy, problem: Problem, examples: Sequence[Example] = ()) -> Prompt:
    """Return the prompt's ids: through the chat template where the tokeniser has one, else as plain text.

    Examples come before the problem, as earlier turns of the chat, or as blocks of `Question:` and `Answer:` of which
    the model writes the end of the last. Special tokens are added once, by the template or by the tokeniser, never by
    both.
    """
    tokenizer = policy.tokenizer
    if tokenizer.chat_template:
        messages = [*_turns(examples), {"role": "user", "content": problem.prompt}]
        text = str(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))
        token_ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    else:
        token_ids = tokenizer(_plain_text(problem, examples))["input_ids"]
        if token_ids and token_ids[-1] in policy.eos_ids:
            token_ids = token_ids[:-1]
    return Prompt(problem=problem, token_ids=tuple(token_ids))


def render_all(
    policy: Policy, problems: Sequence[Problem], max_new_tokens: int, examples: Sequence[Example] = ()
) -> tuple[Prompt, ...]:
    """Render every problem and refuse, naming the longest, any that would not fit; nothing is ever cut.

    Raises:
        RecipeError: a prompt is empty, or a prompt and `max_new_tokens` together exceed the model's context.
    """
    prompts = tuple(render(policy, problem, examples) for problem in problems)
    for prompt in prompts:
        if not (prompt.problem.prompt and prompt.token_ids):
            raise RecipeError(f"problem {prompt.problem.id}: its prompt is empty")
    longest = max(prompts, key=lambda prompt: len(prompt.token_ids), default=None)
    if longest is not None and len(longest.token_ids) + max_new_tokens > policy.context:
        shown, advice = (" with the worked examples", "show fewer examples, ") if examples else ("", "")
        raise RecipeError(
            f"problem {longest.problem.id}: its prompt{shown} has {len(longest.token_ids)} tokens; with "
            f"sampling.max_new_tokens = {max_new_tokens} that is more than the {policy.context} tokens of context of "
            f"model {policy.name!r}. Lower max_new_tokens, {advice}or leave long problems out"
        )
    return prompts


def before_next_question(text: str) -> str:
    r"""Return what a model without a chat template answers; after examples it often goes on to a question of its own.

    >>> before_next_question(" 2+2=4\n#### 4\n\nQuestion: 3+3=\nAnswer: #### 6")
    ' 2+2=4\n#### 4'
    """
    return text.partition(BETWEEN + QUESTION)[0]


def _turns(examples: Sequence[Example]) -> list[dict[str, str]]:
    return [
        turn
        for example in examples
        for turn in (
            {"role": "user", "content": example.problem.prompt},
            {"role": "assistant", "content": example.answer},
        )
    ]


def _plain_text(problem: Problem, examples: Sequence[Example]) -> str:
    if not examples:
        return problem.prompt
    blocks = [f"{QUESTION} {example.problem.prompt}\n{ANSWER} {example.answer}" for example in examples]
    return BETWEEN.join([*blocks, f"{QUESTION} {problem.prompt}\n{ANSWER}"])
