"""Which split a problem belongs to: decided by a hash of the problem itself, never by seed, order or file.

So a problem cannot be trained on in one run and reported on in another, and text that differs only in spaces, letter
case or compatible Unicode forms is the same problem.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import PurePath

from earned.errors import RecipeError
from earned.problems.problem_set import ProblemSet
from earned.vocabulary import Problem, Split

TRAIN_SHARE = 0.8
VALIDATION_SHARE = 0.1
"""Of all problems; what is left is held out."""

PATIENCE = 20
"""A source that repeats itself is spent after this many draws for every problem found, none of them new: where N
problems are equally likely, one not yet seen would be missed with probability exp(-20)."""


def problem_hash(prompt: str, gold: str | None) -> str:
    """Return 32 hex digits, equal for two problems exactly when they count as the same one.

    >>> problem_hash("What is  2+2?", "4") == problem_hash("what is 2+2? ", "4")
    True
    """
    # A normalised text holds no line break, so one can part the two without ambiguity.
    text = "\n".join(_normalised(part) for part in (prompt, gold) if part is not None)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def place_of(prompt: str, gold: str | None) -> float:
    """Return the place of a problem in [0, 1), uniform over problems: below .8 train, below .9 validation."""
    return int(problem_hash(prompt, gold)[:13], 16) / 16**13


def make_problem(
    prompt: str,
    gold: str | None,
    source: str,
    columns: Mapping[str, object] | None = None,
    *,
    cluster: str | None = None,
    shares: tuple[float, float] = (TRAIN_SHARE, VALIDATION_SHARE),
) -> Problem:
    """Return the problem with the id and the split that its text gives it; files are named in the id by their stem.

    Args:
        prompt: What is asked.
        gold: The right answer, or None.
        source: Name of the built-in, or path of the file.
        columns: Further columns of its row.
        cluster: What the problem is one wording of; it then decides the split in the place of the prompt.
        shares: Of training and validation; what is left is held out.
    """
    place = place_of(prompt if cluster is None else cluster, gold)
    train, validation = shares
    return Problem(
        id=f"{PurePath(source).stem}-{problem_hash(prompt, gold)[:12]}",
        prompt=prompt,
        gold=gold,
        source=source,
        split=Split.TRAIN if place < train else Split.VALIDATION if place < train + validation else Split.HELD_OUT,
        columns=columns or {},
        cluster=cluster,
    )


def id_hash(problem_id: str) -> str:
    """Return the part of a problem's id that depends on its text alone; the rest names the file it was read from.

    >>> here, there = (make_problem("2+2=", "4", source) for source in ("a/my.jsonl", "b/copy-of-my.csv"))
    >>> here.id == there.id, id_hash(here.id) == id_hash(there.id)
    (False, True)
    """
    return problem_id.rpartition("-")[2]


def first_by_hash(problems: Sequence[Problem], count: int) -> tuple[Problem, ...]:
    """Return at most so many of the problems, in their order.

    Which ones are left when there are more is decided by their hash: files are often sorted, and neither the seed nor a
    new order of the file changes what an evaluation measures.
    """
    ids = set(sorted(problem.id for problem in problems)[:count])
    return tuple(problem for problem in problems if problem.id in ids)


def choose_splits(
    problems: Iterable[Problem], train: int, validation: int, held_out: int, *, exact: bool = True
) -> ProblemSet:
    """Return the first so many different problems of each split.

    Draws until every split has its count, so the source may be endless; a problem drawn again is dropped.

    Raises:
        RecipeError: when the source ends, or only repeats itself, before every split is full. Unless `exact`, what
            there is then is enough.
    """
    wanted = {Split.TRAIN: train, Split.VALIDATION: validation, Split.HELD_OUT: held_out}
    chosen: dict[Split, list[Problem]] = {split: [] for split in Split}
    seen: set[str] = set()
    repeats = 0
    for problem in problems:
        repeats = repeats + 1 if problem.id in seen else 0
        if repeats > PATIENCE * len(seen):
            break
        if problem.id not in seen and len(chosen[problem.split]) < wanted[problem.split]:
            chosen[problem.split].append(problem)
        seen.add(problem.id)
        if all(len(chosen[split]) == wanted[split] for split in Split):
            break
    if exact:
        _require(chosen, wanted, len(seen))
    return _problem_set(chosen)


def take_splits(problems: Sequence[Problem], train: int, validation: int, held_out: int) -> ProblemSet:
    """Return at most so many of the problems of each split, in their order; all of them different.

    Which ones are left when there are more is decided by `first_by_hash`.

    Raises:
        RecipeError: when no problem falls into a split of which the recipe wants some.
    """
    wanted = {Split.TRAIN: train, Split.VALIDATION: validation, Split.HELD_OUT: held_out}
    found = {split: [problem for problem in problems if problem.split is split] for split in Split}
    for split in Split:
        if wanted[split] and not found[split]:
            counts = ", ".join(f"{len(found[each])} {each.value}" for each in Split)
            instead = "" if split is Split.TRAIN else f", or set problems.{split.value} = 0"
            raise RecipeError(
                f"problems.{split.value}: no problem of the source falls into this split ({counts}; a hash of its text "
                f"puts each problem into one). Add problems{instead}"
            )
    return _problem_set({split: first_by_hash(found[split], wanted[split]) for split in Split})


def _problem_set(chosen: Mapping[Split, Sequence[Problem]]) -> ProblemSet:
    train, validation, held_out = (tuple(chosen[split]) for split in (Split.TRAIN, Split.VALIDATION, Split.HELD_OUT))
    return ProblemSet(train=train, validation=validation, held_out=held_out)


def _require(chosen: Mapping[Split, list[Problem]], wanted: Mapping[Split, int], different: int) -> None:
    short = [split for split in Split if len(chosen[split]) < wanted[split]]
    if not short:
        return
    counts = ", ".join(f"{len(chosen[split])} of {wanted[split]} {split.value}" for split in Split)
    keys = " and ".join(f"problems.{split.value}" for split in short)
    raise RecipeError(
        f"{keys}: the source has too few problems: found {counts} among {different} different ones. "
        "Ask for fewer, or widen the source (problems.options)"
    )


def _normalised(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())
