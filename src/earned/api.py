"""The library: `train`, `resume`, `pretrain_model`. Parts are wired together here and in its neighbours of layer 5."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError

from earned.assembly import Assembled, assemble, training_of, training_prompts
from earned.errors import RecipeError, RecordError
from earned.observer import Listener, RunObserver, Silence
from earned.optimization.allocator import keep_freed_memory
from earned.policy.load import save_policy
from earned.policy.tiny import untrained_policy
from earned.preflight import outlook, preflight
from earned.pretrain_recipe import PretrainRecipe
from earned.problems.sums import SumsOptions
from earned.recipe import Recipe, Rewards
from earned.recipe_file import load, to_toml, validate
from earned.records.environment import write_environment
from earned.records.reader import RunReader
from earned.records.run_folder import create_run_folder, require_free, run_database
from earned.records.writer import RecordWriter
from earned.reward_probe import require_sound_reward
from earned.rewards.user_reward import HANDED_OVER, RewardFunction
from earned.sandbox.workers import WorkerPool
from earned.task import WORKERS, task_of
from earned.training.checkpoints import checkpoints, load_progress
from earned.training.loop import train as run_loop
from earned.training.pretrain import pretrain
from earned.training.progress import Progress
from earned.vocabulary import EvaluationResult, Split

FINISHED = "finished"
"""The status of a run that has taken all its steps; one that can go on is `running`, `stopped` or `failed`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainResult:
    """What a run achieved on the held-out problems; the accuracies are None where there are none."""

    run: Path
    before: EvaluationResult | None
    after: EvaluationResult | None
    seconds: float
    """Wall-clock seconds of all recorded steps with their evaluations, records and checkpoints, over every session of
    the run; loading, and the evaluation at step 0, are not among them."""
    finished: bool
    """False when the run was asked to stop early and can be resumed."""
    weights_changed: bool
    model: Path | None
    """The newest checkpoint, an ordinary model folder."""

    @property
    def gain(self) -> float | None:
        """Held-out accuracy after minus before."""
        return None if self.before is None or self.after is None else self.after.mean - self.before.mean


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """Where a run goes and what becomes of one that is there already."""

    runs: Path = Path("runs")
    name: str | None = None
    """None gives a new name made of the recipe's and the time."""
    recipe_name: str = "run"
    overwrite: bool = False


def train(
    recipe: Recipe,
    options: RunOptions | None = None,
    *,
    reward: RewardFunction | None = None,
    listener: Listener | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
) -> TrainResult:
    """Train a model by reinforcement learning into a new run folder.

    `reward` is called by keyword like a function of a file, but in this process: see `rewards/user_reward.py`. It is
    the part of the recipe with `check = "python"`, or where there is none the whole reward, in place of the recipe's.

    Before the model is loaded the reward is tried on right answers and on texts that must earn nothing. Before anything
    is written a few attempts show whether there is anything to learn, and what the run will cost.

    Raises:
        RecipeError: something in the recipe, the problems or the model cannot work, or the reward can be had without
            the answer (see `reward_probe.py`) and `rewards.allow` does not say so; nothing was written.
        PreflightError: the first attempts taught nothing; nothing was written.
        RecordError: the run folder exists already or cannot be written.
        VerifierError: too many completions of a step could not be scored, or `reward` took too long.
        EngineError: the gradient stayed non-finite.
    """
    options = options or RunOptions()
    recipe = _with_function(recipe, reward)
    listener = listener or Silence()
    require_free(options.runs, options.name, overwrite=options.overwrite)
    with WorkerPool(WORKERS) as pool:
        task = task_of(recipe, pool, reward)
        require_sound_reward(task)
        assembled = assemble(task, recipe.model)
        for note in assembled.problems.notes:
            listener.said(note)
        expected = outlook(assembled, preflight(assembled))
        for text in expected.sentences:
            listener.said(text)
        folder = create_run_folder(options.runs, options.name, options.recipe_name, overwrite=options.overwrite)
        (folder / "recipe.toml").write_text(to_toml(assembled.recipe), encoding="utf-8")
        write_environment(folder)
        writer = RecordWriter(run_database(folder))
        for key, value in {"recipe": options.recipe_name, **assembled.file_hashes}.items():
            writer.meta(key, value)
        writer.problems([*assembled.problems.train, *assembled.problems.validation, *assembled.problems.held_out])
        for note in assembled.problems.notes:
            writer.event(0, "problems", note, {})
        for text in expected.sentences:
            writer.event(0, "estimate", text, {})
        return _run(assembled, folder, writer, _start(assembled), listener, stop_requested, expected.seconds)


def resume(
    folder: Path,
    expected: Recipe | None = None,
    *,
    reward: RewardFunction | None = None,
    listener: Listener | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
) -> TrainResult:
    """Go on with a run from its newest checkpoint, as if it had never stopped; a finished one is only read.

    Raises what `train` raises, RecordError when the folder holds no run, and RecipeError when the run was started
    with another recipe than `expected`, or the file of a reward has changed.
    """
    if not run_database(folder).is_file():
        raise RecordError(f"{folder}: there is no run here to resume")
    recipe = load(Recipe, folder / "recipe.toml", environment={})
    _require_same(recipe, _with_function(expected or recipe, reward))
    saved, meta = checkpoints(folder / "checkpoints"), RunReader(run_database(folder)).meta()
    with WorkerPool(WORKERS) as pool:
        assembled = assemble(task_of(recipe, pool, reward), str(saved[-1]) if saved else recipe.model)
        _require_same_files(meta, assembled.file_hashes)
        if meta.get("status") == FINISHED:
            return _result(folder)
        prompts = training_prompts(assembled)
        progress = load_progress(saved[-1], assembled.learners, prompts) if saved else _start(assembled)
        writer = RecordWriter(run_database(folder), resume=True)
        writer.truncate_after(progress.step if saved else -1)
        return _run(assembled, folder, writer, progress, listener or Silence(), stop_requested)


def pretrain_model(recipe: PretrainRecipe, output: Path, report: Callable[[int, float], None]) -> Path:
    """Train a small model from nothing and save it, weights in bfloat16, as an ordinary model folder.

    Raises:
        RecipeError: the data options are wrong.
        RecordError: the output folder holds something or cannot be written.
    """
    if recipe.data.source != "sums":
        raise RecipeError(f"data.source: only 'sums' has written-out answers to imitate, not {recipe.data.source!r}")
    options = validate(SumsOptions, recipe.data.options, "data.options")
    _make_model_folder(output)
    keep_freed_memory()
    policy = untrained_policy(recipe.model, recipe.seed)
    pretrain(policy, recipe, options, report)
    policy.model.bfloat16()
    try:
        save_policy(policy, output)
    except (OSError, SafetensorError) as error:
        raise RecordError(f"{output}: the model could not be written: {error}") from error
    return output


def _make_model_folder(output: Path) -> None:
    # Before the training, which takes long: a folder that cannot be written should not cost it.
    if output.is_file() or (output.is_dir() and any(output.iterdir())):
        raise RecordError(f"{output}: exists already; choose another folder for the model")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(f"{output}: the model cannot be written here: {error.strerror or error}") from error


def _run(
    parts: Assembled,
    folder: Path,
    writer: RecordWriter,
    progress: Progress,
    listener: Listener,
    stop_requested: Callable[[], bool],
    expected_seconds: float | None = None,
) -> TrainResult:
    recipe = parts.recipe
    observer = RunObserver(
        recipe=recipe,
        folder=folder,
        learners=parts.learners,
        engine=parts.engine,
        problems=parts.problems.train,
        evaluation_prompts={split: parts.prompts[split] for split in parts.measured},
        watched_prompts=parts.prompts[Split.HELD_OUT][: recipe.evaluation.watched],
        score_answers=parts.score_answers,
        writer=writer,
        listener=listener,
        stop_requested=stop_requested,
        expected_seconds=expected_seconds,
        best=_best_validation(folder),
        weights_changed=_weights_changed(folder),
    )
    with writer:
        writer.meta("status", "running")
        try:
            reached = run_loop(training_of(parts, observer), progress)
        except BaseException:
            writer.meta("status", "failed")
            raise
        writer.meta("status", FINISHED if reached.step >= recipe.steps else "stopped")
    return _result(folder)


def _start(parts: Assembled) -> Progress:
    return Progress(divergence_weight=parts.algorithm.divergence_weight)


def _result(folder: Path) -> TrainResult:
    """Return what the record says, which is the same however often the run was interrupted."""
    reader = RunReader(run_database(folder))
    evaluations = reader.evaluations(Split.HELD_OUT)
    parts = [row.seconds for row in reader.steps()]
    saved = checkpoints(folder / "checkpoints")
    return TrainResult(
        run=folder,
        before=evaluations[0] if evaluations else None,
        after=evaluations[-1] if evaluations else None,
        seconds=sum(part.total + part.record + part.checkpoint for part in parts),
        finished=reader.meta().get("status") == FINISHED,
        weights_changed=_weights_changed(folder),
        model=saved[-1] if saved else None,
    )


def _best_validation(folder: Path) -> EvaluationResult | None:
    """Return the first of the best evaluations that a resumed run has behind it."""
    evaluations = RunReader(run_database(folder)).evaluations(Split.VALIDATION)
    return max(evaluations, key=lambda result: result.mean, default=None)


def _weights_changed(folder: Path) -> bool:
    """Return whether the weights changed in the steps on record."""
    shares = RunReader(run_database(folder)).metric("update/weights_changed_share")
    return any(share > 0 for _, share in shares)


def _require_same(stored: Recipe, expected: Recipe) -> None:
    # The stored precision is the resolved one.
    optim = expected.optim.model_copy(update={"precision": stored.optim.precision})
    if stored != expected.model_copy(update={"optim": optim}):
        raise RecipeError("--resume: the run was started with another recipe; resume goes on with the same one")


def _require_same_files(stored: Mapping[str, str], hashes: Mapping[str, str]) -> None:
    for key, digest in hashes.items():
        if stored.get(key) != digest:
            raise RecipeError(
                f"--resume: the file of {key.partition('/')[2]!r} has changed since the run was started "
                f"(SHA-256 {str(stored.get(key))[:12]} then, {digest[:12]} now), so its rewards would not be the same. "
                "Put the old file back, or start a new run"
            )


def _with_function(recipe: Recipe, function: RewardFunction | None) -> Recipe:
    """Return the recipe with the function as its whole reward, unless a part is meant for it."""
    rewards = recipe.rewards
    if function is None or any(part.check == HANDED_OVER for part in rewards.parts.values()):
        return recipe
    kept = rewards.model_dump(include={"allow", "max_unscored_share"})
    name = getattr(function, "__name__", type(function).__name__)
    return recipe.model_copy(update={"rewards": validate(Rewards, {**kept, name: {"check": HANDED_OVER}}, "rewards")})
