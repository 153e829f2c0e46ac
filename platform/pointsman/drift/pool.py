"""A worker's endpoint or card has changed: known from hashes, before any statistics; what rests on them restarts.

endpoint   another arm: its detectors start over, the gate stops (`promotion.process`), the dial is retired
card       another router input: the dial is retired if its router changed with it; rewards stay
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, select

from pointsman.drift.alarms import About, raise_alarm
from pointsman.drift.state import detector, forget, keep
from pointsman.queries.scope import DECISION
from pointsman.tables import METADATA

POOL_SNAPSHOT: Table = METADATA.tables["pool_snapshot"]
Content = Mapping[str, Mapping[str, str | None]]


def current_pool(connection: Connection, project: str) -> Content | None:
    """The pool by which the project's newest request was decided: {worker: {endpoint, card, price}}."""
    d = DECISION.c
    newest = (
        select(d.pool_hash)
        .where(d.project_id == project, d.pool_hash.is_not(None), d.origin == "traffic")
        .order_by(d.id.desc())
        .limit(1)
    )
    return connection.scalar(select(POOL_SNAPSHOT.c.content).where(POOL_SNAPSHOT.c.hash == newest.scalar_subquery()))


def watch_pool(connection: Connection, project: str, now: datetime) -> list[str]:
    """Compares the pool with the one that was seen last; the messages of what changed."""
    content = current_pool(connection, project)
    if content is None:
        return []
    seen = detector(connection, project, "pool", "")
    keep(connection, project, "pool", "", content, now)
    if seen is None:
        return []
    return [
        message
        for worker in sorted(set(content) & set(seen.state))
        for message in _changes(connection, project, worker, seen.state[worker], content[worker], now)
    ]


def _changes(
    connection: Connection,
    project: str,
    worker: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    now: datetime,
) -> list[str]:
    about, detail = About(worker=worker, endpoint_hash=after["endpoint"]), {"before": before, "after": after}
    if before["endpoint"] != after["endpoint"]:
        forget(connection, project, "worker_reward", worker)
        forget(connection, project, "silent_update", worker)
        message = (
            f"worker {worker} has another endpoint: its rewards are of another arm, and what rested on them restarts"
        )
        raise_alarm(connection, project, "endpoint_changed", message, now, about, detail)
        return [message]
    if before["card"] != after["card"]:
        message = f"worker {worker} has another card: the router reads something else of it"
        raise_alarm(connection, project, "card_changed", message, now, about, detail)
        return [message]
    return []
