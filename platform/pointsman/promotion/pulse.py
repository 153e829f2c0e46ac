"""Starts `gates` jobs while gates run: soon after rows can be taken, and once a minute for what needs no rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine, text

from pointsman.jobs.store import Jobs
from pointsman.promotion.process import SETTLE

_LOOK = timedelta(seconds=10)
_ANYHOW = timedelta(seconds=60)
_KEY = "gates"

_DUE = text("""
SELECT g.project_id, EXISTS (
    SELECT FROM decision d
    WHERE d.gate_id = g.id AND d.decided_at < :now - make_interval(secs => g.deadline_seconds + :settle)
      AND NOT EXISTS (SELECT FROM gate_row r WHERE r.gate_id = g.id AND r.episode_id = d.episode_id)
) AS waiting
FROM gate g WHERE g.state = 'running'
""")


class Pulse:
    """One dispatcher's; several start one job between them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._looked: datetime | None = None
        self._started: datetime | None = None

    def beat(self, now: datetime) -> str | None:
        """The job that this beat started, if any. Costs one query every ten seconds."""
        if self._looked is not None and now - self._looked < _LOOK:
            return None
        self._looked = now
        with self._engine.connect() as connection:
            rows: list[Any] = list(connection.execute(_DUE, {"now": now, "settle": SETTLE.total_seconds()}))
        anyhow = self._started is None or now - self._started >= _ANYHOW
        due = [row for row in rows if row.waiting or anyhow]
        if not due:
            return None
        self._started = now
        project = str(due[0].project_id)
        return Jobs(self._engine).start("gates", {}, project_id=project, asked_by=_KEY, dedupe_key=_KEY).id
