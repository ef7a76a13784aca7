"""Which problems a model is measured on.

A file that is given for an evaluation is an evaluation set: all of its usable rows are measured, whatever split a run
would put them into. What must not be measured is left out, and a sentence says how much and why.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from earned.errors import RecipeError
from earned.problems.lint import Parse, prompt_keys
from earned.problems.problem_set import ProblemSet
from earned.problems.shapes import counted
from earned.problems.sources import built_in, read_source
from earned.problems.splits import choose_splits, first_by_hash, id_hash
from earned.recipe import Problems
from earned.vocabulary import Example, Problem, Split


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Problems that must not be measured."""

    why: str
    """A sentence about "them"."""
    concerns: Callable[[Problem], bool]


def evaluation_set(
    wanted: Problems,
    seed: int,
    limit: int | None = None,
    parse: Parse | None = None,
    exclusions: Collection[Exclusion] = (),
) -> ProblemSet:
    """Return the problems to measure, all of them held out; asked in the words of `problems.template`.

    Args:
        wanted: Source, options and template; the counts are those of a run, except `held_out` for a built-in.
        seed: Of a built-in.
        limit: At most so many problems, chosen by their hash; None means all of a finite source, and as many of a
            built-in as `problems.held_out` says.
        parse: Reads a gold answer as the check does, to count the rows that it cannot read.
        exclusions: What to leave out; of a finite source the limit counts what is left.

    Raises:
        RecipeError: a limit below 1, what `load_problems` raises, or nothing is left to measure.
    """
    if limit is not None and limit < 1:
        raise RecipeError(f"limit: at least 1 problem, not {limit}")
    found = _found(wanted, seed, limit, parse)
    for exclusion in exclusions:
        found = _without(found, exclusion)
    if not found.held_out:
        raise RecipeError("problems.held_out: 0 problems, so there is nothing to evaluate")
    chosen = first_by_hash(found.held_out, limit or len(found.held_out))
    if len(chosen) < len(found.held_out):
        found = _noted(found, f"measured: {len(chosen):,} of {counted(len(found.held_out), 'problem')}")
    return replace(found, held_out=chosen).asked(wanted.template)


def trained_on(run: str, ids: Collection[str]) -> Exclusion:
    """Return what leaves out the problems with these ids, whatever file they are read from now."""
    hashes = {id_hash(each) for each in ids}
    return Exclusion(f"the run {run} trained on them or chose by them", lambda problem: id_hash(problem.id) in hashes)


def shown(examples: Collection[Example]) -> Exclusion:
    """Return what leaves out the problems that ask what an example answers."""
    keys = prompt_keys([example.problem for example in examples])
    return Exclusion("the worked examples show them", lambda problem: not keys.isdisjoint(prompt_keys([problem])))


def _found(wanted: Problems, seed: int, limit: int | None, parse: Parse | None) -> ProblemSet:
    if (endless := built_in(wanted.source)) is not None:
        stream = endless(wanted.options, seed)
        found = choose_splits(stream, train=0, validation=0, held_out=limit or wanted.held_out, exact=False)
        return replace(found, notes=(f"{wanted.source}: built in; held-out problems, which no run trains on",))
    source = read_source(wanted.source, wanted.options, parse)
    held_out = tuple(replace(problem, split=Split.HELD_OUT) for problem in source.problems)
    return ProblemSet(train=(), validation=(), held_out=held_out, notes=(source.heading, *source.faults))


def _without(found: ProblemSet, exclusion: Exclusion) -> ProblemSet:
    kept = tuple(problem for problem in found.held_out if not exclusion.concerns(problem))
    gone = len(found.held_out) - len(kept)
    if not gone:
        return found
    sentence = f"{counted(gone, 'problem')} left out: {exclusion.why}"
    if not kept:
        raise RecipeError(f"problems: nothing is left to evaluate: {sentence}. Name other problems")
    return _noted(replace(found, held_out=kept), sentence)


def _noted(found: ProblemSet, sentence: str) -> ProblemSet:
    return replace(found, notes=(*found.notes, sentence))
