"""What training leaves behind: a router version, its files kept beyond the job, and gateways told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Table, update
from sqlalchemy.dialects.postgresql import insert

from harness.routing.base import RouterVersion
from pointsman.jobs.artifacts import hold
from pointsman.jobs.context import JobContext
from pointsman.jobs.view import Artifact
from pointsman.promotion.serving import announce
from pointsman.tables import METADATA
from pointsman.words import RouterKind, RouterState

VERSION: Table = METADATA.tables["router_version"]


def release(
    context: JobContext,
    kind: RouterKind,
    config: Mapping[str, Any],
    files: Sequence[Artifact],
    *,
    candidate: bool,
    parent: str | None = None,
) -> str:
    """Writes the version once, whatever happens to the job; its id. One that is known keeps its state, but for a
    draft that becomes a candidate. Nothing serves by it."""
    version = RouterVersion(kind, config, parent)
    state: RouterState = "candidate" if candidate else "draft"

    def write(connection: Connection) -> str:
        for artifact in files:
            hold(connection, artifact, f"router version {version.id}: {artifact.name}"[:200])
        values = {
            "id": UUID(version.id),
            "kind": kind,
            "parent_id": None if parent is None else UUID(parent),
            "artifact_hash": version.artifact_hash,
            "config": dict(config),
            "state": state,
            "created_at": datetime.now(UTC),
        }
        connection.execute(insert(VERSION).values(values).on_conflict_do_nothing(index_elements=["id"]))
        if candidate:
            draft = (VERSION.c.id == UUID(version.id)) & (VERSION.c.state == "draft")
            connection.execute(update(VERSION).where(draft).values(state=state))
            announce(connection, "a candidate")
        return version.id

    identity: str = context.publish("router version", write)
    return identity
