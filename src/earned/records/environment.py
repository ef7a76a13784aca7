"""What a run ran on, so that its numbers can be judged and repeated.

Environment variables, host names and user names are never stored: run folders are made to be shared.
"""

import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import earned

PACKAGES = ("torch", "transformers", "numpy")


def describe_environment() -> dict[str, object]:
    """Return versions, machine, git commit of the working folder, command line and UTC time, ready for JSON.

    What cannot be found out is None; `git.dirty` always is, because only git itself can tell.
    """
    return {
        "earned": earned.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "cpu": {"model": _cpu_model(), "count": os.cpu_count()},
        "memory_bytes": _memory_bytes(),
        "git": {"commit": _git_commit(Path.cwd()), "dirty": None},
        "command": _command(sys.argv),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write_environment(folder: Path) -> Path:
    """Write `environment.json` into the run folder and return its path."""
    path = folder / "environment.json"
    path.write_text(json.dumps(describe_environment(), indent=2) + "\n", encoding="utf-8")
    return path


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _command(arguments: list[str]) -> list[str]:
    """Return the command line without the home folder, whose name is usually the user's."""
    home = f"{os.path.expanduser('~')}/"
    program, *rest = arguments
    return [Path(program).name, *(argument.replace(home, "~/") for argument in rest)]


def _git_commit(start: Path) -> str | None:
    """Return the commit that is checked out around `start`, read from git's files."""
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            try:
                return _head_commit(_git_folder(folder / ".git"))
            except (OSError, UnicodeDecodeError):
                return None
    return None


def _git_folder(marker: Path) -> Path:
    """Return the folder git keeps its state in; in a linked worktree `.git` is a file that names it."""
    if marker.is_dir():
        return marker
    return marker.parent / marker.read_text(encoding="utf-8").removeprefix("gitdir:").strip()


def _head_commit(git: Path) -> str | None:
    head = (git / "HEAD").read_text(encoding="utf-8").strip()
    if not head.startswith("ref:"):
        return head
    ref = head.removeprefix("ref:").strip()
    common = git / (git / "commondir").read_text(encoding="utf-8").strip() if (git / "commondir").is_file() else git
    if (common / ref).is_file():
        return (common / ref).read_text(encoding="utf-8").strip()
    packed = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
    return next((line.split()[0] for line in packed if line.endswith(f" {ref}")), None)
