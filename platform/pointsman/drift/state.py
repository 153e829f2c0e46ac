"""Detectors' states in Postgres: one row for each thing that is watched, taken under lock, put back changed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, delete, select
from sqlalchemy.dialects.postgresql import insert

from pointsman.ids import content_id
from pointsman.tables import METADATA
from pointsman.words import DetectorKind

DETECTOR: Table = METADATA.tables["detector"]


def detector(connection: Connection, project: str, kind: DetectorKind, subject: str) -> Any | None:
    """The row, locked until the transaction ends; None where it is not watched yet."""
    d = DETECTOR.c
    mine = (d.project_id == project, d.kind == kind, d.subject == subject)
    return connection.execute(select(DETECTOR).where(*mine).with_for_update()).first()


def keep(
    connection: Connection,
    project: str,
    kind: DetectorKind,
    subject: str,
    state: Mapping[str, Any],
    now: datetime,
    *,
    endpoint_hash: str | None = None,
    cursor: object = None,
    alarm_id: str | None = None,
) -> None:
    """Writes the state, of a new detector or a known one."""
    values = {
        "id": content_id("detector", project, kind, subject), "project_id": project, "kind": kind, "subject": subject,
        "endpoint_hash": endpoint_hash, "state": dict(state), "cursor": cursor, "alarm_id": alarm_id,
        "started_at": now, "updated_at": now,
    }  # fmt: skip
    changed = {name: values[name] for name in ("endpoint_hash", "state", "cursor", "alarm_id", "updated_at")}
    connection.execute(insert(DETECTOR).values(values).on_conflict_do_update(index_elements=["id"], set_=changed))


def forget(connection: Connection, project: str, kind: DetectorKind, subject: str) -> None:
    """Starts over: what was learned is of another arm."""
    d = DETECTOR.c
    connection.execute(delete(DETECTOR).where(d.project_id == project, d.kind == kind, d.subject == subject))
