"""Jobs that are started by the clock: `[schedules]` of the configuration, cron expressions in UTC.

What was due while nobody looked is made good once, however often it was due. A run that is due while
the last one still goes on is left out. Several dispatchers start each run once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, Row, select, update
from sqlalchemy.dialects.postgresql import insert

from pointsman.config.model import ScheduleConfig
from pointsman.identity import ensure_project
from pointsman.ids import content_id, lowest_id
from pointsman.jobs.store import Jobs
from pointsman.tables import JobRow, ScheduleRow

_schedules = ScheduleRow.__table__  # type: ignore[attr-defined]
_jobs = JobRow.__table__  # type: ignore[attr-defined]


def run_due(engine: Engine, schedules: Mapping[str, ScheduleConfig], now: datetime) -> list[str]:
    """Starts what is due; the ids of the jobs, those that still ran before included."""
    started = (_run_one(engine, name, schedule, now) for name, schedule in schedules.items())
    return [job_id for job_id in started if job_id is not None]


def latest_due(cron: str, now: datetime) -> datetime:
    """The last time, up to and with `now`, at which the expression was due."""
    from croniter import croniter

    found: datetime = croniter(cron, now + timedelta(microseconds=1)).get_prev(datetime)
    return found.astimezone(UTC)


def next_due(cron: str, now: datetime) -> datetime:
    """The first time after `now`."""
    from croniter import croniter

    found: datetime = croniter(cron, now).get_next(datetime)
    return found.astimezone(UTC)


def _run_one(engine: Engine, name: str, schedule: ScheduleConfig, now: datetime) -> str | None:
    with engine.begin() as connection:
        row = _seen(connection, name, schedule, now)
        if row is None:
            return None
        due = latest_due(schedule.cron, now)
        if due <= row.last_due_at:
            return None
        # The job commits first: if this process dies in between, the next one finds it by its key and time.
        job_id = _started(connection, name, schedule, due) or _start(engine, name, schedule)
        connection.execute(
            update(_schedules).where(_schedules.c.id == row.id).values(last_due_at=due, last_job_id=job_id)
        )
    return job_id


def _seen(connection: Connection, name: str, schedule: ScheduleConfig, now: datetime) -> Row[Any] | None:
    """The schedule's row, locked and as the configuration has it; None where it is new, or another's to look at now.

    A schedule that is new, or whose expression was changed, counts from now on.
    """
    values = {
        "project_id": UUID(_project_id(schedule)),
        "kind": schedule.kind,
        "params": schedule.params,
        "cron": schedule.cron,
        "updated_at": now,
    }
    chosen = select(_schedules).where(_schedules.c.name == name).with_for_update(skip_locked=True)
    row = connection.execute(chosen).one_or_none()
    if row is None:
        fresh = insert(_schedules).values(id=content_id("schedule", name), name=name, last_due_at=now, **values)
        connection.execute(fresh.on_conflict_do_nothing())
        return None
    if row.cron != schedule.cron:
        values["last_due_at"] = now
    if any(getattr(row, key) != values[key] for key in ("cron", "kind", "params", "project_id")):
        connection.execute(update(_schedules).where(_schedules.c.id == row.id).values(values))
    return None if row.cron != schedule.cron else row


def _started(connection: Connection, name: str, schedule: ScheduleConfig, due: datetime) -> str | None:
    """A job that this schedule started since it was due."""
    since = _jobs.c.project_id == _project_id(schedule), _jobs.c.id >= lowest_id(due)
    chosen = select(_jobs.c.id).where(*since, _jobs.c.asked_by == _asker(name))
    found = connection.execute(chosen.order_by(_jobs.c.id).limit(1)).scalar_one_or_none()
    return None if found is None else str(found)


def _start(engine: Engine, name: str, schedule: ScheduleConfig) -> str:
    with engine.begin() as connection:
        project_id = ensure_project(connection, schedule.project)
    job = Jobs(engine).start(
        schedule.kind, schedule.params, project_id=project_id, asked_by=_asker(name), dedupe_key=_asker(name)
    )
    return job.id


def _project_id(schedule: ScheduleConfig) -> str:
    return content_id("project", schedule.project)


def _asker(name: str) -> str:
    return f"schedule {name}"
