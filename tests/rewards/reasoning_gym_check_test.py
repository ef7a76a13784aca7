import time
from decimal import Decimal
from itertools import islice

import pytest

from earned.errors import RecipeError
from earned.problems.reasoning_gym_problems import stream
from earned.problems.sums import SumsOptions, generate
from earned.recipe import RewardPart
from earned.rewards import reasoning_gym_check
from earned.rewards.checks import make_answer_check, make_check
from earned.rewards.user_reward import Resources
from earned.sandbox.workers import WorkerPool
from earned.vocabulary import Attempt, Rule

pytest.importorskip("reasoning_gym")


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(2) as pool:
        yield pool


def attempt(problem, text, *, truncated=False):
    return Attempt(problem=problem, text=text, truncated=truncated, seed=0, step=1, rollout_id="r")


def judged(pool, attempts, **options):
    check = make_check("rewards.a", RewardPart(check="reasoning_gym", options=options), Resources(pool=pool))
    return list(check.judge({str(n): each for n, each in enumerate(attempts)}).values())


def problem_of(name, **options):
    return next(iter(stream(name, options, 0)))


def tagged(answer):
    return f"Let me see.\n<answer>{answer}</answer>"


SOLVED = ["chain_sum", "rearc", "mini_sudoku", "knights_knaves", "polynomial_multiplication", "countdown", "n_queens"]


@pytest.mark.parametrize(
    "name", [*SOLVED, "simple_integration", "number_sorting", "tower_of_hanoi", "word_ladder", "sentence_reordering"]
)
def test_the_librarys_own_answers_are_right_and_others_are_not(pool, name):
    problems = list(islice(stream(name, {}, 0), 3))
    golds = judged(pool, [attempt(problem, tagged(problem.gold)) for problem in problems])
    assert [(verdict.value, verdict.rule) for verdict in golds] == [(1.0, Rule.EQUAL)] * 3, golds
    for verdict in judged(pool, [attempt(problem, tagged("nonsense")) for problem in problems]):
        assert verdict.value == 0 and verdict.rule in (Rule.DIFFERENT, Rule.UNREADABLE)


def test_another_solution_than_the_shown_one_is_right(pool):
    problem = problem_of("countdown", min_numbers=2, max_numbers=2, operators=["+"])
    first, second = problem.columns["entry"]["metadata"]["numbers"]
    texts = [f"#### {first} + {second}", f"#### {second} + {first}", f"#### {first} + {second} + 0"]
    assert [verdict.value for verdict in judged(pool, [attempt(problem, text) for text in texts])] == [1, 1, 0]


def test_part_marks_are_paid_only_when_asked_for(pool):
    problem = problem_of("chain_sum")
    hedged = attempt(problem, tagged(f"0 or {problem.gold} or 1"))
    (whole,), (part,) = judged(pool, [hedged]), judged(pool, [hedged], partial=True)
    assert whole.value == 0 and 0 < part.value < 1 and whole.rule is part.rule is Rule.DIFFERENT
    assert whole.explanation == f"the scorer of reasoning-gym gives {part.value:g}"


def test_no_answer_is_0_also_where_the_library_pays_for_it(pool):
    problem = problem_of("countdown")
    for text in ("", "I give up.", "<answer></answer>", "<answer>1", f"so #### {problem.gold}"[:9]):
        for verdict in judged(pool, [attempt(problem, text, truncated=True)], partial=True):
            assert (verdict.value, verdict.rule) == (0, Rule.NO_ANSWER), text


def test_an_answer_on_which_the_scorer_never_ends_is_wrong_and_the_others_are_judged(pool):
    problem = problem_of("countdown")
    texts = [tagged("9**9**9**9"), tagged(problem.gold), "#### 9**9**9", tagged("1")]
    start = time.perf_counter()
    verdicts = judged(pool, [attempt(problem, text) for text in texts], limit_seconds=2)
    assert time.perf_counter() - start < 30
    assert [verdict.value for verdict in verdicts] == [0, 1, 0, 0]
    assert verdicts[0].rule is Rule.TIMED_OUT
    assert "ran longer than 2 s" in verdicts[0].explanation and "too long for an answer" in verdicts[0].explanation


def test_an_answer_that_makes_the_scorer_raise_is_wrong(pool):
    problem = problem_of("prime_factorization")
    wrong, right = judged(pool, [attempt(problem, tagged(text)) for text in ("zzz", problem.gold)])
    assert (wrong.value, wrong.rule, right.value) == (0, Rule.UNREADABLE, 1)
    assert "cannot read this answer: ValueError: invalid literal" in wrong.explanation


def test_a_scorer_that_raises_for_its_own_answer_too_judges_nothing(pool):
    problem = problem_of("chain_sum")
    entry = {**problem.columns["entry"], "answer": 5}
    broken = type(problem)(**{**fields_of(problem), "columns": {**problem.columns, "entry": entry}})
    (verdict,) = judged(pool, [attempt(broken, tagged("5"))])
    assert (verdict.value, verdict.rule) == (None, Rule.FAILED)
    assert "the scorer of reasoning-gym raised: TypeError: " in verdict.explanation


def fields_of(problem):
    return {name: getattr(problem, name) for name in problem.__dataclass_fields__}


ATTACKS = [
    "__import__('os').system('touch {path}')",
    "open('{path}', 'w')",
    "[open('{path}', 'w')]",
    "[x for x in [open('{path}', 'w')]]",
    "(lambda: open('{path}', 'w'))()",
    "().__class__.__base__.__subclasses__()",
    "sympify(\"open('{path}', 'w')\")",
    "S(\"open('{path}', 'w')\")",
    "exec(\"open('{path}', 'w')\")",
    "eval(\"open('{path}', 'w')\")",
    "getattr(1, 'real')",
]


@pytest.mark.parametrize(
    "name", ["countdown", "puzzle24", "polynomial_multiplication", "simple_integration", "n_queens"]
)
def test_an_answer_is_never_run_as_a_program(pool, tmp_path, name):
    problem, path = problem_of(name), tmp_path / "pwned"
    texts = [tagged(attack.format(path=path)) for attack in ATTACKS]
    assert {verdict.value for verdict in judged(pool, [attempt(problem, text) for text in texts])} == {0}
    assert not path.exists()


def test_without_the_guard_such_an_answer_would_be_run(tmp_path):
    from reasoning_gym import create_dataset

    path = tmp_path / "pwned"
    scorer = create_dataset("n_queens", seed=0, size=1)
    scorer.score_answer(f"[open('{path}', 'w').close()]", scorer[0])
    assert path.exists()


def test_problems_of_another_source_are_not_judged(pool):
    (problem,) = generate(SumsOptions(), 0, 1)
    (verdict,) = judged(pool, [attempt(problem, f"A{problem.gold}")])
    assert (verdict.value, verdict.rule) == (None, Rule.UNREADABLE_GOLD)
    assert verdict.explanation.startswith("the problem has no columns 'dataset', 'options', 'entry' to go by")


def test_options_of_the_data_set_reach_its_scorer(pool):
    tight, loose = (
        problem_of("decimal_arithmetic", min_num_decimal_places=places, max_num_decimal_places=places)
        for places in (3, 1)
    )
    near = [attempt(each, tagged(Decimal(each.gold) + Decimal("0.05"))) for each in (tight, loose)]
    assert [verdict.value for verdict in judged(pool, near)] == [0, 1], "one unit in the last place is allowed"


def test_it_is_a_judge_of_accuracy_too_and_needs_the_pool(pool):
    problem = problem_of("chain_sum")
    check = make_answer_check("reasoning_gym", Resources(pool=pool))
    assert check.judge({"a": attempt(problem, f"#### {problem.gold}")})["a"].value == 1
    with pytest.raises(RecipeError, match="takes only checks that need no processes"):
        make_answer_check("reasoning_gym")
    with pytest.raises(RecipeError, match=r"rewards\.a\.options\.partia: unknown key\. Did you mean 'partial'"):
        judged(pool, [], partia=True)


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    # What lies beside the file of a worker is found first.
    (tmp_path / "reasoning_gym.py").write_text("raise ImportError('not here')")
    (tmp_path / "worker.py").write_text(reasoning_gym_check.WORKER.read_text())
    monkeypatch.setattr(reasoning_gym_check, "WORKER", tmp_path / "worker.py")
    with WorkerPool(1) as pool, pytest.raises(RecipeError, match=r'`puzzles`: pip install "earned\[puzzles\]"'):
        make_check("rewards.a", RewardPart(check="reasoning_gym"), Resources(pool=pool))
