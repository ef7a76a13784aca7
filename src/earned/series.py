"""One recipe under several seeds: what a result is worth, since a single run may have been lucky."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from earned import api
from earned.errors import RecipeError, RecordError
from earned.observer import Listener, Silence
from earned.recipe import Recipe
from earned.records.run_folder import automatic_name, require_free, run_database
from earned.rewards.user_reward import RewardFunction

Watch = Callable[[Recipe, Path], AbstractContextManager[Listener]]
"""Gives the listener of the run of that recipe in that folder, which is entered when the run begins."""


def _in_silence(recipe: Recipe, folder: Path) -> AbstractContextManager[Listener]:
    return nullcontext(Silence())


def train_seeds(
    recipe: Recipe,
    seeds: int,
    options: api.RunOptions | None = None,
    *,
    reward: RewardFunction | None = None,
    resume: bool = False,
    watch: Watch = _in_silence,
    stop_requested: Callable[[], bool] = lambda: False,
) -> tuple[api.TrainResult, ...]:
    """Train the recipe under its own seed and the ones that follow, one run after the other, into `NAME-seedN` each.

    With `resume`, runs that have finished are read, those that were interrupted go on, and those that are missing are
    started. When a stop is requested, the run it falls into is the last of the results; `finished` says whether it can
    go on. A built-in source makes other problems for every seed; a file gives all runs the same ones.

        results = earned.train_seeds(recipe, 3, earned.RunOptions(name="sums"))
        gains = [result.gain for result in results]
        print(earned.mean_interval(gains))

    Raises:
        RecipeError: what `train` and `resume` refuse, or fewer than one seed.
        RecordError: one of the folders is taken, found before the first run begins; with `resume`, none is there.
    """
    if seeds < 1:
        raise RecipeError(f"seeds: 1 or more, not {seeds}")
    options = options or api.RunOptions()
    prefix = options.name or automatic_name(options.recipe_name)
    names = {seed: f"{prefix}-seed{seed}" for seed in range(recipe.seed, recipe.seed + seeds)}
    _require_usable([*names.values()], options, resume=resume)
    results: list[api.TrainResult] = []
    for seed, name in names.items():
        one, folder = recipe.model_copy(update={"seed": seed}), options.runs / name
        with watch(one, folder) as listener:
            if resume and run_database(folder).is_file():
                result = api.resume(folder, one, reward=reward, listener=listener, stop_requested=stop_requested)
            else:
                where = replace(options, name=name)
                result = api.train(one, where, reward=reward, listener=listener, stop_requested=stop_requested)
        results.append(result)
        if stop_requested() or not result.finished:
            break
    return tuple(results)


def _require_usable(names: list[str], options: api.RunOptions, *, resume: bool) -> None:
    # Before the first run, which may take hours: a name that is taken should not cost them.
    if not resume:
        for name in names:
            require_free(options.runs, name, overwrite=options.overwrite)
    elif not any(run_database(options.runs / name).is_file() for name in names):
        raise RecordError(f"{options.runs / names[0]}: there is no run here to resume, nor of another seed")
