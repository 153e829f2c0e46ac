"""Router versions by id, and their states: draft → candidate → shadow, canary → serving → retired.

A version made from the configuration file has the state `serving` from its first day; what really serves a project
is said by its promotions (`serving`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Connection, String, Table, cast, select, update

from pointsman.errors import UserError
from pointsman.tables import METADATA
from pointsman.words import RouterKind, RouterState

ROUTER_VERSION: Table = METADATA.tables["router_version"]
LEAST_CHARS = 8
"""Characters of an id that name a version, if no other begins with them."""


class StoredVersion(msgspec.Struct, frozen=True):
    """A version as it stands in the log: enough to build its router from."""

    id: str
    kind: RouterKind
    config: dict[str, Any]
    parent_id: str | None = None
    state: RouterState = "candidate"


def find_version(connection: Connection, named: str) -> StoredVersion:
    """The version of this id, or the only one whose id begins so. Raises `UserError` that says what is wrong."""
    name = named.strip().lower().removeprefix("pointsman@")
    if len(name) < LEAST_CHARS or set(name) - set("0123456789abcdef-"):
        raise UserError(f"VERSION: expected a router version's id or its first {LEAST_CHARS} characters, got {named!r}")
    text = cast(ROUTER_VERSION.c.id, String)
    found = connection.execute(select(ROUTER_VERSION).where(text.startswith(name)).limit(2)).all()
    if not found:
        raise UserError(f"there is no router version {named!r}; `pointsman gate versions` lists them")
    if len(found) > 1:
        raise UserError(f"several router versions begin with {named!r}; give more of the id")
    return stored(found[0])


def versions_of(connection: Connection, ids: Sequence[str | UUID]) -> Mapping[str, StoredVersion]:
    """These versions by id; those that are not in the log are left out."""
    rows = connection.execute(select(ROUTER_VERSION).where(ROUTER_VERSION.c.id.in_(list(ids))))
    return {str(row.id): stored(row) for row in rows}


def in_state(connection: Connection, states: Sequence[RouterState], limit: int) -> list[StoredVersion]:
    """The newest versions in these states."""
    v = ROUTER_VERSION.c
    rows = connection.execute(
        select(ROUTER_VERSION).where(v.state.in_(list(states))).order_by(v.created_at.desc(), v.id).limit(limit)
    )
    return [stored(row) for row in rows]


def set_state(connection: Connection, version_id: str, state: RouterState) -> None:
    connection.execute(update(ROUTER_VERSION).where(ROUTER_VERSION.c.id == version_id).values(state=state))


def stored(row: Any) -> StoredVersion:
    """A row of `router_version`."""
    parent = None if row.parent_id is None else str(row.parent_id)
    return StoredVersion(str(row.id), row.kind, dict(row.config), parent, row.state)
