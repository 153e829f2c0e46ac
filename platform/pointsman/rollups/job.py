"""The runner of `rollup`, and what starts it: while there is traffic, soon after each hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, text

from pointsman.ids import lowest_id
from pointsman.jobs.context import JobContext
from pointsman.jobs.kinds import Rollup
from pointsman.jobs.store import Jobs
from pointsman.rollups.fill import HOUR, SETTLE, floor_hour, read_mark, refresh

LOOK = timedelta(minutes=1)
WORDS_EVERY = timedelta(minutes=10)
_KEY = "rollup"
_DUE = text("""
SELECT project_id FROM decision
WHERE origin = 'traffic' AND id >= CAST(:low AS uuid) AND id < CAST(:high AS uuid) LIMIT 1
""")
_SPOKEN = text("SELECT project_id FROM feedback WHERE id >= CAST(:low AS uuid) LIMIT 1")


def run(context: JobContext, params: Rollup) -> dict[str, Any]:
    with context.stage("hours") as stage:
        if not stage.todo:
            return {}
        filled = refresh(context.engine, datetime.now(UTC), context.progress)
        context.log(f"{filled.new} new hours, {filled.again} again")
        until = filled.until.isoformat() if filled.until else None
        return {"new": filled.new, "again": filled.again, "until": until}


class RollupPulse:
    """One dispatcher's; several start one job between them. Costs a query a minute."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._looked: datetime | None = None

    def beat(self, now: datetime) -> str | None:
        """The job that this beat started, if any."""
        if self._looked is not None and now - self._looked < LOOK:
            return None
        self._looked = now
        project = self._due(now)
        if project is None:
            return None
        return Jobs(self._engine).start("rollup", {}, project_id=project, asked_by=_KEY, dedupe_key=_KEY).id

    def _due(self, now: datetime) -> str | None:
        """A project with traffic in an hour that is over and not summed, or with words since they were last counted."""
        with self._engine.connect() as connection:
            mark = read_mark(connection)
            end = floor_hour(now - SETTLE)
            start = mark.until if mark else end - 10_000 * HOUR
            found = None
            if start < end:
                found = connection.scalar(_DUE, {"low": lowest_id(start), "high": lowest_id(end)})
            if found is None and mark is not None and now - mark.words_until >= WORDS_EVERY:
                found = connection.scalar(_SPOKEN, {"low": lowest_id(mark.words_until)})
            return None if found is None else str(found)
