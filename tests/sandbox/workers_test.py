import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from earned.sandbox.workers import Code, Ending, Function, WorkerPool

SOURCE = """
import os, subprocess, sys, time
from fractions import Fraction

print("a word while loading")

async def later(x):
    import asyncio
    await asyncio.sleep(0.01)
    return x

def add(x, y=1):
    print("a word on standard output")
    return x + y

def same(text, gold):
    return text.strip() == gold

def nap(seconds):
    time.sleep(seconds)
    return "woken"

def outer():
    inner()

def inner():
    time.sleep(60)

def deep(n):
    return deep(n - 1) if n else time.sleep(60)

def busy():
    while True:
        pass

def chatty():
    while True:
        print("words " * 1000)

def divide():
    return 1 / 0

def leave():
    sys.exit(0)

def crash():
    print("about to crash")
    os._exit(3)

def segfault():
    import ctypes
    ctypes.string_at(0)

def allocate(megabytes):
    return len(bytearray(megabytes * 2**20))

def echo(value):
    return value

def fraction():
    return Fraction(1, 2)

def is_loaded(module):
    return module in sys.modules

def with_grandchild(seconds):
    child = subprocess.Popen(["sleep", "60"])
    open("grandchild", "w").write(str(child.pid))
    time.sleep(seconds)
    os._exit(1)
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text(SOURCE)
    return tmp_path / "my.py"


@pytest.fixture
def pool(file):
    with WorkerPool(2) as pool:
        yield pool


def function(name, seconds=10.0, memory_mb=None):
    return Function(code=Code.read("my.py"), name=name, seconds=seconds, memory_mb=memory_mb)


def ask(pool, name, seconds=10.0, memory_mb=None, **arguments):
    return pool.submit(function(name, seconds, memory_mb), arguments).result()


def processes(*parents):
    """Return the live descendants of the processes."""
    listing = subprocess.run(["ps", "-eo", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listing.splitlines()]
    children = {int(pid) for pid, parent, state in rows if int(parent) in parents and not state.startswith("Z")}
    return children | processes(*children) if children else set()


def workers():
    listing = subprocess.run(["ps", "-wweo", "ppid=,pid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=2) for line in listing.splitlines()]
    guards = {int(pid) for parent, pid, args in rows if int(parent) == os.getpid() and "worker_main.py" in args}
    return guards | processes(*guards)


def alive(pid):
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout[:1] not in "Z"


def wait_until(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_values_come_back(pool):
    assert ask(pool, "add", x=1).value == 2, "what the function prints does not mix with its value"
    assert ask(pool, "add", x="a", y="b").value == "ab"
    assert ask(pool, "later", x=[1.5, None, True]).value == [1.5, None, True]
    assert ask(pool, "echo", value={"a": np.arange(3), "b": np.float32(0.5)}).value == {"a": [0, 1, 2], "b": 0.5}
    assert ask(pool, "echo", value="\ud800 ü").value == "\ud800 ü"
    value = ask(pool, "echo", value=float("nan")).value
    assert value != value
    long = ["x" * 1000] * 5000
    assert ask(pool, "echo", value=long).value == long, "five million characters go both ways"


@pytest.mark.parametrize(
    ("name", "arguments", "detail"),
    [
        ("divide", {}, r"ZeroDivisionError: division by zero (my.py:41 in divide)"),
        ("leave", {}, "SystemExit: 0 (my.py:44 in leave)"),
        ("add", {"z": 1}, "TypeError: add() got an unexpected keyword argument 'z'"),
        ("fraction", {}, "TypeError: a value of type Fraction is no number, text, list or dict of them"),
        ("nothing", {}, "LookupError: there is no function 'nothing'; the file has: later, add, same"),
    ],
)
def test_raised(pool, name, arguments, detail):
    outcome = ask(pool, name, **arguments)
    assert outcome.ending is Ending.RAISED and outcome.value is None
    assert outcome.detail.startswith(detail)
    before = workers()
    assert ask(pool, "add", x=1).value == 2 and workers() == before, "the process goes on"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("crash", ["about to crash", "ended with exit code 3"]),
        ("segfault", ["in segfault", "ended by SIGSEGV"]),
    ],
)
def test_died_with_its_last_words_and_is_replaced(pool, name, words):
    outcome = ask(pool, name)
    assert outcome.ending is Ending.DIED
    assert all(word in outcome.detail for word in words) and "worker_main" not in outcome.detail
    assert ask(pool, "add", x=1).value == 2


@pytest.mark.parametrize(
    ("name", "arguments", "place"),
    [
        ("outer", {}, "my.py:27 in inner < my.py:24 in outer"),
        ("busy", {}, "in busy"),
        ("chatty", {}, "in chatty"),
        ("deep", {"n": 500}, "my.py:30 in deep < my.py:30 in deep"),
    ],
)
def test_timed_out_with_the_place_where_it_was_and_is_replaced(pool, name, arguments, place):
    before = time.monotonic()
    outcome = ask(pool, name, seconds=0.3, **arguments)
    assert outcome.ending is Ending.TIMED_OUT
    assert outcome.detail.startswith("ran longer than 0.3 s, in") and place in outcome.detail
    assert time.monotonic() - before < 5
    assert ask(pool, "add", x=1).value == 2


def test_the_limit_is_the_calls_own(pool):
    assert pool.submit(function("nap", 0.1), {"seconds": 0.6}).result().ending is Ending.TIMED_OUT
    assert pool.submit(function("nap", 5.0), {"seconds": 0.6}).result().value == "woken"


def test_hanging_calls_do_not_use_up_the_pool(pool):
    pool.submit(function("add"), {"x": 1}).result()
    hanging = [pool.submit(function("inner", 0.4), {}) for _ in range(5)]
    good = [pool.submit(function("add", 0.4), {"x": n}) for n in range(10)]
    assert [future.result().value for future in good] == list(range(1, 11))
    assert {future.result().ending for future in hanging} == {Ending.TIMED_OUT}
    assert len(workers()) <= 4, "at most two workers, each with its guard"


def test_waiting_in_the_queue_costs_no_time(pool):
    cheap = [pool.submit(function("add", 1.0), {"x": n}) for n in range(500)]
    naps = [pool.submit(function("nap", 0.8), {"seconds": 0.3}) for _ in range(8)]
    assert [future.result().value for future in cheap] == list(range(1, 501))
    assert {future.result().value for future in naps} == {"woken"}, "the last one waited longer than its limit"


PAIRS = [(f" {n} ", str(n if n % 3 else n + 1)) for n in range(50)]


def verdicts(pool):
    futures = [pool.submit(function("same", 10.0), {"text": text, "gold": gold}) for text, gold in PAIRS]
    return [future.result().value for future in futures]


def test_the_same_verdicts_from_every_kind_of_caller(pool, tmp_path):
    expected = [text.strip() == gold for text, gold in PAIRS]
    assert len(set(expected)) == 2
    assert verdicts(pool) == expected
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda _: verdicts(pool), range(8))) == [expected] * 8

    async def in_a_loop():
        futures = [pool.submit(function("same", 10.0), {"text": text, "gold": gold}) for text, gold in PAIRS]
        awaited = await asyncio.gather(*map(asyncio.wrap_future, futures))
        assert verdicts(pool) == expected, "blocking works too"
        return [outcome.value for outcome in awaited]

    assert asyncio.run(in_a_loop()) == expected
    script = """
        import json, sys
        from earned.sandbox.workers import Code, Function, WorkerPool
        same = Function(code=Code.read("my.py"), name="same", seconds=10.0)
        with WorkerPool(2) as pool:
            futures = [pool.submit(same, {"text": text, "gold": gold}) for text, gold in json.loads(sys.argv[1])]
            print(json.dumps([future.result().value for future in futures]))
    """
    command = [sys.executable, "-c", textwrap.dedent(script), json.dumps(PAIRS)]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(child.stdout) == expected


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds the address space")
def test_memory_is_bounded_for_the_call_alone(pool):
    outcome = ask(pool, "allocate", memory_mb=300, megabytes=300)
    assert outcome.ending is Ending.RAISED and outcome.detail.startswith("MemoryError")
    assert ask(pool, "allocate", megabytes=300).value == 300 * 2**20


def test_what_runs_is_the_file_as_it_was_read(pool, file):
    read = Code.read("my.py")
    file.write_text("def add(x, y=1): return 'another'")
    old, new = (Function(code=code, name="add", seconds=10.0) for code in (read, Code.read("my.py")))
    assert [pool.submit(each, {"x": 1}).result().value for each in (old, new, old)] == [2, "another", 2]


def test_a_file_may_import_its_neighbour_and_a_slow_import_costs_no_time(pool, file):
    (file.parent / "neighbour.py").write_text("import time\ntime.sleep(0.7)\nTWO = 2\n")
    file.write_text("from neighbour import TWO\ndef two(): return TWO\n")
    assert ask(pool, "two", seconds=0.3).value == 2


@pytest.mark.parametrize(("source", "detail"), [("1 / 0", "ZeroDivisionError"), ("def f(:", "SyntaxError")])
def test_a_file_that_cannot_be_loaded(pool, file, source, detail):
    file.write_text(source)
    outcome = ask(pool, "f")
    assert outcome.ending is Ending.RAISED and outcome.detail.startswith(detail) and "my.py" in outcome.detail


def test_a_file_that_hangs_when_loaded(pool, file, monkeypatch):
    monkeypatch.setattr("earned.sandbox.workers.LOAD_SECONDS", 0.5)
    file.write_text("while True:\n    pass")
    assert ask(pool, "f").detail.startswith("ran longer than 0.5 s, in my.py:")


def test_describe(pool):
    outcome = pool.describe(function("add"))
    assert outcome.value == {"named": ["x", "y"], "required": ["x"], "takes_any": False}


def test_a_worker_loads_only_what_the_file_needs(pool):
    for module in ("torch", "numpy", "earned", "asyncio"):
        assert ask(pool, "is_loaded", module=module).value is False
    assert ask(pool, "is_loaded", module="fractions").value is True


def test_arguments_that_cannot_be_sent_are_refused(pool):
    with pytest.raises(TypeError, match="type object is no number"):
        pool.submit(function("echo"), {"value": object()})


def test_closing_kills_what_runs_and_drops_what_waits(file):
    with WorkerPool(2) as pool:
        futures = [pool.submit(function("inner", 60.0), {}) for _ in range(4)]
        wait_until(lambda: len(workers()) == 4)
        start = time.monotonic()
    assert time.monotonic() - start < 5 and not workers()
    assert [future.cancelled() for future in futures] == [False, False, True, True]
    assert futures[0].result().ending is Ending.DIED


@pytest.mark.parametrize("ending", ["timed_out", "died"])
def test_what_a_function_started_ends_with_it(pool, file, ending):
    seconds = 60.0 if ending == "timed_out" else 0.1
    outcome = pool.submit(function("with_grandchild", 0.5), {"seconds": seconds}).result()
    assert outcome.ending == ending
    grandchild = int((file.parent / "grandchild").read_text())
    wait_until(lambda: not alive(grandchild))


def test_a_killed_parent_leaves_no_process(file):
    script = """
        from earned.sandbox.workers import Code, Function, WorkerPool
        pool = WorkerPool(3)
        for name, arguments in (("busy", {}), ("nap", {"seconds": 60.0}), ("with_grandchild", {"seconds": 60.0})):
            function = Function(code=Code.read("my.py"), name=name, seconds=60.0)
            pool.submit(function, arguments)
        input()
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdin=subprocess.PIPE)
    grandchild = file.parent / "grandchild"
    wait_until(lambda: grandchild.exists() and grandchild.read_text() and len(processes(parent.pid)) == 7, 20)
    family = processes(parent.pid)
    assert int(grandchild.read_text()) in family
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    wait_until(lambda: not any(alive(pid) for pid in family))


def test_it_can_be_imported_where_there_is_no_resource_module():
    script = """
        import sys
        sys.modules["resource"], sys.platform = None, "darwin"
        from earned.sandbox import worker_main, workers
        worker_main.signal_at_parents_end(15)
        with worker_main.limited_memory(1):
            bytearray(10**8)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
