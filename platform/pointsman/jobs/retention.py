"""The runner of `retention`: deletes what is older than the log is kept, and files that nothing refers to.

The shipper drops expired partitions too, every ten minutes; this is for those who want it at a time of
their own, with a record of what went, and for what only jobs leave behind.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from pointsman import idempotency
from pointsman.database.engine import psycopg_url
from pointsman.jobs import cleanup
from pointsman.jobs.context import JobContext
from pointsman.jobs.kinds import Retention
from pointsman.journal.housekeeping import drop_expired, keep_partitions

DEFAULT_DAYS = 90


def run(context: JobContext, params: Retention) -> dict[str, Any]:
    now = datetime.now(UTC)
    days = params.days or _configured(context)
    return {"days": days, **_log(context, now, days), **_jobs(context, now, days), **_files(context, now)}


def _log(context: JobContext, now: datetime, days: int) -> dict[str, Any]:
    with context.stage("log") as stage:
        if not stage.todo:
            return {}
        keep_partitions(context.engine, now)
        address = psycopg_url(context.place.database_url)
        with psycopg.connect(address, autocommit=True, connect_timeout=3, options="-c timezone=UTC") as connection:
            dropped = drop_expired(context.engine, connection, now, days)
        expired = idempotency.sweep(context.engine, now=now)
        context.log(f"{len(dropped)} partitions older than {days} days, {expired} kept answers that had expired")
        return {"partitions": dropped, "answers": expired}


def _jobs(context: JobContext, now: datetime, days: int) -> dict[str, Any]:
    with context.stage("jobs") as stage:
        if not stage.todo:
            return {}
        before = now - timedelta(days=days)
        lines, parts = cleanup.forget_words(context.engine, before)
        small = cleanup.forget_small(context.engine, before)
        context.log(f"of jobs that ended before {before:%Y-%m-%d}: {lines} lines, {parts} parts, {small} small jobs")
        return {"lines": lines, "parts": parts, "small_jobs": small}


def _files(context: JobContext, now: datetime) -> dict[str, Any]:
    with context.stage("files") as stage:
        if not stage.todo:
            return {}
        files = cleanup.sweep_files(context.engine, context.place.files(), now)
        folders = cleanup.sweep_folders(context.engine, context.settings.home)
        context.log(f"{files} files that nothing refers to, {folders} folders of attempts that are over")
        return {"files": files, "folders": folders}


def _configured(context: JobContext) -> int:
    config = context.place.config
    return DEFAULT_DAYS if config is None else config.log.retention
