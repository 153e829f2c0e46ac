"""What jobs leave behind, removed: one job with all that is its own, or whatever is old or belongs to nothing."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, delete, select

from pointsman.errors import UserError
from pointsman.jobs.artifacts import collect
from pointsman.jobs.files import ArtifactStore
from pointsman.jobs.store import Jobs
from pointsman.jobs.view import FINISHED
from pointsman.tables import ArtifactRow, JobChunkRow, JobLogRow, JobRow

UNCLAIMED_FOR = timedelta(days=1)
"""A file without a row may be one whose job writes its row just now, but not for so long."""

_jobs = JobRow.__table__  # type: ignore[attr-defined]
_chunks = JobChunkRow.__table__  # type: ignore[attr-defined]
_lines = JobLogRow.__table__  # type: ignore[attr-defined]
_artifacts = ArtifactRow.__table__  # type: ignore[attr-defined]


def delete_job(engine: Engine, files: ArtifactStore, job_id: str) -> None:
    """Removes a finished job: its row, parts, log, and each of its files that nothing else refers to."""
    job = Jobs(engine).get(job_id)
    named = Jobs(engine).artifacts(job_id)
    with engine.begin() as connection:
        ended = delete(_jobs).where(_jobs.c.id == job_id, _jobs.c.state.in_(sorted(FINISHED)))
        if not connection.execute(ended).rowcount:
            raise UserError(f"job {job_id} is {job.state}; cancel it first, then delete it")
    for artifact in named:
        collect(engine, files, artifact.hash, artifact.suffix)


def forget_words(engine: Engine, before: datetime) -> tuple[int, int]:
    """Deletes log lines and parts of jobs that ended before a time: they hold people's text. How many of each."""
    ended = select(_jobs.c.id).where(_jobs.c.state.in_(sorted(FINISHED)), _jobs.c.ended_at < before)
    with engine.begin() as connection:
        lines = connection.execute(delete(_lines).where(_lines.c.job_id.in_(ended))).rowcount
        parts = connection.execute(delete(_chunks).where(_chunks.c.job_id.in_(ended))).rowcount
    return lines, parts


def forget_small(engine: Engine, before: datetime) -> int:
    """Deletes small jobs that ended before a time; they leave no files. How many."""
    old: Any = (_jobs.c.small, _jobs.c.state.in_(sorted(FINISHED)), _jobs.c.ended_at < before)
    with engine.begin() as connection:
        return connection.execute(delete(_jobs).where(*old)).rowcount


def sweep_files(engine: Engine, files: ArtifactStore, now: datetime) -> int:
    """Removes files that nothing refers to, of jobs that were killed as they wrote; how many."""
    before = now - UNCLAIMED_FOR
    removed = files.sweep_unfinished(before)
    for found in files.found():
        if found.modified < before:
            removed += collect(engine, files, found.hash, found.suffix)
    return removed


def sweep_folders(engine: Engine, home: Path) -> int:
    """Removes scratch folders on this machine of attempts that are over; how many."""
    removed = 0
    for folder in (home / "jobs").glob("*-*"):
        job_id, _, fence = folder.name.rpartition("-")
        if folder.name.startswith("help-") or not fence.isdigit():
            continue
        job = Jobs(engine).find(job_id)
        if job is None or job.finished or job.fence > int(fence):
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed
