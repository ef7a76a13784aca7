"""A pool of processes that run functions of given files and can be killed: for code that may hang, crash or grow.

It works the same from the main thread, other threads, inside asyncio and in a child process: no signals are used here,
and a worker is a new interpreter, never a fork of this one, which may hold the threads and locks of torch. Only JSON
goes through the pipes. It is no wall against hostile code: a worker may read and write what the user may.
"""

import hashlib
import json
import os
import re
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from earned.sandbox.worker_main import HEADER, Message, encoded

MAIN = Path(__file__).with_name("worker_main.py")
LOAD_SECONDS = 60.0
"""For a new worker to start and run the file, which may import torch; no call's limit counts it."""
STACK_SECONDS = 0.5
"""How long to wait, at most, for a worker whose time is up to write down where it is."""
END_SECONDS = 5.0
"""After which a guard that does not end is killed itself."""
KEPT_BYTES, KEPT_LINES = 65536, 20
"""Of what a worker writes to standard error."""
CHUNK = 65536
Request = TypeVar("Request", bound=Hashable)
_FRAME = re.compile(r'File "(.*)", line (\d+) in (.*)')


class Ending(StrEnum):
    """How a call ended."""

    RETURNED = "returned"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    DIED = "died"
    """The process ended on its own: a crash, `os._exit`, the system's memory killer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of a call."""

    ending: Ending
    value: object = None
    """What JSON makes of the returned value; arrays and scalars of numpy and torch are lists and numbers."""
    detail: str = ""
    """Why there is no value: the exception and its line, the stack at the time limit, or the last lines written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    """A Python file as it was when it was read: what runs is this text, whatever becomes of the file."""

    path: str
    """As the user wrote it."""
    source: str

    @classmethod
    def read(cls, path: str) -> Self:
        """Return the file's text; raises OSError, or UnicodeDecodeError when it is not UTF-8."""
        return cls(path=path, source=Path(path).read_bytes().decode("utf-8"))

    @property
    def sha256(self) -> str:
        """Of the file, in hex."""
        return hashlib.sha256(self.source.encode("utf-8")).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Function:
    """A function of a file, and what it may use."""

    code: Code
    name: str
    seconds: float
    """Wall-clock limit of one call, from the moment it runs, not from when it was queued."""
    memory_mb: int | None = None
    """Limit of the address space in MiB, where the system has one; None for none. Beyond it Python raises."""


class WorkerPool:
    """`with WorkerPool() as pool: pool.submit(function, {"x": 1}).result()`: at most `size` calls run at once.

    Processes start when they are needed and stay, each with the files it has loaded. A call that exceeds its limit
    costs its own process, which is replaced; the others go on.
    """

    def __init__(self, size: int | None = None) -> None:
        """Start nothing yet; `size` defaults to the number of processors."""
        self.size = size or os.cpu_count() or 2
        # A worker belongs to one thread of the executor, also because Linux ends it together with that thread.
        self._threads = ThreadPoolExecutor(self.size, thread_name_prefix="worker")
        self._own = threading.local()
        self._workers: set[_Worker] = set()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, function: Function, arguments: Mapping[str, object]) -> "Future[Outcome]":
        """Queue one call by keyword; the future never raises what the function raises.

        Raises TypeError for arguments that are neither JSON nor arrays, scalars or dates.
        """
        return self._queue(function, {"do": "call", "arguments": arguments}, function.seconds)

    def call_all(self, function: Function, requests: Mapping[Request, Mapping[str, object]]) -> dict[Request, Outcome]:
        """Return the outcome of every call, made side by side, under the key of its keyword arguments."""
        futures = {key: self.submit(function, arguments) for key, arguments in requests.items()}
        return {key: future.result() for key, future in futures.items()}

    def describe(self, function: Function) -> Outcome:
        """Load the file and return, as the value, which keywords the function takes: see `worker_main.described`."""
        return self._queue(function, {"do": "describe"}, LOAD_SECONDS).result()

    def close(self) -> None:
        """Drop what is queued, kill what runs and return when no process is left."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in list(self._workers):
            worker.stop()
        self._threads.shutdown(wait=True)
        for worker in list(self._workers):
            worker.end()

    def _queue(self, function: Function, request: Message, seconds: float) -> "Future[Outcome]":
        message = _message(function, request, seconds)
        return self._threads.submit(self._perform, function, message, seconds)

    def _perform(self, function: Function, message: bytes, seconds: float) -> Outcome:
        if self._closed:
            return Outcome(ending=Ending.DIED, detail="the pool was closed")
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            worker = self._own.worker = _Worker()
            self._workers.add(worker)
        outcome = worker.load(function)
        if outcome.ending is Ending.RETURNED:
            outcome = worker.ask(message, seconds, function.code.path)
        if outcome.ending in (Ending.TIMED_OUT, Ending.DIED):
            self._workers.discard(worker)
            self._own.worker = None
        return outcome


class _Worker:
    """One process, used by one thread at a time; only `stop` may be called from another."""

    def __init__(self) -> None:
        self._stacks, stacks = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(MAIN), str(stacks)],
            pass_fds=(stacks,),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        os.close(stacks)
        self._loaded: set[str] = set()
        self._written = b""
        """The end of what the process wrote to standard error during this request."""
        for pipe in (*self._pipes(), self._stacks):
            os.set_blocking(pipe, False)

    def load(self, function: Function) -> Outcome:
        """Have the worker run the file, unless it has done so."""
        key = _key(function.code)
        if key in self._loaded:
            return Outcome(ending=Ending.RETURNED)
        request = {"do": "load", "source": function.code.source, "sys_path": sys.path}
        outcome = self.ask(_message(function, request, LOAD_SECONDS), LOAD_SECONDS, function.code.path)
        if outcome.ending is Ending.RETURNED:
            self._loaded.add(key)
        return outcome

    def ask(self, message: bytes, seconds: float, path: str) -> Outcome:
        """Send a request about a file and return what came of it; without a reply in time the process is gone."""
        self._written = b""
        _read(self._stacks)
        deadline = time.monotonic() + seconds
        reply = self._exchange(memoryview(message), deadline)
        if reply is not None:
            if "returned" in reply:
                return Outcome(ending=Ending.RETURNED, value=reply["returned"])
            return Outcome(ending=Ending.RAISED, detail=reply["raised"])
        timed_out = time.monotonic() >= deadline
        stack = self._stack(STACK_SECONDS if timed_out else 0.0)
        self.end()
        if timed_out:
            detail = f"ran longer than {seconds:g} s, in {_running(stack, path)}"
            return Outcome(ending=Ending.TIMED_OUT, detail=detail)
        return Outcome(ending=Ending.DIED, detail=_last_lines(stack + self._written.decode("utf-8", "replace")))

    def stop(self) -> None:
        """Have the guard kill the worker and everything it started."""
        self._process.terminate()

    def end(self) -> None:
        """Stop the process, wait until it is gone and keep its last words."""
        self.stop()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin and stdout and stderr
        while self._read_errors(stderr.fileno()):
            pass
        for pipe in (stdin, stdout, stderr):
            pipe.close()
        os.close(self._stacks)

    def _pipes(self) -> tuple[int, int, int]:
        """Return the numbers of the pipes to standard input, from standard output and from standard error."""
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin and stdout and stderr
        return stdin.fileno(), stdout.fileno(), stderr.fileno()

    def _exchange(self, outgoing: memoryview, deadline: float) -> Message | None:
        """Write and read without ever blocking; None when the process ended or the time is up."""
        stdin, stdout, stderr = self._pipes()
        incoming = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(stdin, selectors.EVENT_WRITE)
            selector.register(stdout, selectors.EVENT_READ)
            selector.register(stderr, selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0:
                ready = {key.fd for key, _ in selector.select(left)}
                if stderr in ready and not self._read_errors(stderr):
                    selector.unregister(stderr)
                if stdin in ready:
                    outgoing = _write(stdin, outgoing)
                    if not outgoing:
                        selector.unregister(stdin)
                if stdout in ready:
                    data = os.read(stdout, CHUNK)
                    incoming += data
                    if not data or _complete(incoming):
                        return json.loads(incoming[HEADER.size :]) if data else None
        return None

    def _stack(self, seconds: float) -> str:
        """Return the stack that was written, waiting for it to begin and then to pause."""
        stack, end = _read(self._stacks), time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.01)
            more = _read(self._stacks)
            if stack and not more:
                break
            stack += more
        return stack.decode("utf-8", "replace")

    def _read_errors(self, stderr: int) -> bool:
        """Read some of standard error; False when there is nothing, at its end or now."""
        data = _read(stderr)
        self._written = (self._written + data)[-KEPT_BYTES:]
        return bool(data)


def _key(code: Code) -> str:
    return f"{code.path} {code.sha256}"


def _message(function: Function, request: Message, seconds: float) -> bytes:
    place = {"key": _key(function.code), "path": function.code.path, "function": function.name}
    return encoded({**request, **place, "seconds": seconds, "memory_mb": function.memory_mb})


def _read(descriptor: int) -> bytes:
    """Return what there is to read: nothing at the end, or when nothing has come."""
    try:
        return os.read(descriptor, CHUNK)
    except BlockingIOError:
        return b""


def _write(descriptor: int, data: memoryview) -> memoryview:
    """Write some of the data and return the rest; all of it counts as written when nobody reads any more."""
    try:
        return data[os.write(descriptor, data[:CHUNK]) :]
    except BrokenPipeError:
        return data[:0]


def _complete(message: bytearray) -> bool:
    return len(message) >= HEADER.size and len(message) == HEADER.size + HEADER.unpack_from(message)[0]


def _running(written: str, path: str) -> str:
    """Return the functions that were running, innermost first and the file's own last, as faulthandler wrote them."""
    threads = [_FRAME.findall(part) for part in re.split(r"^(?:Current thread|Thread) ", written, flags=re.MULTILINE)]
    ours = [frames for frames in threads if any(file == str(MAIN) for file, _, _ in frames)]
    # A very deep stack is cut off before it reaches the worker's own lines; the main thread comes last.
    frames = (ours or threads)[-1]
    last = max((index for index, (file, _, _) in enumerate(frames) if file == path), default=-1)
    return " < ".join(
        f"{Path(file).name}:{line} in {name}" for file, line, name in frames[: last + 1][:KEPT_LINES]
    ) or ("a place it could not tell")


def _last_lines(written: str) -> str:
    """Return the last lines that were written, without our own in a stack."""
    lines = [line for line in written.splitlines() if line.strip() and str(MAIN) not in line]
    return "\n".join(lines[-KEPT_LINES:])
