"""Looking at jobs: their state, what they said, their metrics and files.

What belongs to one project is asked for with its `project_id`. `store.Jobs` adds what changes them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Engine, func, select

from pointsman.errors import UserError
from pointsman.ids import is_uuid
from pointsman.jobs.view import Artifact, JobView, LogLine, MetricPoint
from pointsman.tables import ArtifactRow, JobLogRow, JobRow
from pointsman.words import JobState, members

PAGE = 50

_jobs = JobRow.__table__  # type: ignore[attr-defined]
_lines = JobLogRow.__table__  # type: ignore[attr-defined]
_artifacts = ArtifactRow.__table__  # type: ignore[attr-defined]


class JobReader:
    """The jobs of all projects, to be read."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def find(self, job_id: str, *, project_id: str | None = None) -> JobView | None:
        """The job, None where there is none (of that project, if one is given)."""
        if not is_uuid(job_id):
            return None
        chosen = select(_jobs).where(_jobs.c.id == job_id)
        if project_id is not None:
            chosen = chosen.where(_jobs.c.project_id == project_id)
        with self.engine.connect() as connection:
            row = connection.execute(chosen).one_or_none()
        return None if row is None else JobView.of(row)

    def get(self, job_id: str, *, project_id: str | None = None) -> JobView:
        """As `find`, but UserError where there is none."""
        if (found := self.find(job_id, project_id=project_id)) is None:
            raise UserError(f"no job {job_id[:60]!r}; `pointsman jobs list` shows those there are")
        return found

    def counts(self) -> dict[JobState, int]:
        """How many jobs are in each state; states without a job are left out."""
        with self.engine.connect() as connection:
            rows = connection.execute(select(_jobs.c.state, func.count()).group_by(_jobs.c.state))
            return {row[0]: row[1] for row in rows}

    def logs(self, job_id: str, after: str | None = None, limit: int = 1_000) -> list[LogLine]:
        """What a job said, oldest first; `after` is the id of the last line that is known."""
        chosen = select(_lines).where(_lines.c.job_id == job_id, _lines.c.level != "metric")
        if after is not None:
            chosen = chosen.where(_lines.c.id > after)
        with self.engine.connect() as connection:
            rows = connection.execute(chosen.order_by(_lines.c.id).limit(limit)).all()
        return [LogLine(str(row.id), row.at, row.attempt, row.stage, row.level, row.message or "") for row in rows]

    def metrics(self, job_id: str, name: str | None = None) -> list[MetricPoint]:
        """A job's metrics by name and step; of a step that was taken again, the last attempt's."""
        chosen = select(_lines).where(_lines.c.job_id == job_id, _lines.c.level == "metric")
        if name is not None:
            chosen = chosen.where(_lines.c.name == name)
        with self.engine.connect() as connection:
            rows = connection.execute(chosen.order_by(_lines.c.id)).all()
        points = {(r.name, r.step): MetricPoint(r.name, r.step, r.value, r.at, r.attempt) for r in rows}
        return [points[key] for key in sorted(points)]

    def artifacts(self, job_id: str) -> list[Artifact]:
        """The files that a job left, by name."""
        chosen = select(_artifacts).where(_artifacts.c.job_id == job_id).order_by(_artifacts.c.name)
        with self.engine.connect() as connection:
            return [Artifact.of(row) for row in connection.execute(chosen)]

    def list(
        self,
        *,
        project_id: str | None = None,
        kind: str | None = None,
        state: str | None = None,
        parent_id: str | None = None,
        before: str | None = None,
        limit: int = PAGE,
    ) -> Sequence[JobView]:
        """The newest first. `before` is the id after which the last page ended."""
        if state is not None and state not in members(JobState):
            raise UserError(f"state: expected one of {', '.join(members(JobState))}, got {state[:60]!r}")
        if before is not None and not is_uuid(before):
            raise UserError(f"before: expected the id of a job, got {before[:60]!r}")
        given = {"project_id": project_id, "kind": kind, "state": state, "parent_id": parent_id}
        chosen = select(_jobs).where(*[_jobs.c[name] == value for name, value in given.items() if value is not None])
        if before is not None:
            chosen = chosen.where(_jobs.c.id < before)
        with self.engine.connect() as connection:
            return [JobView.of(row) for row in connection.execute(chosen.order_by(_jobs.c.id.desc()).limit(limit))]
