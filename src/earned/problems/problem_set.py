"""The problems of a run by split, and the order in which they are trained."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from earned.randomness import generator
from earned.recipe import PROMPT
from earned.vocabulary import Problem, Split


@dataclass(frozen=True, kw_only=True, slots=True)
class ProblemSet:
    """The frozen problems of a run; ids are unique over all splits."""

    train: tuple[Problem, ...]
    validation: tuple[Problem, ...]
    held_out: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    """What was chosen, counted and found faulty while loading, in sentences for people."""

    def __post_init__(self) -> None:
        problems = self.train + self.validation + self.held_out
        assert len({problem.id for problem in problems}) == len(problems), "a problem occurs twice"
        for split in Split:
            assert all(problem.split is split for problem in self.split(split)), f"a problem is no {split} problem"

    def asked(self, template: str) -> "ProblemSet":
        """Return the problems asked in the words of a template that holds `{prompt}`; ids and splits stay."""
        return replace(self, **{split.value: asked(self.split(split), template) for split in Split})

    def split(self, split: Split) -> tuple[Problem, ...]:
        """Return the problems of one split."""
        return {Split.TRAIN: self.train, Split.VALIDATION: self.validation, Split.HELD_OUT: self.held_out}[split]


def asked(problems: Iterable[Problem], template: str) -> tuple[Problem, ...]:
    """Return the problems with the template around their prompts."""
    return tuple(replace(problem, prompt=template.replace(PROMPT, problem.prompt)) for problem in problems)


def step_problems(problems: ProblemSet, seed: int, step: int, count: int) -> tuple[Problem, ...]:
    """Return the `count` training problems of step `step`, which counts from 1.

    Every epoch is a fresh permutation cut into `len(train) // count` steps; the remainder of it is dropped. So a
    problem comes at most once an epoch, never twice in a step, and a resumed run needs no state to go on.
    """
    assert step >= 1, "steps count from 1"
    assert 1 <= count <= len(problems.train), "a step cannot hold more problems than there are"
    epoch, place = divmod(step - 1, len(problems.train) // count)
    order = generator(seed, epoch, "problem order").permutation(len(problems.train))
    return tuple(problems.train[index] for index in order[place * count : (place + 1) * count])


def further_problems(
    problems: ProblemSet, seed: int, step: int, count: int, taken: Collection[str]
) -> tuple[Problem, ...]:
    """Return at most `count` training problems of step `step` beside those whose ids are `taken`, in random order."""
    others = [problem for problem in problems.train if problem.id not in taken]
    order = generator(seed, step, f"further problems after {len(taken)}").permutation(len(others))
    return tuple(others[index] for index in order[:count])
