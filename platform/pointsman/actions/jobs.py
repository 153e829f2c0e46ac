"""Starting, ending and repeating background work.

The job commits first, with `asked_by`; its record follows in a transaction of its own, because `Jobs` commits by
itself so that a worker may take the job at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Engine

from pointsman.actions.actor import Actor, record, require
from pointsman.jobs.store import Jobs, same_work
from pointsman.jobs.view import JobView


def start_job(
    engine: Engine,
    actor: Actor,
    project: str,
    kind: str,
    params: Mapping[str, Any],
    now: datetime,
    *,
    budget: Decimal | None = None,
) -> JobView:
    """Queues it; where an equal one of this project is unfinished, that one is given (so a double click is one job)."""
    require(actor, "operator", "start a job")
    job = Jobs(engine).start(
        kind, dict(params), project_id=project, asked_by=actor.name, budget=budget, dedupe_key=same_work(kind, params)
    )
    _record(engine, actor, project, "job_start", job, now)
    return job


def cancel_job(engine: Engine, actor: Actor, project: str, job_id: str, now: datetime) -> JobView:
    """Ends it, and what it started."""
    require(actor, "operator", "cancel a job")
    jobs = Jobs(engine)
    jobs.get(job_id, project_id=project)
    job = jobs.cancel(job_id)
    _record(engine, actor, project, "job_cancel", job, now)
    return job


def retry_job(engine: Engine, actor: Actor, project: str, job_id: str, now: datetime) -> JobView:
    """Queues a failed, cancelled or dead job again, from its last checkpoint."""
    require(actor, "operator", "try a job again")
    jobs = Jobs(engine)
    jobs.get(job_id, project_id=project)
    job = jobs.retry(job_id)
    _record(engine, actor, project, "job_retry", job, now)
    return job


def _record(engine: Engine, actor: Actor, project: str, action: str, job: JobView, now: datetime) -> None:
    with engine.begin() as connection:
        record(connection, actor, project, action, now, subject=job.id, detail={"kind": job.kind})
