"""What keeps jobs moving whatever was lost: wake-ups for those that wait, and jobs taken from workers that fell silent.

A queue's wake-ups are topped up to a few ahead of its workers, however many jobs wait: the long queue
stays in Postgres, where the order is. A wake-up is not tied to a job, since whoever gets one claims
what is most urgent then. So an urgent job overtakes any number of others, and a broker that was
flushed is filled again at the next look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from sqlalchemy import Engine, text

from pointsman.jobs.broker import HELP, WAKE, Wire
from pointsman.jobs.ending import expire_leases
from pointsman.jobs.helping import jobs_with_open_parts, work_waits
from pointsman.words import JobQueue

AHEAD = 32
"""Wake-ups that wait in a queue at most, for each dispatcher."""
RESEND_SECONDS = 5.0
"""A job that was sent a wake-up so long ago and still waits is sent another: the first may be lost."""
HELPERS = 8
"""Requests for help at a look, where nothing waits."""

_STAMP = text("""
WITH chosen AS (
    SELECT id FROM job
    WHERE state = 'queued' AND queue = :queue
      AND (sent_at IS NULL OR sent_at < clock_timestamp() - make_interval(secs => :resend))
    ORDER BY priority DESC, id
    LIMIT :room
    FOR UPDATE SKIP LOCKED
)
UPDATE job SET sent_at = clock_timestamp() FROM chosen WHERE job.id = chosen.id
RETURNING job.id
""")


@dataclass(frozen=True)
class Round:
    """What one look did."""

    sent: int
    expired: int


def reconcile(engine: Engine, wire: Wire, *, ahead: int = AHEAD, resend: float = RESEND_SECONDS) -> Round:
    """One look at everything. Raises SQLAlchemy's errors, or BrokerAway; what was done until then counts."""
    expired = expire_leases(engine)
    return Round(send_wake_ups(engine, wire, ahead=ahead, resend=resend), len(expired))


def send_wake_ups(engine: Engine, wire: Wire, *, ahead: int = AHEAD, resend: float = RESEND_SECONDS) -> int:
    """Tops up the wake-ups of every queue; how many were sent. Where no job waits, workers are asked to help."""
    sent = 0
    for queue in get_args(JobQueue):
        waiting = wire.waiting(queue)
        job_ids = _stamp(engine, queue, ahead - waiting, resend) if waiting < ahead else []
        wire.send(queue, WAKE, job_ids)
        sent += len(job_ids)
        if not waiting and not job_ids and not work_waits(engine, queue):
            wire.send(queue, HELP, jobs_with_open_parts(engine, queue)[:HELPERS])
    return sent


def _stamp(engine: Engine, queue: JobQueue, room: int, resend: float) -> list[str]:
    """The most urgent jobs that wait and were not lately sent for, marked as sent for now."""
    with engine.begin() as connection:
        rows = connection.execute(_STAMP, {"queue": queue, "room": room, "resend": resend})
        return [str(row.id) for row in rows]
