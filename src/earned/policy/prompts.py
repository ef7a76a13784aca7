"""Problems as the model reads them. Train, sample and eval all call `render`, so they see identical ids."""

from collections.abc import Sequence

from earned.errors import RecipeError
from earned.policy.load import Policy
from earned.vocabulary import Problem, Prompt


def render(policy: Policy, problem: Problem) -> Prompt:
    """Return the prompt's ids: through the chat template where the tokeniser has one, else as plain text.

    Special tokens are added once, by the template or by the tokeniser, never by both.
    """
    tokenizer = policy.tokenizer
    if tokenizer.chat_template:
        messages = [{"role": "user", "content": problem.prompt}]
        text = str(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))
        token_ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    else:
        token_ids = tokenizer(problem.prompt)["input_ids"]
        if token_ids and token_ids[-1] in policy.eos_ids:
            token_ids = token_ids[:-1]
    return Prompt(problem=problem, token_ids=tuple(token_ids))


def render_all(policy: Policy, problems: Sequence[Problem], max_new_tokens: int) -> tuple[Prompt, ...]:
    """Render every problem and refuse, naming the longest, any that would not fit; nothing is ever cut.

    Raises:
        RecipeError: a prompt is empty, or a prompt and `max_new_tokens` together exceed the model's context.
    """
    prompts = tuple(render(policy, problem) for problem in problems)
    for prompt in prompts:
        if not (prompt.problem.prompt and prompt.token_ids):
            raise RecipeError(f"problem {prompt.problem.id}: its prompt is empty")
    longest = max(prompts, key=lambda prompt: len(prompt.token_ids), default=None)
    if longest is not None and len(longest.token_ids) + max_new_tokens > policy.context:
        raise RecipeError(
            f"problem {longest.problem.id}: its prompt has {len(longest.token_ids)} tokens; with "
            f"sampling.max_new_tokens = {max_new_tokens} that is more than the {policy.context} tokens of context of "
            f"model {policy.name!r}. Lower max_new_tokens or leave long problems out"
        )
    return prompts
