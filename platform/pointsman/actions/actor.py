"""Who acts, with which role, and the record of what was done.

A viewer looks, a reviewer judges answers, an operator decides what serves, an admin does everything. Whoever has
the data folder (the command line) is an admin there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from pointsman.errors import UserError
from pointsman.ids import new_id
from pointsman.tables import METADATA
from pointsman.words import ActorRole, members

ACTOR_LOG: Table = METADATA.tables["actor_log"]


@dataclass(frozen=True)
class Actor:
    """A person, or a policy that a person set."""

    name: str
    role: ActorRole


THE_GATE = Actor("gate", "operator")
"""What a gate does by itself: `[gate] mode` allows it."""


def require(actor: Actor, role: ActorRole, action: str) -> None:
    """Raises `UserError` where the actor's role is below `role`."""
    order = members(ActorRole)
    if order.index(actor.role) < order.index(role):
        raise UserError(f"{actor.name} may not {action}: that needs the role {role}, and the role here is {actor.role}")


def record(
    connection: Connection,
    actor: Actor,
    project: str,
    action: str,
    now: datetime,
    *,
    subject: str | None = None,
    reason: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> str:
    """Leaves the record; to be called in the transaction of the action itself."""
    identity = new_id()
    values = {
        "id": identity, "project_id": project, "actor": actor.name, "role": actor.role, "action": action,
        "subject": subject, "reason": reason, "detail": dict(detail) if detail else None, "done_at": now,
    }  # fmt: skip
    connection.execute(insert(ACTOR_LOG).values(values))
    return identity


def actions_of(connection: Connection, project: str, limit: int = 50) -> list[Any]:
    """The newest records of a project."""
    a = ACTOR_LOG.c
    return list(connection.execute(select(ACTOR_LOG).where(a.project_id == project).order_by(a.id.desc()).limit(limit)))
