"""Helping with the parts of a job that another worker runs: with whom there is something to help, and for how long.

A whole job that waits comes before the parts of one that runs already.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from pointsman.jobs.kinds import KINDS
from pointsman.words import JobQueue

LOOK_SECONDS = 1.0

_OPEN = text("""
SELECT job.id FROM job
WHERE job.state = 'running' AND job.queue = :queue AND job.kind = ANY(:kinds)
  AND EXISTS (SELECT FROM job_chunk WHERE job_chunk.job_id = job.id AND job_chunk.state = 'queued')
ORDER BY job.priority DESC, job.id
""")
_WAITING = text("SELECT EXISTS (SELECT FROM job WHERE state = 'queued' AND queue = :queue)")


def jobs_with_open_parts(engine: Engine, queue: JobQueue) -> list[str]:
    """Running jobs that have parts which nobody works on yet, the most urgent first."""
    with engine.connect() as connection:
        rows = connection.execute(
            _OPEN, {"queue": queue, "kinds": [kind.name for kind in KINDS.values() if kind.shared]}
        )
        return [str(row.id) for row in rows]


def work_waits(engine: Engine, queue: JobQueue) -> bool:
    """Whether a whole job waits in this queue."""
    with engine.connect() as connection:
        return bool(connection.execute(_WAITING, {"queue": queue}).scalar_one())


@contextmanager
def until_work_waits(engine: Engine, queue: JobQueue, stop: threading.Event) -> Iterator[threading.Event]:
    """An event that is set when `stop` is, or when a whole job waits. Looks once a second."""
    end, over = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_SECONDS):
            if stop.is_set() or _waits(engine, queue):
                end.set()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield end
    finally:
        over.set()
        watcher.join()


def _waits(engine: Engine, queue: JobQueue) -> bool:
    try:
        return work_waits(engine, queue)
    except SQLAlchemyError:  # Postgres is away: whoever works notices it himself
        return False
