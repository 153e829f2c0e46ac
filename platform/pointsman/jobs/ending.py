"""How an attempt at a job ends: done or not, given back, crashed, or with a worker that fell silent.

All of it names the fence (`lease`), and takes nothing from a worker that lost the job.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Engine, Text, and_, bindparam, case, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import JSONB

from pointsman.jobs.lease import HELD, Claim, owned
from pointsman.jobs.store import notify
from pointsman.jobs.values import storable
from pointsman.tables import JobRow
from pointsman.words import JobState

CRASHES = 3
"""After so many crashes of its own in a row, with nothing kept in between, a job is dead."""
LOSSES = 10
"""And after so many ends from outside, with its worker or by somebody's kill: when machines come and go every few
seconds, three in a row before the first checkpoint are nobody's fault, but a job that takes whole machines with it
has to end as well. What ends before the job's own code was reached is not counted at all."""
SILENT = "its worker fell silent"
AFTER_START = timedelta(seconds=5)
"""The time after Postgres's start during which no lease is taken as expired: workers are only just back."""

_jobs = JobRow.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class End:
    """How an attempt ended."""

    held: Claim
    state: JobState
    reason: str | None = None
    result: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Expired:
    """A job whose worker fell silent, and what became of it."""

    job_id: str
    state: JobState


def finish(engine: Engine, end: End) -> JobState | None:
    """Ends the job; the state it now has, None where the lease is lost. One to be cancelled is, unless it is done."""
    kept = None if end.result is None else storable(end.result, "result")
    ended = update(_jobs).where(*owned(end.held)).values(_ended(end.state, end.reason, kept))
    with engine.begin() as connection:
        now: JobState | None = connection.execute(ended.returning(_jobs.c.state)).scalar_one_or_none()
    return now


def finish_many(engine: Engine, ends: Sequence[End]) -> None:
    """Ends several jobs in one transaction. Of those whose lease is lost nothing is changed."""
    if not ends:
        return
    kept: Any = bindparam("b_result", type_=JSONB(none_as_null=True))
    ended = (
        update(_jobs)
        .where(*_each())
        .values(_ended(bindparam("b_state", type_=Text), bindparam("b_reason", type_=Text), kept))
    )
    with engine.begin() as connection:
        connection.execute(ended, [_end_row(end) for end in sorted(ends, key=lambda end: end.held.job_id)])


def release(engine: Engine, held: Claim, reason: str) -> JobState | None:
    """Gives the job back unfinished, through no fault of its own: another worker goes on with it."""
    return _put_back(engine, held, _back(reason))


def release_many(engine: Engine, held: Sequence[Claim], reason: str) -> None:
    """Gives several back in one transaction."""
    if held:
        with engine.begin() as connection:
            connection.execute(update(_jobs).where(*_each()).values(_back(reason)), [_key(one) for one in held])


def crashed(engine: Engine, held: Claim, reason: str) -> JobState | None:
    """Its process died by itself: it is queued again or, after three times, dead. None: the lease was lost before."""
    return _put_back(engine, held, _back(reason, crashes=1))


def killed(engine: Engine, held: Claim, reason: str) -> JobState | None:
    """Its process was ended from outside: as `crashed`, but only after ten times dead."""
    return _put_back(engine, held, _back(reason, losses=1))


def expire_leases(
    engine: Engine, now: datetime | None = None, *, only: Collection[str] | None = None, limit: int = 1_000
) -> list[Expired]:
    """Takes their jobs from workers that fell silent: queued again or, after ten times, dead.

    Jobs that were to be cancelled are. `now` is for tests; without it Postgres's clock counts.
    """
    moment: Any = func.clock_timestamp() if now is None else literal(now)
    silent = select(_jobs.c.id).where(
        _jobs.c.state.in_(HELD),
        _jobs.c.lease_until < moment,
        moment - func.pg_postmaster_start_time() > AFTER_START,
    )
    if only is not None:
        silent = silent.where(_jobs.c.id.in_(only))
    locked = silent.order_by(_jobs.c.id).limit(limit).with_for_update(skip_locked=True, key_share=True)
    # A common table expression is run once; a plain subquery may be run again for each row.
    back = update(_jobs).where(_jobs.c.id == locked.cte("silent").c.id).values(_back(SILENT, losses=_BEGUN))
    with engine.begin() as connection:
        rows = connection.execute(back.returning(_jobs.c.id, _jobs.c.state)).all()
        for row in rows:
            if row.state == "queued":
                notify(connection, str(row.id))
    return [Expired(str(row.id), row.state) for row in rows]


def _put_back(engine: Engine, held: Claim, values: dict[str, Any]) -> JobState | None:
    back = update(_jobs).where(*owned(held)).values(values)
    with engine.begin() as connection:
        now: JobState | None = connection.execute(back.returning(_jobs.c.state)).scalar_one_or_none()
        if now == "queued":
            notify(connection, held.job_id)
    return now


def _each() -> tuple[ColumnElement[bool], ...]:
    """As `owned`, for many at once: the claims are given by `_key`."""
    place = (_jobs.c.id == bindparam("b_id"), _jobs.c.fence == bindparam("b_fence"))
    held = or_(*[_jobs.c.state == state for state in HELD])  # in_() cannot be used with many parameter sets
    return (*place, _jobs.c.lease_owner == bindparam("b_owner"), held)


def _key(held: Claim) -> dict[str, Any]:
    return {"b_id": UUID(held.job_id), "b_fence": held.fence, "b_owner": held.owner}


def _ended(state: Any, reason: Any, result: Any) -> dict[str, Any]:
    wanted = literal(state, Text) if isinstance(state, str) else state
    cancelled = and_(_jobs.c.state == "cancelling", wanted != "done")
    return {
        "state": case((cancelled, "cancelled"), else_=wanted),
        "reason": case((cancelled, "cancelled"), else_=reason),
        "result": result,
        "eta_s": None,
        "lease_until": None,
        "ended_at": func.clock_timestamp(),
    }


_BEGUN = case((_jobs.c.begun, 1), else_=0)


def _back(reason: str, *, crashes: int = 0, losses: Any = 0) -> dict[str, Any]:
    """The values of a row whose attempt ended without an end of the job."""
    crashed, lost = _jobs.c.crashes + crashes, _jobs.c.losses + losses
    to_cancel = _jobs.c.state == "cancelling"
    by_itself, too_often = crashed >= CRASHES, or_(crashed >= CRASHES, lost >= LOSSES)
    said = case(
        (by_itself, func.concat("crashed ", crashed, f" times, the last time: {reason}")),
        else_=func.concat("ended from outside ", lost, f" times, the last time: {reason}"),
    )
    return {
        "state": case((to_cancel, "cancelled"), (too_often, "dead"), else_="queued"),
        "reason": case((to_cancel, "cancelled"), (too_often, said), else_=reason),
        "crashes": crashed,
        "losses": lost,
        "lease_owner": None,
        "lease_until": None,
        "sent_at": None,
        "ended_at": case((or_(to_cancel, too_often), func.clock_timestamp())),
    }


def _end_row(end: End) -> dict[str, Any]:
    kept = None if end.result is None else storable(end.result, "result")
    return _key(end.held) | {"b_state": end.state, "b_reason": end.reason, "b_result": kept}
