"""Starts `audit` jobs for what the gateway has drawn, while the day's budget lasts."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import Engine, text

from pointsman.config import Config
from pointsman.ids import lowest_id
from pointsman.jobs.store import Jobs
from pointsman.probing.audit import live_name

LOOK = timedelta(minutes=1)
LATE = timedelta(minutes=2)
"""A decision may reach Postgres so long after it was made."""
_KEY = "live audit"

# What was drawn and cannot be asked (redacted since, of a withdrawn key) has no row either: such requests
# are looked at again when others come, or once on the next day, and not every minute.
_DUE = text("""
SELECT DISTINCT ON (d.project_id) d.project_id, coalesce(run.counted, 0) AS counted
FROM decision d
LEFT JOIN audit_run run ON run.project_id = d.project_id AND run.kind = 'live' AND run.name = :today
WHERE d.audited AND d.origin = 'traffic' AND d.id >= CAST(:oldest AS uuid)
  AND (run.id IS NULL OR d.decided_at > coalesce(run.ended_at, run.started_at) - :late)
  AND NOT EXISTS (SELECT FROM decision a WHERE a.request_id = d.request_id AND a.origin = 'audit')
ORDER BY d.project_id
""")


class AuditPulse:
    """One dispatcher's; several start one job of a project between them. Costs a query a minute.

    A pool without any price is not audited by itself: its budget could not be kept.
    """

    def __init__(self, engine: Engine, config: Config | None) -> None:
        self._engine = engine
        priced = config is not None and any(worker.price is not None for worker in config.workers)
        self._config = config if priced else None
        self._looked: datetime | None = None

    def beat(self, now: datetime) -> list[str]:
        """The jobs that this beat started."""
        if self._config is None or (self._looked is not None and now - self._looked < LOOK):
            return []
        self._looked = now
        audit = self._config.audit
        oldest = lowest_id(now - timedelta(days=self._config.log.retention))
        with self._engine.connect() as connection:
            values = {"today": live_name(now), "oldest": oldest, "late": LATE}
            due = list(connection.execute(_DUE, values))
        return [self._start(row, audit.budget - row.counted) for row in due if row.counted < audit.budget]

    def _start(self, row: Any, left: Decimal) -> str:
        """Answers and a judge's scores together cost no more than is left of the day's budget."""
        assert self._config is not None
        params = {"judge": self._config.judge is not None}
        started = Jobs(self._engine).start(
            "audit", params, project_id=str(row.project_id), asked_by=_KEY, budget=left, dedupe_key=_KEY
        )
        return started.id
