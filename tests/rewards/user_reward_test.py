import random
import re
import signal
import sys
import time
from hashlib import sha256

import pytest

from earned import api
from earned.cli.main import main
from earned.errors import RecipeError, VerifierError
from earned.policy.load import save_policy
from earned.policy.tiny import untrained_policy
from earned.pretrain_recipe import PretrainModel
from earned.recipe import Recipe, Rewards
from earned.recipe_file import load, validate
from earned.records.reader import RunReader
from earned.rewards.compose import Rewarder, require_scored
from earned.rewards.user_reward import Resources
from earned.sandbox.workers import WorkerPool
from earned.vocabulary import Attempt, Problem, Rule, ScoreStatus, Split

SOURCE = """
import asyncio, os, sys, time

def judge(text, gold):
    if text == "raise":
        raise ValueError("by design")
    if text == "hang":
        while True:
            pass
    if text == "crash":
        os._exit(3)
    if text == "exit":
        sys.exit(0)
    if text in ("numpy", "torch"):
        import importlib
        module = importlib.import_module(text)
        return module.float32(0.5) if text == "numpy" else module.tensor(0.5)
    odd = {"nan": float("nan"), "inf": float("inf"), "huge": 10**400, "text": "1.0", "none": None, "true": True,
           "false": False, "list": [1.0], "object": object()}
    return odd.get(text, float(text == gold))

def batch(completions, answer, **kwargs):
    return [judge(text, gold) for text, gold in zip(completions, answer)]

async def waiting(prompts, completions, answer, **kwargs):
    await asyncio.sleep(0.001)
    return batch(completions, answer)

def row(completion, answer):
    return judge(completion, answer)

async def waiting_row(prompt, completion, answer, **kwargs):
    return judge(completion, answer)

def short(completions, **kwargs):
    return [1.0] * (len(completions) - 1)

def single(completions, **kwargs):
    return [1.0]

def bare(completions, **kwargs):
    return 1.0

def word(completions, **kwargs):
    return "ok"

def never(completions, **kwargs):
    return [None for _ in completions]

def nap(completions, **kwargs):
    time.sleep(0.5)
    return [float(len(text)) for text in completions]

def sleepy(completions, **kwargs):
    time.sleep(60)

def penalty(completion):
    while completion == "sleep":
        pass
    return -2.0 if completion == "bad" else 1.0

def sleepy_row(completions, **kwargs):
    if "sleep" in completions:
        time.sleep(60)
    return [1.0 for _ in completions]

def memory(completions, **kwargs):
    return [float(len(bytearray(400 * 2**20)) > 0) for _ in completions]

def by_level(completions, level, topic=None, **kwargs):
    assert kwargs["answer"] and "prompts" in kwargs and "extra" in kwargs
    return [float(number) for number in level]

def by_level_row(completion, level, extra):
    return level + (0.5 if extra is None else 0)

def positional(texts, golds):
    return []

def blind(answer):
    return [1.0 for _ in answer]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rewards")
    (folder / "my.py").write_text(SOURCE)
    return folder


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(4) as pool:
        yield pool


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def attempts(*texts, **columns):
    """Return one attempt a text; the right answer is 124."""
    problem = Problem(id="p", prompt="47+58+19=", gold="124", source="sums", split=Split.TRAIN, columns=columns)
    ids = [f"train/1/p/{n}" for n in range(len(texts))]
    return {
        name: Attempt(problem=problem, text=text, seed=0, step=1, rollout_id=name)
        for name, text in zip(ids, texts, strict=True)
    }


def rewarder(pool, *functions, columns=(), **options):
    parts = {name: {"check": f"my.py:{name}", "options": options} for name in functions}
    return Rewarder.from_recipe(validate(Rewards, parts), Resources(pool=pool, columns=columns))


def scores(pool, function, *texts, **options):
    return list(rewarder(pool, function, **options).score_all(attempts(*texts)).values())


KINDS = ["batch", "waiting", "row", "waiting_row"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_function_scores(pool, kind):
    found = scores(pool, kind, "124", "7", "true", "false", "numpy")
    assert [score.value for score in found] == [1.0, 0.0, 1.0, 0.0, 0.5]
    assert {score.status for score in found} == {ScoreStatus.SCORED}
    assert found[0].explanation == f"{kind}: my.py:{kind} gave 1"


def test_a_torch_scalar_is_a_number(pool):
    assert [score.value for score in scores(pool, "batch", "torch", "124", limit_seconds=60)] == [0.5, 1.0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("raise", "raised: ValueError: by design (my.py:6 in judge)"),
        ("exit", "raised: SystemExit: 0 (my.py:13 in judge)"),
        ("nan", "returned nan (float), which is no finite number"),
        ("inf", "returned inf (float), which is no finite number"),
        ("huge", "(int), which is no finite number"),
        ("text", "returned '1.0' (str), which is no finite number"),
        ("list", "returned [1.0] (list), which is no finite number"),
        ("object", "raised: TypeError: a value of type object is no number"),
        ("none", "returned None: not applicable"),
    ],
)
def test_one_bad_row_is_unscored_with_its_reason_and_the_others_are_scored(pool, kind, bad, reason):
    found = scores(pool, kind, "124", bad, "7", "124")
    assert [score.value for score in found] == [1.0, None, 0.0, 1.0]
    assert found[1].status is ScoreStatus.UNSCORED
    assert f"my.py:{kind}" in found[1].explanation and reason in found[1].explanation


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_that_hangs_is_found_and_the_next_batch_is_scored(pool, kind):
    check = rewarder(pool, kind, limit_seconds=0.5)
    found = list(check.score_all(attempts("124", "hang", "7", "124")).values())
    assert [score.value for score in found] == [1.0, 0.0, 0.0, 1.0]
    assert found[1].parts[0].rule is Rule.TIMED_OUT
    assert re.search(r"timed out: ran longer than 0\.5 s, in my\.py:[89] in judge < my\.py:", found[1].explanation)
    assert [score.value for score in check.score_all(attempts("124", "7")).values()] == [1.0, 0.0]


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_that_ends_the_process_is_wrong_and_the_others_are_scored(pool, kind):
    found = scores(pool, kind, "124", "crash", "7", "124")
    assert [score.value for score in found] == [1.0, 0.0, 0.0, 1.0]
    assert "died: the process ended with exit code 3" in found[1].explanation


def test_what_hangs_is_the_worst_under_a_negative_weight_too(pool):
    check = Rewarder.from_recipe(
        validate(Rewards, {"mine": {"check": "my.py:penalty", "weight": -1.0, "options": {"limit_seconds": 0.3}}}),
        Resources(pool=pool),
    )
    found = list(check.score_all(attempts("sleep", "fine", "bad")).values())
    assert [score.value for score in found] == [-1.0, -1.0, 2.0]


def test_a_row_that_sleeps_a_minute_holds_a_step_up_for_less_than_five_seconds(pool):
    check = rewarder(pool, "sleepy_row", limit_seconds=2)
    start = time.monotonic()
    found = list(check.score_all(attempts(*["fine"] * 7, "sleep")).values())
    assert time.monotonic() - start < 5
    assert [score.value for score in found] == [1.0] * 7 + [0.0]
    assert "timed out: ran longer than 2 s, in my.py:64 in sleepy_row" in found[7].explanation


def test_a_function_that_always_hangs_is_given_up(pool):
    check = rewarder(pool, "sleepy", limit_seconds=0.3)
    start = time.monotonic()
    found = check.score_all(attempts(*["fine"] * 64))
    assert time.monotonic() - start < 4, "the batch, and one row on each of four workers"
    assert {score.status for score in found.values()} == {ScoreStatus.UNSCORED}
    with pytest.raises(VerifierError, match=r"64 of 64 .*\n.*timed out: ran longer than 0.3 s, in my.py:55 in sleepy"):
        require_scored(found, 0.2)
    assert sum("had timed out on every one" in score.explanation for score in found.values()) == 60


def test_hanging_rows_do_not_use_up_the_workers():
    with WorkerPool(2) as pool:
        found = scores(pool, "sleepy_row", *["sleep"] * 5, *["fine"] * 10, limit_seconds=0.3)
    assert [score.value for score in found] == [0.0] * 5 + [1.0] * 10


def test_a_row_that_hangs_is_never_better_off_than_the_worst_that_was_judged(pool):
    found = scores(pool, "penalty", "sleep", "fine", "bad", limit_seconds=0.3)
    assert [score.value for score in found] == [-2.0, 1.0, -2.0]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("short", "my.py:short returned 3 values for 4 completions"),
        ("single", "my.py:single returned 1 values for 4 completions"),
        ("bare", "my.py:bare returned 1.0 (float) for 4 completions, where a list of numbers is needed"),
        ("word", "my.py:word returned 'ok' (str) for 4 completions, where a list of numbers is needed"),
    ],
)
def test_a_result_that_cannot_be_matched_ends_the_run_and_names_function_and_lengths(pool, function, reason):
    found = rewarder(pool, function).score_all(attempts("a", "b", "c", "d"))
    assert all(reason in score.explanation for score in found.values())
    with pytest.raises(VerifierError) as error:
        require_scored(found, 0.2)
    assert reason in str(error.value)


def test_none_takes_the_part_out_of_the_sum_and_only_out_of_the_sum(pool):
    parts = {
        "answer": {"check": "number", "weight": 2.0},
        "own": {"check": "my.py:batch", "weight": 0.5},
        "never": {"check": "my.py:never", "weight": 3.0},
    }
    reward = Rewarder.from_recipe(validate(Rewards, parts), Resources(pool=pool))
    found = list(reward.score_all(attempts("none", "A124", "124", "nan")).values())
    assert [score.value for score in found] == [0.0, 2.0, 2.5, None], "no weight is handed on to the other parts"
    assert [part.applies for part in found[0].parts] == [True, False, False]
    alone = rewarder(pool, "never", "batch").score_all(attempts("none", "124"))
    assert [score.status for score in alone.values()] == [ScoreStatus.UNSCORED, ScoreStatus.SCORED]


def test_several_functions_run_side_by_side(pool):
    check = Rewarder.from_recipe(
        validate(Rewards, {f"part{n}": {"check": "my.py:nap", "weight": 10.0**n} for n in range(4)}),
        Resources(pool=pool),
    )
    check.score_all(attempts("a"))
    start = time.monotonic()
    found = check.score_all(attempts("aa", "a", "aaa"))
    assert time.monotonic() - start < 1, "four times half a second"
    assert [score.value for score in found.values()] == [2222.0, 1111.0, 3333.0]


def test_scores_are_matched_by_id(pool):
    given = attempts(*["124", "7", "none", "nan", "raise"] * 4)
    expected = rewarder(pool, "batch").score_all(given)
    shuffled = list(given.items())
    random.Random(0).shuffle(shuffled)
    assert rewarder(pool, "batch").score_all(dict(shuffled)) == expected


def test_columns_come_by_keyword(pool):
    columns = ("level", "extra")
    given = attempts("a", level=3) | {"other": attempts("b", level=5, extra="x")["train/1/p/0"]}
    for function, expected in (("by_level", [3.0, 5.0]), ("by_level_row", [3.5, 5.0])):
        found = rewarder(pool, function, columns=columns).score_all(given)
        assert [score.value for score in found.values()] == expected, [s.explanation for s in found.values()]


def test_the_memory_limit_is_the_functions_own(pool):
    if sys.platform != "linux":
        pytest.skip("only Linux bounds the address space")
    assert "MemoryError" in scores(pool, "memory", "a", memory_mb=300)[0].explanation
    assert scores(pool, "memory", "a")[0].value == 1.0


@pytest.mark.parametrize(
    ("check", "options", "message"),
    [
        ("none.py:f", {}, r"^rewards\.own\.check: 'none\.py:f': none\.py: no such file in "),
        ("my.py:bach", {}, r"^rewards\.own\.check: 'my\.py:bach' cannot be used: .*no function 'bach'; the file has: "),
        ("broken.py:f", {}, r"^rewards\.own\.check: 'broken\.py:f' cannot be used: SyntaxError: .*broken\.py, line 1"),
        (
            "my.py:batch",
            {"limit": 3},
            r"^rewards\.own\.options\.limit: unknown key. Known here: limit_seconds, memory_mb",
        ),
        ("my.py:batch", {"limit_seconds": 0}, r"^rewards\.own\.options\.limit_seconds: .*greater than 0"),
        (
            "my.py:by_level",
            {},
            r"^rewards\.own\.check: my\.py:by_level asks for 'completions', 'level', 'topic', but there is no 'level'"
            r"\. "
            r"It may ask for 'completions', 'prompts', 'answer' and the columns of the problems: 'lever'\. "
            r"Did you mean 'lever'\?",
        ),
        ("my.py:positional", {}, r"there is no 'texts', 'golds'\. It may ask for 'completions'"),
        ("my.py:blind", {}, r"my\.py:blind takes neither 'completions' nor 'completion'"),
        ("python", {}, r"^rewards\.own\.check: 'python' is a function handed over in Python, and there is none here"),
    ],
)
def test_a_function_that_cannot_be_used_is_said_at_the_start(pool, folder, check, options, message):
    (folder / "broken.py").write_text("def f(:")
    part = {"own": {"check": check, "options": options}}
    with pytest.raises(RecipeError, match=message):
        Rewarder.from_recipe(validate(Rewards, part), Resources(pool=pool, columns=("lever",)))


def handed_over(function, **options):
    part = {"own": {"check": "python", "options": options}}
    with WorkerPool(1) as pool:
        return Rewarder.from_recipe(validate(Rewards, part), Resources(pool=pool, function=function))


def test_a_function_handed_over_runs_in_this_process():
    seen = []

    def remember(completions, answer, **kwargs):
        seen.extend(completions)
        return [1 / len(text) for text in completions]

    found = handed_over(remember).score_all(attempts("ab", "", "a"))
    assert [score.value for score in found.values()] == [0.5, None, 1.0]
    assert seen == ["ab", "", "a", "ab", "", "a"], "after the failure of the batch, each alone"
    assert "remember raised: ZeroDivisionError" in list(found.values())[1].explanation


def test_a_function_handed_over_that_hangs_ends_the_run_with_a_sentence():
    def slow(completion):
        time.sleep(1.0 if completion == "slow" else 0.0)
        return 1.0

    message = r"^slow: the reward function ran longer than 0\.3 s, in user_reward_test\.py:\d+ in slow\. A thread"
    with pytest.raises(VerifierError, match=message):
        handed_over(slow, limit_seconds=0.3).score_all(attempts("fast", "slow", "fast"))
    assert len(handed_over(slow, limit_seconds=5).score_all(attempts("fast", "slow"))) == 2


REWARD = """
import sys

def digits(completions, answer, **kwargs):
    assert "torch" not in sys.modules, "a worker is no copy of the trainer"
    return [None if text == "" else sum(c.isdigit() for c in text) / len(text) for text in completions]
"""
RECIPE = """
steps = 2
model = "model"
[problems]
train = 8
validation = 0
held_out = 4
[rewards]
allow = ["pays_null_answer", "pays_wrong_answer", "pays_listed_answers", "pays_echoed_prompt"]
[rewards.mine]
check = "reward.py:digits"
options = { limit_seconds = 60 }
[sampling]
prompts_per_step = 4
group_size = 4
max_new_tokens = 8
[optim]
precision = "float32"
[evaluation]
samples = 1
watched = 0
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder with a tiny untrained model, a reward and a recipe."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "reward.py").write_text(REWARD)
    (folder / "recipe.toml").write_text(RECIPE)
    shape = PretrainModel(hidden_size=16, layers=1, heads=2, intermediate_size=32, context=64)
    (folder / "model").mkdir()
    save_policy(untrained_policy(shape, seed=0), folder / "model")
    return folder


@pytest.fixture
def earned():
    """The command line, in this process; returns the exit code."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def run(*arguments):
        try:
            main([*arguments])
        except SystemExit as end:
            return end.code
        return 0

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_a_run_with_a_reward_of_ones_own_and_resuming_it(project, monkeypatch, earned, capsys):
    monkeypatch.chdir(project)
    command = ["train", "recipe.toml", "--run", "own"]
    assert earned(*command) == 0
    reader = RunReader(project / "runs" / "own" / "run.sqlite")
    rows = reader.completions(step=2, phase="train")
    assert len(rows) == 16
    for row in rows:
        expected = sum(c.isdigit() for c in row.text) / len(row.text) if row.text else None
        assert row.reward == pytest.approx(expected) and row.parts[0].applies == bool(row.text)
    assert len({row.reward for row in rows}) > 1
    assert reader.meta()["reward_file/mine"] == sha256((project / "reward.py").read_bytes()).hexdigest()
    assert earned(*command, "--resume") == 0
    (project / "reward.py").write_text(REWARD + "\n")
    capsys.readouterr()
    assert earned(*command, "--resume") == 2
    assert "the file of 'mine' has changed since the run was started" in capsys.readouterr().err


def test_a_run_with_a_function_handed_over(project, monkeypatch):
    monkeypatch.chdir(project)
    recipe = load(Recipe, project / "recipe.toml", {"steps": "1"}, environment={})

    def lengths(completions, **kwargs):
        return [float(len(text)) for text in completions]

    result = api.train(recipe, api.RunOptions(name="handed"), reward=lengths)
    rows = RunReader(result.run / "run.sqlite").completions(step=1, phase="train")
    assert [row.reward for row in rows] == [float(len(row.text)) for row in rows]
    stored = load(Recipe, result.run / "recipe.toml", environment={})
    assert {name: part.check for name, part in stored.rewards.parts.items()} == {"lengths": "python"}
    with pytest.raises(RecipeError, match=r"rewards\.lengths\.check: 'python' is a function handed over"):
        api.resume(result.run)
    assert api.resume(result.run, reward=lengths).finished
