"""Looks at open turns from the dispatcher, and opens one when enough has come in."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine, select

from pointsman.flywheel.store import OPEN, TURN
from pointsman.jobs.store import Jobs

LOOK = timedelta(seconds=5)
RULE = timedelta(minutes=10)
"""How often the rule is asked: it counts rows of the log."""
KEY = "flywheel"


class FlywheelPulse:
    """One dispatcher's; several start one job between them. `enabled` projects are looked at for new information."""

    def __init__(self, engine: Engine, enabled: str | None) -> None:
        self._engine = engine
        self._enabled = enabled
        self._looked: datetime | None = None
        self._asked: datetime | None = None

    def beat(self, now: datetime) -> str | None:
        """The job that this beat started, if any."""
        if self._looked is not None and now - self._looked < LOOK:
            return None
        self._looked = now
        with self._engine.connect() as connection:
            project = _open(connection)
        if project is None and self._enabled is not None and (self._asked is None or now - self._asked >= RULE):
            self._asked, project = now, self._enabled
        if project is None:
            return None
        key = f"{KEY}/{project}"
        return Jobs(self._engine).start("flywheel", {}, project_id=project, asked_by=KEY, dedupe_key=key).id


def _open(connection: Connection) -> str | None:
    found = connection.scalar(select(TURN.c.project_id).where(TURN.c.state.in_(OPEN)).limit(1))
    return None if found is None else str(found)
