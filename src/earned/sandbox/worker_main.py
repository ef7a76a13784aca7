"""What runs inside a worker: two processes, and nothing but the standard library until the user's file asks for more.

The first process, the guard, forks the second, the worker, before anything else is loaded. From then on it only waits:
when the worker ends, when the parent ends (its end of the request pipe closes, and on Linux a signal comes too) or when
the parent says so, it kills the worker and whatever the worker started. It runs no code of the user's, so it cannot
hang. Only a process that put itself into a group of its own escapes.

A message is its length in four bytes, big endian, and JSON. Every request gets exactly one reply, `{"returned": value}`
or `{"raised": text}`; `HANDLERS` lists the requests.
"""

import ctypes
import faulthandler
import inspect
import json
import os
import select
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import IO, Any

try:
    import resource
except ImportError:  # not a Unix: then there are no memory limits
    resource = None

HEADER = struct.Struct(">I")
PR_SET_PDEATHSIG = 1
STANDARD_ERROR = 2
STACKS = int(sys.argv[1]) if len(sys.argv) == 2 and __name__ == "__main__" else STANDARD_ERROR
"""Where a stack is written: a pipe of its own, so that nothing the function prints can drown it."""

Message = dict[str, Any]


def main() -> None:
    """Start the guard and, in the worker, answer requests until the pipe closes."""
    guard()
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What the function prints must not mix with the replies.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(STANDARD_ERROR, 1)
    os.set_inheritable(STACKS, False)
    faulthandler.enable(STACKS)
    modules: dict[str, ModuleType] = {}
    while (request := read_message(requests)) is not None:
        write_message(replies, answer(modules, request))


def guard() -> None:
    """Fork and return in the worker alone."""
    # A signal that comes before the guard listens is kept until it does.
    ending = (signal.SIGTERM, signal.SIGCHLD)
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    worker = os.fork()
    if worker == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)
        os.setpgid(0, 0)
        signal_at_parents_end(signal.SIGKILL)
        return
    with suppress(OSError):  # the worker does the same; whoever comes second may fail
        os.setpgid(worker, worker)
    wait_for_an_end(ending)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(worker, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    # The pipe may be full and nobody reading; the worker, which shares it, is gone.
    os.set_blocking(STANDARD_ERROR, False)
    with suppress(BlockingIOError):
        os.write(STANDARD_ERROR, f"\nthe process {how}\n".encode())
    os._exit(0)


def wait_for_an_end(signals: tuple[int, ...]) -> None:
    """Return after one of the signals, or when nobody is left who could write to standard input."""
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    for number in signals:
        signal.signal(number, lambda *_: None)
    signal_at_parents_end(signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    events = select.poll()
    events.register(0, 0)
    events.register(wake, select.POLLIN)
    events.poll()


def signal_at_parents_end(number: int) -> None:
    """Ask Linux for a signal when the parent ends; elsewhere the closing of the pipe has to do."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number))


def read_message(stream: IO[bytes]) -> Message | None:
    """Return the next message, None at the end of the stream."""
    header = stream.read(HEADER.size)
    return json.loads(stream.read(*HEADER.unpack(header))) if len(header) == HEADER.size else None


def write_message(stream: IO[bytes], message: Message) -> None:
    """Write one message."""
    stream.write(encoded(message))
    stream.flush()


def encoded(message: Message) -> bytes:
    """Return a message as it goes through the pipe; raises TypeError for what `plain` cannot change into JSON."""
    body = json.dumps(message, default=plain).encode()
    return HEADER.pack(len(body)) + body


def plain(value: Any) -> object:
    """Return a number, list or text for a scalar or an array of numpy or torch, or a date.

    Raises:
        TypeError: for anything else.
    """
    for name in ("tolist", "isoformat"):
        if hasattr(value, name):
            return getattr(value, name)()
    raise TypeError(f"a value of type {type(value).__name__} is no number, text, list or dict of them")


def as_json(value: object) -> Any:
    """Return what the value is on the other side of the pipe.

    >>> as_json((1, True, None))
    [1, True, None]
    """
    return json.loads(json.dumps(value, default=plain))


def replied(action: Callable[[], object], path: str | None) -> Message:
    """Return the reply that `action` leads to; an exception is told with the last line of `path` it went through."""
    try:
        return {"returned": as_json(action())}
    except BaseException as error:  # sys.exit in a reward function is a failure like any other
        what = f"{type(error).__name__}: {error}".removesuffix(": ")
        lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        where = f" ({os.path.basename(lines[-1].filename)}:{lines[-1].lineno} in {lines[-1].name})" if lines else ""
        return {"raised": what + where}


def call(function: Callable[..., Any], arguments: Mapping[str, object]) -> object:
    """Return what the function returns, waited for when it is asynchronous."""
    result = function(**arguments)
    if not inspect.isawaitable(result):
        return result
    # More than half of the time a worker takes to start would go into this import.
    import asyncio

    async def awaited() -> object:
        return await result

    return asyncio.run(awaited())


def described(function: Callable[..., object]) -> dict[str, object]:
    """Return which keywords a function takes.

    >>> described(lambda completions, limit=3, **rest: None)
    {'named': ['completions', 'limit'], 'required': ['completions'], 'takes_any': True}
    """
    parameters = list(inspect.signature(function).parameters.values())
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {
        "named": [p.name for p in named],
        "required": [p.name for p in named if p.default is p.empty],
        "takes_any": any(p.kind is p.VAR_KEYWORD for p in parameters),
    }


def answer(modules: dict[str, ModuleType], request: Message) -> Message:
    """Return the reply to a request; after its `seconds` the stacks of all threads are written."""
    faulthandler.dump_traceback_later(request["seconds"], file=STACKS)
    try:
        with limited_memory(request["memory_mb"]):
            return replied(lambda: HANDLERS[request["do"]](modules, request), request["path"])
    finally:
        faulthandler.cancel_dump_traceback_later()


def load(modules: dict[str, ModuleType], request: Message) -> None:
    """Run a file as a module: `key`, `path`, `source`, and `sys_path` of the parent, behind the worker's own."""
    folder = os.path.dirname(os.path.abspath(request["path"]))
    sys.path[:] = dict.fromkeys([folder, *sys.path, *request["sys_path"]])
    module = ModuleType(f"earned_worker_code_{len(modules)}")
    module.__file__ = request["path"]
    # Data classes and the like look their module up by its name.
    sys.modules[module.__name__] = module
    exec(compile(request["source"], request["path"], "exec"), module.__dict__)
    modules[request["key"]] = module


def describe(modules: dict[str, ModuleType], request: Message) -> dict[str, object]:
    """Describe the `function` of the loaded file `key`."""
    return described(_function(modules[request["key"]], request["function"]))


def call_loaded(modules: dict[str, ModuleType], request: Message) -> object:
    """Call the `function` of the loaded file `key` with `arguments`."""
    return call(_function(modules[request["key"]], request["function"]), request["arguments"])


HANDLERS: dict[str, Callable[[dict[str, ModuleType], Message], object]] = {
    "load": load,
    "describe": describe,
    "call": call_loaded,
}


@contextmanager
def limited_memory(megabytes: int | None) -> Iterator[None]:
    """Bound the address space inside, where the system can (Linux; macOS takes the limit and ignores it)."""
    if megabytes is None or resource is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _function(module: ModuleType, name: str) -> Callable[..., object]:
    function = getattr(module, name, None)
    if callable(function):
        return function
    own = [n for n, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == module.__name__]
    raise LookupError(f"there is no function {name!r}; the file has: {', '.join(own) or 'none'}")


if __name__ == "__main__":
    main()
