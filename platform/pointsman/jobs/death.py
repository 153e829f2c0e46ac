"""How a job's process died, and whether the job itself can have been the cause.

A process that exits without a word, or ends by a signal that only code brings about (SIGSEGV, SIGABRT), did it
itself. SIGTERM and the like come from somebody else. SIGKILL comes from somebody else too, or from the kernel that
ran out of memory; which one, Linux's own count of such kills tells.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

FROM_OUTSIDE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
VMSTAT = Path("/proc/vmstat")


@dataclass(frozen=True, slots=True)
class Death:
    """In words for people; `own` is whether it counts against the job."""

    words: str
    own: bool


def death(code: int | None, killed_before: int | None, killed_after: int | None) -> Death:
    """Of a process that ended with `code`, as `subprocess` gives it, and so many kills for want of memory around it.

    Where the counts are not known, SIGKILL is taken as the job's own fault.
    """
    if code is None or code >= 0:
        return Death(f"its process exited with code {code} and without a word on the job's end", True)
    number = signal.Signals(-code)
    if number == signal.SIGKILL:
        if killed_before is None or killed_after is None:
            return Death("its process was ended by SIGKILL (out of memory, or kill -9)", True)
        if killed_after > killed_before:
            return Death("its process was ended by SIGKILL (out of memory)", True)
        return Death("its process was killed from outside by SIGKILL", False)
    if number in FROM_OUTSIDE:
        return Death(f"its process was killed from outside by {number.name}", False)
    return Death(f"its process was ended by {number.name}", True)


def memory_kills(file: Path = VMSTAT) -> int | None:
    """How many processes of this machine the kernel killed for want of memory since it started; None: not known."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
    return int(found[0]) if found else None
