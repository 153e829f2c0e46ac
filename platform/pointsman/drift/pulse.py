"""Starts `drift` jobs: once an hour for every project that had traffic since."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine, text

from pointsman.ids import lowest_id
from pointsman.jobs.store import Jobs

LOOK = timedelta(minutes=5)
EVERY = timedelta(hours=1)
_KEY = "drift"

_DUE = text("""
SELECT DISTINCT d.project_id FROM decision d
WHERE d.origin = 'traffic' AND d.id >= CAST(:since AS uuid) AND NOT EXISTS (
    SELECT FROM job j WHERE j.project_id = d.project_id AND j.kind = 'drift' AND j.id >= CAST(:since AS uuid)
)
""")


class DriftPulse:
    """One dispatcher's; several start one job of a project between them. A schedule of one's own counts as well."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._looked: datetime | None = None

    def beat(self, now: datetime) -> list[str]:
        """The jobs that this beat started. Costs a query every five minutes."""
        if self._looked is not None and now - self._looked < LOOK:
            return []
        self._looked = now
        with self._engine.connect() as connection:
            rows: list[Any] = list(connection.execute(_DUE, {"since": lowest_id(now - EVERY)}))
        start = Jobs(self._engine).start
        return [start("drift", {}, project_id=str(row.project_id), asked_by=_KEY, dedupe_key=_KEY).id for row in rows]
