"""Next-token training of a small model from nothing, on written-out answers: how the built-in base is made."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from earned.optimization.optimizer import Optimizer
from earned.optimization.schedule import warmup_cosine
from earned.policy.load import Policy
from earned.policy.logprobs import token_scores
from earned.pretrain_recipe import PretrainRecipe
from earned.problems.sums import SumsOptions, long_answer, short_answer, stream
from earned.randomness import generator
from earned.rollouts.batching import by_length, padded_width
from earned.vocabulary import Split


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A prompt and the answer to imitate, EOS included."""

    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]

    @property
    def length(self) -> int:
        """Tokens of both."""
        return len(self.prompt_ids) + len(self.answer_ids)


def examples(policy: Policy, recipe: PretrainRecipe, options: SumsOptions) -> Iterator[list[Example]]:
    """Yield the examples of every step in order, a function of the recipe alone; only training problems occur."""
    per_step = recipe.optim.sequences_per_step
    problems = (problem for problem in stream(options, recipe.seed) if problem.split is Split.TRAIN)
    (eos,) = policy.eos_ids
    shares = [phase.long_share for phase in recipe.phases for _ in range(phase.steps)]
    for step, share in enumerate(shares, start=1):
        is_long = generator(recipe.seed, step, "pretrain/long").random(per_step) < share
        step_problems = list(islice(problems, per_step))
        answers = [
            long_answer(problem.prompt) if long else short_answer(problem.prompt)
            for problem, long in zip(step_problems, is_long, strict=True)
        ]
        prompts = policy.tokenizer([problem.prompt for problem in step_problems])["input_ids"]
        written = policy.tokenizer(answers, add_special_tokens=False)["input_ids"]
        yield [
            Example(prompt_ids=tuple(prompt), answer_ids=(*answer, eos))
            for prompt, answer in zip(prompts, written, strict=True)
        ]


def pretrain(
    policy: Policy, recipe: PretrainRecipe, options: SumsOptions, report: Callable[[int, float], None]
) -> None:
    """Train the policy in place; `report` gets every step and its mean loss in nats a token."""
    settings = recipe.optim
    optimizer = Optimizer(policy.parameters(), settings)
    for step, batch in enumerate(examples(policy, recipe, options), start=1):
        tokens = sum(len(example.answer_ids) for example in batch)
        loss = 0.0
        for micro in by_length(batch, settings.tokens_per_micro_batch):
            token_ids_BT, wanted_BT = _tensors(micro, policy.device)
            micro_loss = -token_scores(policy.model, token_ids_BT, wanted_BT, 1.0).logprobs_BT.sum() / tokens
            micro_loss.backward()
            loss += float(micro_loss.detach())
        optimizer.step(warmup_cosine(step, settings.learning_rate, settings.warmup_steps, recipe.steps))
        report(step, loss)


def _tensors(batch: Sequence[Example], device: torch.device) -> tuple[Tensor, Tensor]:
    shape = (len(batch), padded_width(max(example.length for example in batch)))
    token_ids_BT = torch.zeros(shape, dtype=torch.int64)
    wanted_BT = torch.zeros(shape, dtype=torch.bool)
    for index, example in enumerate(batch):
        token_ids_BT[index, : example.length] = torch.tensor((*example.prompt_ids, *example.answer_ids))
        wanted_BT[index, len(example.prompt_ids) : example.length] = True
    return token_ids_BT.to(device), wanted_BT.to(device)
