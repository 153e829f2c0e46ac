"""The right to run a job: claimed by one UPDATE, renewed by heartbeats, lost silently, and fenced.

Each claim raises the row's `fence`. Whoever writes for a job names owner and fence; a row that was
claimed by another since, cancelled or finished takes nothing. A worker that was away and comes back
therefore changes nothing, whatever it believes. The time is Postgres's, one clock for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Row,
    func,
    select,
    update,
)

from pointsman.errors import JobCancelled, LeaseLost
from pointsman.tables import JobRow
from pointsman.words import JobQueue, JobState

LEASE_SECONDS = 15.0
"""A worker that says nothing for so long has lost its jobs."""
LOCK_WAIT = "500ms"
INSIDE = 2
"""A small job whose worker was lost so often under it runs in a process of its own: there it is seen whose fault it
is, and it takes nobody with it."""
ANEW: Mapping[str, Any] = {"crashes": 0, "losses": 0}
"""Once something was achieved, crashes and losses are counted anew."""
HELD = ("running", "cancelling")

_jobs = JobRow.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt at a job: what a worker was given, and the fence that proves it."""

    job_id: str
    project_id: str
    kind: str
    params: Mapping[str, Any]
    queue: JobQueue
    small: bool
    owner: str
    fence: int
    attempt: int
    crashes: int
    losses: int
    budget: Decimal | None
    stages_done: tuple[str, ...]
    asked_by: str | None

    @property
    def inside(self) -> bool:
        """Whether the job runs in the worker's own process."""
        return self.small and not self.crashes and self.losses < INSIDE


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an attempt is: the job's state, and whether the job's own code was reached."""

    state: JobState
    begun: bool


def renew(engine: Engine, held: Claim, lease_s: float = LEASE_SECONDS) -> JobState | None:
    """A heartbeat: the job's state, `running` or `cancelling`; None where the lease is lost."""
    now = func.clock_timestamp()
    beat = update(_jobs).where(*owned(held)).values(heartbeat_at=now, lease_until=now + timedelta(seconds=lease_s))
    with engine.begin() as connection:
        # Whoever locks the row holds it against expiry too: a long effect of the job's own is no reason to wait.
        connection.execute(select(func.set_config("lock_timeout", LOCK_WAIT, True)))
        state: JobState | None = connection.execute(beat.returning(_jobs.c.state)).scalar_one_or_none()
    return state


@contextmanager
def guarded(engine: Engine, held: Claim) -> Iterator[tuple[Connection, Row[Any]]]:
    """A transaction in which the job is certainly ours, and stays so: its row is locked until the commit.

    Raises LeaseLost or JobCancelled, and then nothing is changed. Keep it short: heartbeats wait for it.
    """
    with engine.begin() as connection:
        yield connection, lock(connection, held)


def lock(connection: Connection, held: Claim) -> Row[Any]:
    """The job's row, locked in this transaction; LeaseLost or JobCancelled where it is not ours to go on with."""
    chosen = select(_jobs).where(*owned(held)).with_for_update(key_share=True)
    row = connection.execute(chosen).one_or_none()
    if row is None:
        raise _lost(held)
    if row.state == "cancelling":
        raise JobCancelled(f"job {held.job_id} was cancelled")
    return row


def recover(engine: Engine, job_id: str, owner: str, fence: int) -> Claim:
    """The claim that another process of this worker made. Whether it still holds is seen when something is written."""
    with engine.connect() as connection:
        row = connection.execute(select(_jobs).where(_jobs.c.id == job_id)).one_or_none()
    if row is None:
        raise LeaseLost(f"job {job_id} is no more")
    return replace(claim_of(row), owner=owner, fence=fence)


def begin(engine: Engine, held: Claim) -> None:
    """Notes that the job's own code comes next: what goes wrong from here on may be its fault. May raise LeaseLost."""
    with engine.begin() as connection:
        begun = update(_jobs).where(*owned(held)).values(begun=True)
        if connection.execute(begun).rowcount == 0:
            raise _lost(held)


def standing(engine: Engine, held: Claim) -> Standing | None:
    """Of this very attempt; None where another followed."""
    with engine.connect() as connection:
        mine = select(_jobs.c.state, _jobs.c.begun).where(_jobs.c.id == held.job_id, _jobs.c.fence == held.fence)
        row = connection.execute(mine).one_or_none()
    return None if row is None else Standing(row.state, row.begun)


def owned(held: Claim) -> tuple[ColumnElement[bool], ...]:
    """The conditions under which a job's row takes what the holder of a claim writes."""
    return (
        _jobs.c.id == held.job_id,
        _jobs.c.fence == held.fence,
        _jobs.c.lease_owner == held.owner,
        _jobs.c.state.in_(HELD),
    )


def _lost(held: Claim) -> LeaseLost:
    return LeaseLost(f"job {held.job_id}: fence {held.fence} of {held.owner} is no longer valid")


def claim_of(row: Row[Any]) -> Claim:
    return Claim(
        job_id=str(row.id),
        project_id=str(row.project_id),
        kind=row.kind,
        params=row.params,
        queue=row.queue,
        small=row.small,
        owner=row.lease_owner,
        fence=row.fence,
        attempt=row.attempt,
        crashes=row.crashes,
        losses=row.losses,
        budget=row.budget,
        stages_done=tuple(row.stages_done),
        asked_by=row.asked_by,
    )
