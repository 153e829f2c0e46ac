"""Taking a job to run: this one, or what is most urgent."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from sqlalchemy import Engine, Select, Update, and_, func, select, update

from pointsman.jobs.ending import expire_leases
from pointsman.jobs.lease import INSIDE, LEASE_SECONDS, Claim, claim_of
from pointsman.tables import JobRow
from pointsman.words import JobQueue

_jobs = JobRow.__table__  # type: ignore[attr-defined]

_INNOCENT = and_(_jobs.c.small, _jobs.c.crashes == 0, _jobs.c.losses == 0)
_INSIDE = and_(_jobs.c.small, _jobs.c.crashes == 0, _jobs.c.losses < INSIDE)


def claim(engine: Engine, job_id: str, owner: str, lease_s: float = LEASE_SECONDS) -> Claim | None:
    """The right to run this job; None where it is finished, cancelled, or another's."""
    expire_leases(engine, only=[job_id])
    taken = _taken(owner, lease_s).where(_jobs.c.id == job_id, _jobs.c.state == "queued")
    with engine.begin() as connection:
        row = connection.execute(taken.returning(_jobs)).one_or_none()
    return None if row is None else claim_of(row)


def claim_next(
    engine: Engine,
    queues: Collection[JobQueue],
    owner: str,
    lease_s: float = LEASE_SECONDS,
    *,
    small_together: int = 1,
) -> list[Claim]:
    """The most urgent, then oldest, waiting job of these queues; if it is small, up to `small_together` such.

    A small job that was under way when a worker fell silent runs alone, so that one that is at fault takes
    no others with it, and after the second time in a process of its own.
    """
    with engine.begin() as connection:
        first = connection.execute(_waiting(queues).limit(1)).one_or_none()
        if first is None:
            return []
        ids = [first.id]
        if first.innocent and small_together > 1:
            innocent = _waiting(queues).where(_INNOCENT, _jobs.c.id != first.id)
            ids += [row.id for row in connection.execute(innocent.limit(small_together - 1))]
        taken = _taken(owner, lease_s).where(_jobs.c.id.in_(ids)).returning(_jobs)
        rows = {row.id: row for row in connection.execute(taken)}
    return [claim_of(rows[identity]) for identity in ids]


def _waiting(queues: Collection[JobQueue]) -> Select[Any]:
    waiting = select(_jobs.c.id, _INNOCENT.label("innocent"))
    waiting = waiting.where(_jobs.c.state == "queued", _jobs.c.queue.in_(sorted(queues)))
    return waiting.order_by(_jobs.c.priority.desc(), _jobs.c.id).with_for_update(skip_locked=True)


def _taken(owner: str, lease_s: float) -> Update:
    now = func.clock_timestamp()
    return update(_jobs).values(
        state="running",
        reason=None,
        fence=_jobs.c.fence + 1,
        attempt=_jobs.c.attempt + 1,
        begun=_INSIDE,  # of the others their own process says so
        lease_owner=owner,
        lease_until=now + timedelta(seconds=lease_s),
        heartbeat_at=now,
        started_at=func.coalesce(_jobs.c.started_at, now),
        ended_at=None,
    )
