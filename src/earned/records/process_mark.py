"""Which process writes a record, so that a run whose process was killed is not said to be running for ever.

Run folders are made to be shared, so no name of a host is stored: the kernel's random name of this boot and the number
of its process table say whether another look is from the same place. On systems without `/proc` there is no mark.
"""

import os
from pathlib import Path

PROC = Path("/proc")
STATE, STARTED = 0, 19
"""Places in `/proc/PID/stat` after the name of the program, which may hold anything: fields 3 and 22 of proc(5)."""
ENDED_STATES = ("Z", "X")
"""Dead, and not yet collected by the parent."""


def own_mark() -> str:
    """Return `BOOT TABLE PID STARTED` of this process, or an empty string where the system does not tell."""
    try:
        return " ".join([*_place(), str(os.getpid()), _stat(os.getpid())[STARTED]])
    except OSError:
        return ""


def has_ended(mark: str) -> bool:
    """Return whether a marked process is known to have ended: False for one of another machine, boot or container."""
    try:
        boot, table, pid, started = mark.split()
        if [boot, table] != _place():
            return False
        os.kill(int(pid), 0)
        stat = _stat(int(pid))
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return stat[STARTED] != started or stat[STATE] in ENDED_STATES


def _place() -> list[str]:
    """Return what names this boot of this machine, and the process table that is seen from here."""
    boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return [boot, os.readlink(PROC / "self/ns/pid")]


def _stat(pid: int) -> list[str]:
    return (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
