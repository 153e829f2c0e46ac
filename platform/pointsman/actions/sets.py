"""Filters of decisions that are kept under a name: data sets that grow with the log."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, delete
from sqlalchemy.dialects.postgresql import insert

from pointsman.actions.actor import Actor, record, require
from pointsman.errors import UserError
from pointsman.ids import content_id
from pointsman.queries.filters import DecisionFilter
from pointsman.queries.sets import SAVED_SET, filter_json

MAX_NAME = 80


def save_set(
    connection: Connection, actor: Actor, project: str, name: str, filters: DecisionFilter, now: datetime
) -> str:
    """Keeps a filter; one of the same name is replaced. Its id."""
    require(actor, "reviewer", "save a filter")
    named = name.strip()
    if not 0 < len(named) <= MAX_NAME:
        raise UserError(f"name: expected 1 to {MAX_NAME} characters, got {len(named)}")
    identity = content_id("saved_set", project, named)
    values = {
        "id": identity, "project_id": project, "name": named, "filters": filter_json(filters), "made_by": actor.name,
        "made_at": now,
    }  # fmt: skip
    changed = {key: values[key] for key in ("filters", "made_by", "made_at")}
    connection.execute(insert(SAVED_SET).values(values).on_conflict_do_update(index_elements=["id"], set_=changed))
    record(connection, actor, project, "set_save", now, subject=identity, detail={"name": named})
    return identity


def drop_set(connection: Connection, actor: Actor, project: str, identity: str, now: datetime) -> None:
    """Forgets the filter; no decision is touched."""
    require(actor, "operator", "delete a saved filter")
    s = SAVED_SET.c
    gone = connection.execute(
        delete(SAVED_SET).where(s.id == identity, s.project_id == project).returning(s.name)
    ).first()
    if gone is None:
        raise UserError("there is no such saved filter here")
    record(connection, actor, project, "set_drop", now, subject=identity, detail={"name": gone.name})
