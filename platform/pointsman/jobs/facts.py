"""What an estimate is made from: how many workers there are, and what their calls took lately."""

from __future__ import annotations

from sqlalchemy import Engine, func, select

from pointsman.jobs.kinds import Facts
from pointsman.tables import Call

RECENT = 500
"""Calls that are looked at, the newest."""

_calls = Call.__table__  # type: ignore[attr-defined]


def read_facts(engine: Engine, workers: int) -> Facts:
    """Means over the newest calls of any project; unknown where there were none, or none with a price."""
    columns = (_calls.c.cost, _calls.c.latency_ms)
    recent = select(*columns).where(_calls.c.status == "ok").order_by(_calls.c.id.desc()).limit(RECENT).subquery()
    with engine.connect() as connection:
        cost, milliseconds = connection.execute(select(func.avg(recent.c.cost), func.avg(recent.c.latency_ms))).one()
    return Facts(workers, cost, None if milliseconds is None else milliseconds / 1000)
