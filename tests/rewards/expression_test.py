import asyncio
import json
import multiprocessing
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal

import pytest
from tests.shared_data import shared

from earned.errors import RecipeError
from earned.problems.golds import boxed
from earned.recipe import RewardPart
from earned.rewards.checks import make_answer_check, make_check
from earned.rewards.maths import second_opinion
from earned.rewards.maths.gold import read_gold_expression
from earned.rewards.user_reward import Resources
from earned.sandbox.workers import Code, WorkerPool
from earned.vocabulary import Attempt, Problem, Rule, Split

PAIRS = [
    ("1/2", r"\boxed{\frac{2}{4}}", 1.0),
    ("1/2", r"\boxed{0.51}", 0.0),
    (r"\sqrt{8}", r"\boxed{2\sqrt{2}}", 1.0),
    ("7", "#### 7", 1.0),
    ("7", "#### 8", 0.0),
    ("(0,1)", r"\boxed{[0,1]}", 0.0),
    ("1", r"\boxed{\int_0^1 2x\,dx}", 1.0),
    ("5", r"\boxed{9^{9^{9}}}", 0.0),
    ("proof", r"\boxed{proof}", None),
]


def attempt(gold, text, *, truncated=False):
    problem = Problem(id="p", prompt="How much?", gold=gold, source="file", split=Split.TRAIN)
    return Attempt(problem=problem, text=text, truncated=truncated, seed=0, step=1, rollout_id="train/1/p/0")


def judged(pool, **options):
    check = make_check("rewards.answer", RewardPart(check="math", options=options), Resources(pool=pool))
    return check.judge({str(i): attempt(gold, text) for i, (gold, text, _) in enumerate(PAIRS)})


def values(verdicts):
    return [verdicts[str(i)].value for i in range(len(PAIRS))]


def in_a_child(queue):
    with WorkerPool(2) as pool:
        queue.put(values(judged(pool)))


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(2) as made:
        yield made


def one(pool, gold, text, **options):
    check = make_check("rewards.answer", RewardPart(check="math", options=options), Resources(pool=pool))
    return check.judge({"a": attempt(gold, text)})["a"]


def test_the_verdict_is_the_same_from_every_kind_of_caller(pool):
    expected = [value for _, _, value in PAIRS]
    assert values(judged(pool)) == expected
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda _: values(judged(pool)), range(8))) == [expected] * 8

    async def from_asyncio():
        return values(judged(pool))

    assert asyncio.run(from_asyncio()) == expected
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=in_a_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == expected
    child.join()


def test_the_verdict_says_what_was_read_and_which_rule_decided(pool):
    verdicts = judged(pool)
    rules = [verdicts[str(i)].rule for i in range(len(PAIRS))]
    different, equal = Rule.DIFFERENT, Rule.EQUAL
    assert rules == [equal, different, equal, equal, different, different, equal, Rule.UNREADABLE, Rule.UNREADABLE_GOLD]
    assert verdicts["0"].extracted == r"\frac{2}{4}" and "means the same" in verdicts["0"].explanation
    assert "too large" in verdicts["7"].explanation and "'proof'" in verdicts["8"].explanation
    assert one(pool, "7", "I do not know.").rule is Rule.NO_ANSWER
    assert one(pool, None, "#### 7").rule is Rule.UNREADABLE_GOLD


def test_an_answer_that_takes_too_long_is_wrong_and_leaves_no_process(tmp_path):
    slow = tmp_path / "slow.py"
    slow.write_text("def compare(gold, answer, **_):\n    while answer == 'x': pass\n    return 'equal', 'same'\n")
    before = workers_of(os.getpid())
    with WorkerPool(2) as own:
        check = make_check("r", RewardPart(check="math", options={"limit_seconds": 0.3}), Resources(pool=own))
        slowed = replace(check, ours=replace(check.ours, code=Code.read(str(slow))))
        start = time.perf_counter()
        texts = {str(i): r"\boxed{x}" if i < 3 else rf"\boxed{{y_{i}}}" for i in range(8)}
        verdicts = slowed.judge({name: attempt("z", text) for name, text in texts.items()})
        assert time.perf_counter() - start < 20
        assert [verdicts[name].rule for name in texts] == [Rule.TIMED_OUT] * 3 + [Rule.EQUAL] * 5
        assert verdicts["0"].value == 0 and "longer than 0.3 s" in verdicts["0"].explanation
    assert workers_of(os.getpid()) == before


def workers_of(parent):
    listed = subprocess.run(["ps", "-o", "args", "--ppid", str(parent)], capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if "worker_main" in line]


@pytest.mark.parametrize(
    ("body", "rule", "value"),
    [
        ("import os; os._exit(3)", Rule.UNREADABLE, 0.0),
        ("raise KeyError('bug')", Rule.FAILED, None),
    ],
)
def test_what_the_answer_does_to_the_process_is_its_fault_and_our_mistakes_are_ours(tmp_path, body, rule, value):
    file = tmp_path / "broken.py"
    file.write_text(f"def compare(gold, answer, **_):\n    {body}\n")
    with WorkerPool(1) as own:
        check = make_check("r", RewardPart(check="math"), Resources(pool=own))
        broken = replace(check, ours=replace(check.ours, code=Code.read(str(file))))
        verdict = broken.judge({"a": attempt("z", r"\boxed{x}")})["a"]
    assert (verdict.rule, verdict.value) == (rule, value)


def test_the_memory_of_a_comparison_is_limited(tmp_path):
    file = tmp_path / "hungry.py"
    file.write_text("def compare(gold, answer, **_):\n    return 'equal', str(len(bytearray(2**30)))\n")
    with WorkerPool(1) as own:
        check = make_check(
            "r", RewardPart(check="math", options={"memory_mb": 512, "limit_seconds": 20.0}), Resources(pool=own)
        )
        hungry = replace(check, ours=replace(check.ours, code=Code.read(str(file))))
        limited = hungry.judge({"a": attempt("z", r"\boxed{x}")})["a"]
        free = replace(hungry, ours=replace(hungry.ours, memory_mb=None))
        assert free.judge({"a": attempt("z", r"\boxed{x}")})["a"].value == 1
    assert limited.value == 0 and "MemoryError" in limited.explanation


@pytest.mark.parametrize(
    ("gold", "answer", "options"),
    [("3.14159", "3.1416", {"tolerance": 0.01}), ("1.234", "1,234", {"decimal_comma": True})],
)
def test_options_hold_for_plain_numbers_too(pool, gold, answer, options):
    assert one(pool, gold, f"#### {answer}").value == 0
    assert one(pool, gold, f"#### {answer}", **options).value == 1
    assert one(pool, gold, "#### 99", **options).value == 0


def test_a_truncated_answer_is_never_better_off(pool):
    check = make_check("r", RewardPart(check="math"), Resources(pool=pool))
    for _, text, _ in PAIRS:
        whole, cut = attempt("7", text), attempt("7", text, truncated=True)
        verdicts = check.judge({"whole": whole, "cut": cut})
        assert verdicts["cut"].value <= verdicts["whole"].value


def test_options_are_checked_and_the_pool_is_needed(pool):
    with pytest.raises(RecipeError, match=r"rewards.a.options.tolerence: unknown key. Did you mean 'tolerance'"):
        make_check("rewards.a", RewardPart(check="math", options={"tolerence": 1}), Resources(pool=pool))
    with pytest.raises(RecipeError, match="checks that need no processes"):
        make_check("rewards.a", RewardPart(check="math"))
    assert make_answer_check("math", Resources(pool=pool)).judge({"a": attempt("1/2", "#### 0.5")})["a"].value == 1


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (r"\int_0^1 x^{x^{x}} dx", "power of a power"),
        (r"\sum_{k=1}^{10^{12}} \frac{1}{k}", "power of a power"),
        (r"\prod_{k=1}^{9999999} k", "more than 6 digits"),
        (r"\sum_{k=1}^{9} k!", "factorial"),
        (r"\int_0^1 x^{101} dx", "large power"),
        (r"\int " + "(" * 9 + "x" + ")" * 9, "nested"),
        (r"\int " + "x" * 300, "longer than 300"),
        (r"12\text{ or so}", "not in the grammar"),
        (r"\int x \text{ or so}", "not in the grammar"),
    ],
)
def test_little_is_left_to_math_verify(text, refusal):
    rule, reason = second_opinion.compare("12", text)
    assert rule is Rule.UNREADABLE and refusal in reason


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        (r"\frac12", r"\sum_{k=1}^\infty 3^{-k}", True),
        (r"\frac13", r"\sum_{k=1}^\infty 3^{-k}", False),
        ("1", r"\lim_{x\to 0} \frac{\sin x}{x}", True),
        ("1", r"\int_0^1 2x\,dx", True),
        ("1", r"\int_0^1 2.000001x\,dx", False),
    ],
)
def test_math_verify_reads_what_we_do_not(pool, gold, answer, right):
    assert one(pool, gold, rf"\boxed{{{answer}}}", limit_seconds=20.0).value == right


NUMBER = re.compile(r"-?[0-9][0-9,]*(?:\.[0-9]+)?")


def golds_of(name):
    read = {
        "gsm8k_test": lambda row: row["answer"].rpartition("####")[2].strip(),
        "svamp_test": lambda row: str(row["Answer"]),
        "minerva_math_test": lambda row: boxed(row["solution"]),
    }[name]
    lines = shared(f"data/{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [read(json.loads(line)) for line in lines]


def renderings(gold):
    yield from (rf"So it is \boxed{{{gold}}}.", f"Thus:\n#### {gold}", f"The answer is ${gold}$.")
    if NUMBER.fullmatch(gold):
        plain = gold.replace(",", "")
        for written in (plain, f"{Decimal(plain):,}"):
            yield from (rf"\boxed{{{written}}}", f"#### {written}", f"It is {written}.")


def perturbations(gold):
    if not NUMBER.fullmatch(gold):
        if not {"=", ","} & set(gold):
            yield from (f"({gold})+1", f"-({gold})")
        return
    plain = gold.replace(",", "")
    yield str(Decimal(plain) + 1)
    if Decimal(plain) != 0:
        yield str(-Decimal(plain))
    for at in range(len(plain) - 1):
        first, second = plain[at : at + 2]
        if first.isdigit() and second.isdigit() and first != second:
            yield f"{plain[:at]}{second}{first}{plain[at + 2 :]}"
            return


@pytest.mark.parametrize(("name", "least"), [("gsm8k_test", 1.0), ("svamp_test", 1.0), ("minerva_math_test", 0.97)])
def test_real_golds_are_accepted_in_other_writings_and_refused_when_changed(pool, name, least):
    golds = golds_of(name)
    readable = [gold for gold in golds if gold is not None and read_gold_expression(gold) is not None]
    assert len(readable) >= least * len(golds)
    check = make_check("r", RewardPart(check="math"), Resources(pool=pool))
    right = {f"{i}/{j}": attempt(gold, t) for i, gold in enumerate(readable) for j, t in enumerate(renderings(gold))}
    wrong = {
        f"{i}/{j}": attempt(gold, rf"\boxed{{{text}}}")
        for i, gold in enumerate(readable)
        for j, text in enumerate(perturbations(gold))
    }
    assert [right[name].text for name, verdict in check.judge(right).items() if verdict.value != 1] == []
    assert [wrong[name].text for name, verdict in check.judge(wrong).items() if verdict.value != 0] == []
