"""The process in which one job runs: `python -m pointsman.jobs.child`, started by a worker (`supervise`).

The first line on standard input says which job, under which fence. A later line `cancel` asks it to end;
the end of the input means that the worker is gone, and then so is this process, at once. Of the job's
end it tells the database, not the worker.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Literal

import msgspec

ORPHANED = 3
CANCEL = b"cancel"


class Hello(msgspec.Struct, frozen=True):
    """What a child is told: the claim (`lease.Claim` as JSON), the database, and whether it is to help only."""

    mode: Literal["run", "help"]
    parent: int
    database_url: str
    lease_s: float
    job_id: str
    owner: str
    fence: int


def main() -> None:
    said = _lines()
    hello = msgspec.json.decode(next(said), type=Hello)
    die_with(hello.parent)
    cancel = threading.Event()
    threading.Thread(target=_listen, args=(said, cancel), name="worker", daemon=True).start()
    run(hello, cancel)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: threads of parts that were given up may still be busy.
    os._exit(0)


def run(hello: Hello, cancel: threading.Event) -> None:
    """The job, or a helper's part of it, from claim to end."""
    from pointsman.config import Settings
    from pointsman.jobs import ending, lease
    from pointsman.jobs.attempt import attempt, help_out
    from pointsman.jobs.context import JobContext
    from pointsman.jobs.patience import patiently
    from pointsman.jobs.workplace import Workplace
    from pointsman.logs import configure_logging

    configure_logging()
    place = Workplace.read(Settings.read(), database_url=hello.database_url, lease_s=hello.lease_s)
    engine = place.engine("pointsman-job", pool_size=4)
    held = patiently(lambda: lease.recover(engine, hello.job_id, hello.owner, hello.fence))
    if hello.mode == "help":
        with JobContext.open(place, engine, held, cancel=cancel, helper=hello.owner) as context:
            help_out(context)
        return
    with JobContext.open(place, engine, held, cancel=cancel) as context:
        patiently(lambda: lease.begin(engine, held))
        end = attempt(context)
    patiently(lambda: ending.finish(engine, end))


def die_with(parent: int) -> None:
    """SIGKILL when the worker dies, also while native code leaves no thread of ours a turn (Linux)."""
    if sys.platform == "linux":
        import ctypes

        set_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None, use_errno=True).prctl(set_death_signal, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(ORPHANED)


def _listen(said: Iterator[bytes], cancel: threading.Event) -> None:
    for line in said:
        if line == CANCEL:
            cancel.set()
    os._exit(ORPHANED)


def _lines() -> Iterator[bytes]:
    """What the worker says, line by line. Not by `sys.stdin`: its lock, held here, would abort a regular exit."""
    waiting = b""
    while part := os.read(0, 65536):
        *whole, waiting = (waiting + part).split(b"\n")
        yield from whole


if __name__ == "__main__":
    main()
