"""What a person says about an alarm."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from pointsman.actions.actor import Actor, record, require
from pointsman.drift import alarms


def acknowledge_alarm(connection: Connection, actor: Actor, project: str, alarm_id: str, now: datetime) -> None:
    """I have seen it; it stays on."""
    require(actor, "reviewer", "acknowledge an alarm")
    alarms.acknowledge(connection, project, alarm_id, actor.name, now)
    record(connection, actor, project, "alarm_acknowledge", now, subject=alarm_id)


def resolve_alarm(
    connection: Connection, actor: Actor, project: str, alarm_id: str, now: datetime, *, reason: str | None = None
) -> None:
    """It is over, or was none."""
    require(actor, "operator", "resolve an alarm")
    alarms.resolve(connection, project, alarm_id, now)
    record(connection, actor, project, "alarm_resolve", now, subject=alarm_id, reason=reason)
