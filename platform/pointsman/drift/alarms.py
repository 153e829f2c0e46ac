"""Alarms: one row while a thing is wrong, shown in `/readyz`, metrics and dashboard, and sent to a webhook once.

The webhook's address is a secret of the configuration (`[alarms] webhook_env`); what is sent holds no request's text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, Table, and_, insert, select, update

from pointsman.errors import UserError
from pointsman.ids import is_uuid, new_id
from pointsman.plain_http import NoAnswer, exchange
from pointsman.promotion.serving import announce
from pointsman.tables import METADATA
from pointsman.words import AlarmKind

ALARM: Table = METADATA.tables["alarm"]
WEBHOOK_SECONDS = 5.0
DOUBTING: tuple[AlarmKind, ...] = ("worker_reward", "silent_update")
"""Alarms that say a worker is no more what routers were trained on."""
_TOGETHER = 50


@dataclass(frozen=True)
class About:
    """What an alarm is about."""

    worker: str | None = None
    endpoint_hash: str | None = None
    router_version_id: str | None = None
    gate_id: str | None = None


def raise_alarm(
    connection: Connection,
    project: str,
    kind: AlarmKind,
    message: str,
    now: datetime,
    about: About | None = None,
    detail: Mapping[str, Any] | None = None,
) -> str | None:
    """The new alarm's id; None where the same is on already."""
    subject = about or About()
    a = ALARM.c
    same = and_(*(a[name].is_not_distinct_from(value) for name, value in vars(subject).items()))
    on = select(a.id).where(a.project_id == project, a.kind == kind, a.resolved_at.is_(None), same)
    if connection.execute(on.limit(1)).first() is not None:
        return None
    identity = new_id()
    values = {"id": identity, "project_id": project, "kind": kind, "message": message, "raised_at": now}
    connection.execute(insert(ALARM).values({**values, **vars(subject), "detail": dict(detail) if detail else None}))
    if kind in DOUBTING:
        announce(connection, f"alarm {identity}")
    return identity


def alarms_on(connection: Connection, project: str | None = None, limit: int = 100) -> list[Any]:
    """Alarms that nobody resolved, newest first; of all projects where none is named."""
    a = ALARM.c
    query = select(ALARM).where(a.resolved_at.is_(None)).order_by(a.id.desc()).limit(limit)
    return list(connection.execute(query if project is None else query.where(a.project_id == project)))


def doubted_endpoints(connection: Connection) -> dict[str, tuple[str, ...]]:
    """By project, the endpoints whose rewards fell or that answer otherwise than they did, by an alarm that is on."""
    a = ALARM.c
    query = select(a.project_id, a.endpoint_hash).where(
        a.resolved_at.is_(None), a.kind.in_(DOUBTING), a.endpoint_hash.is_not(None)
    )
    found: dict[str, set[str]] = {}
    for project, endpoint in connection.execute(query):
        found.setdefault(str(project), set()).add(endpoint)
    return {project: tuple(sorted(endpoints)) for project, endpoints in found.items()}


def acknowledge(connection: Connection, project: str, alarm_id: str, by: str, now: datetime) -> None:
    """Somebody has seen it; it stays on. Raises `UserError` where there is no such alarm."""
    _change(connection, project, alarm_id, {"acknowledged_by": by, "acknowledged_at": now})


def resolve(connection: Connection, project: str, alarm_id: str, now: datetime) -> None:
    """It is over, or was none. Raises `UserError` where there is no such alarm."""
    _change(connection, project, alarm_id, {"resolved_at": now})
    announce(connection, f"alarm {alarm_id} is over")


def notify(engine: Engine, url: str, now: datetime) -> tuple[int, int]:
    """Posts every alarm that was not sent yet, oldest first; (sent, failed). What failed is tried again next time."""
    sent = failed = 0
    a = ALARM.c
    with engine.connect() as connection:
        waiting = connection.execute(select(ALARM).where(a.notified_at.is_(None)).order_by(a.id).limit(_TOGETHER)).all()
    for row in waiting:
        if not _post(url, row):
            failed += 1
            continue
        sent += 1
        with engine.begin() as connection:
            connection.execute(update(ALARM).where(a.id == row.id).values(notified_at=now))
    return sent, failed


def described(row: Any) -> dict[str, Any]:
    """An alarm as JSON."""
    return {
        "id": str(row.id),
        "project_id": str(row.project_id),
        "kind": row.kind,
        "worker": row.worker,
        "router_version_id": None if row.router_version_id is None else str(row.router_version_id),
        "gate_id": None if row.gate_id is None else str(row.gate_id),
        "message": row.message,
        "detail": row.detail,
        "raised_at": row.raised_at.isoformat(),
    }


def _post(url: str, row: Any) -> bool:
    body = msgspec.json.encode({"event": "pointsman.alarm", "alarm": described(row)})
    try:
        answer = exchange(
            "POST", url, headers={"content-type": "application/json"}, body=body, timeout=WEBHOOK_SECONDS, limit=1_000
        )
    except NoAnswer:
        return False
    return 200 <= answer.status < 300


def _change(connection: Connection, project: str, alarm_id: str, values: Mapping[str, Any]) -> None:
    a = ALARM.c
    mine = update(ALARM).where(a.id == alarm_id, a.project_id == project, a.resolved_at.is_(None)).values(values)
    if not is_uuid(alarm_id) or connection.execute(mine).rowcount == 0:
        raise UserError(f"there is no alarm {alarm_id!r} that is on; `pointsman alarms` lists them")
