"""What anybody may do with jobs, from any process: start, look, cancel, try again. (`cleanup` deletes.)

    jobs = Jobs(engine)
    job = jobs.start("self-test", {"steps": 5}, project_id=project, asked_by="me")
    jobs.get(job.id).state

Nothing here imports a broker or runs a job. `NOTIFY pointsman_jobs` carries the id of a job that was
queued or is to be cancelled, or `*` for many: a hint to whoever sends wake-ups. All of it blocks and
raises SQLAlchemy's errors while Postgres is away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from pointsman.errors import BrokenInvariant, UserError
from pointsman.hashing import content_hash
from pointsman.ids import new_id
from pointsman.jobs.kinds import JobKind, kind_of, parse_params
from pointsman.jobs.lease import ANEW
from pointsman.jobs.params import to_json
from pointsman.jobs.reading import JobReader
from pointsman.jobs.view import JobView
from pointsman.tables import JobRow
from pointsman.tables.jobs import DEDUPED
from pointsman.words import JobState

CHANNEL = "pointsman_jobs"
MANY = "*"
_TRIES = 5
_TOGETHER = 1_000

_jobs = JobRow.__table__  # type: ignore[attr-defined]

RETRIABLE: frozenset[JobState] = frozenset(("failed", "cancelled", "dead"))


@dataclass(frozen=True)
class Order:
    """One of many jobs that are started together."""

    params: dict[str, Any]
    dedupe_key: str | None = None


class Jobs(JobReader):
    """The jobs of all projects."""

    def start(
        self,
        kind: str,
        raw_params: object,
        *,
        project_id: str,
        asked_by: str | None,
        budget: Decimal | None = None,
        dedupe_key: str | None = None,
        priority: int = 0,
        parent_id: str | None = None,
    ) -> JobView:
        """Queues a job. An unfinished job of this project under the same `dedupe_key` is returned in its place."""
        row = _new(kind, raw_params, project_id, asked_by, budget, priority, parent_id) | {"dedupe_key": dedupe_key}
        for _ in range(_TRIES):
            with self.engine.begin() as connection:
                made = connection.execute(_insert().values(row).returning(_jobs)).one_or_none()
                if made is not None:
                    notify(connection, row["id"])
                    return JobView.of(made)
                if (found := _same(connection, project_id, dedupe_key)) is not None:
                    return found
            # It ended between the two statements.
        raise BrokenInvariant("a job's dedupe key was taken and freed again at each of several tries")

    def start_many(
        self,
        kind: str,
        orders: Sequence[Order],
        *,
        project_id: str,
        asked_by: str | None,
        priority: int = 0,
        parent_id: str | None = None,
    ) -> list[str]:
        """Queues many jobs of one kind in one transaction; the ids of those that are new, duplicates left out."""
        rows = [
            _new(kind, order.params, project_id, asked_by, None, priority, parent_id) | {"dedupe_key": order.dedupe_key}
            for order in orders
        ]
        made: list[str] = []
        with self.engine.begin() as connection:
            for first in range(0, len(rows), _TOGETHER):
                new = connection.execute(_insert().returning(_jobs.c.id), rows[first : first + _TOGETHER])
                made += [str(row.id) for row in new]
            notify(connection, MANY)
        return made

    def cancel(self, job_id: str) -> JobView:
        """Queued: cancelled at once. Running: its worker ends it within seconds. Finished: stays as it is.

        Jobs that this one started go with it.
        """
        self.get(job_id)
        with self.engine.begin() as connection:
            connection.execute(_CANCEL, {"id": job_id})
            notify(connection, job_id)
        return self.get(job_id)

    def retry(self, job_id: str, *, budget: Decimal | None = None) -> JobView:
        """Queues a failed, cancelled or dead job again: what it had done and its checkpoints count.

        A new `budget` takes the place of the old one; what was spent stays spent.
        """
        with self.engine.begin() as connection:
            row = connection.execute(select(_jobs).where(_jobs.c.id == job_id).with_for_update()).one_or_none()
            if row is None or row.state not in RETRIABLE:
                state = self.get(job_id).state
                raise UserError(f"job {job_id} is {state}; only a failed, cancelled or dead job can be tried again")
            if (twin := _same(connection, str(row.project_id), row.dedupe_key)) is not None:
                raise UserError(f"job {twin.id} does the same and is {twin.state}; cancel it or wait for it")
            again = update(_jobs).where(_jobs.c.id == job_id).values(_AGAIN)
            if budget is not None:
                again = again.values(budget=budget)
            connection.execute(again)
            connection.execute(_CHUNKS_AGAIN, {"id": job_id})
            notify(connection, job_id)
        return self.get(job_id)


def same_work(kind: str, raw_params: object) -> str:
    """A dedupe key under which equal parameters of one kind are one job."""
    return content_hash([kind, to_json(parse_params(kind, raw_params))])


def notify(connection: Connection, payload: str) -> None:
    """A hint to whoever listens, once the transaction commits."""
    connection.execute(text("SELECT pg_notify(:channel, :payload)"), {"channel": CHANNEL, "payload": payload})


_AGAIN: dict[str, Any] = {
    "state": "queued",
    "reason": None,
    **ANEW,
    "ended_at": None,
    "sent_at": None,
    "lease_owner": None,
    "lease_until": None,
}
_CHUNKS_AGAIN = text(
    "UPDATE job_chunk SET state = 'queued', attempts = 0, error = NULL, lease_owner = NULL, lease_until = NULL"
    " WHERE job_id = :id AND state <> 'done'"
)
_CANCEL = text("""
WITH RECURSIVE family AS (
    SELECT id FROM job WHERE id = :id
    UNION SELECT job.id FROM job JOIN family ON job.parent_id = family.id
), chosen AS (
    SELECT id FROM job WHERE id IN (SELECT id FROM family) AND state IN ('queued', 'running') ORDER BY id FOR UPDATE
)
UPDATE job SET
    state = CASE state WHEN 'queued' THEN 'cancelled' ELSE 'cancelling' END,
    reason = 'cancelled',
    ended_at = CASE state WHEN 'queued' THEN clock_timestamp() END
WHERE id IN (SELECT id FROM chosen) AND state IN ('queued', 'running')
""")


def _new(
    kind: str,
    raw_params: object,
    project_id: str,
    asked_by: str | None,
    budget: Decimal | None,
    priority: int,
    parent_id: str | None,
) -> dict[str, Any]:
    found: JobKind = kind_of(kind)
    params = parse_params(kind, raw_params)
    if budget is not None and not 0 <= budget < 10**9:
        raise UserError(f"budget: expected USD from 0 to a thousand million, got {budget}")
    if not -1_000 <= priority <= 1_000:
        raise UserError(f"priority: expected a whole number from -1000 to 1000, got {priority}")
    return {
        "id": new_id(),
        "project_id": UUID(project_id),
        "kind": kind,
        "params": to_json(params),
        "queue": found.queue,
        "priority": priority,
        "small": found.small(params),
        "asked_by": asked_by,
        "budget": budget,
        "parent_id": parent_id,
    }


def _insert() -> Any:
    made = insert(_jobs).values(state="queued", created_at=func.clock_timestamp())
    return made.on_conflict_do_nothing(index_elements=["project_id", "dedupe_key"], index_where=text(DEDUPED))


def _same(connection: Connection, project_id: str, dedupe_key: str | None) -> JobView | None:
    """The unfinished job of a project under a key."""
    if dedupe_key is None:
        return None
    chosen = select(_jobs).where(text(DEDUPED), _jobs.c.project_id == project_id, _jobs.c.dedupe_key == dedupe_key)
    row = connection.execute(chosen).one_or_none()
    return None if row is None else JobView.of(row)
