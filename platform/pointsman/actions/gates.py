"""Starting and stopping gates."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from pointsman.actions.actor import Actor, record, require
from pointsman.config import Config
from pointsman.errors import UserError
from pointsman.promotion.register import OPEN, Overrides, end_gate, gate_of, register_gate
from pointsman.promotion.serving import incumbent
from pointsman.promotion.versions import find_version


def start_gate(
    connection: Connection,
    actor: Actor,
    project: str,
    named: str,
    config: Config,
    now: datetime,
    *,
    serving: str | None = None,
    overrides: Overrides | None = None,
    reason: str | None = None,
) -> str:
    """Registers a gate for a candidate against what serves (`serving`, else as the log tells); its id."""
    require(actor, "operator", "start a gate")
    candidate = find_version(connection, named)
    against = serving or incumbent(connection, project)
    gate = register_gate(
        connection, project, candidate, against, config, now, by=actor.name, overrides=overrides
    )  # fmt: skip
    detail = {"candidate": candidate.id, "incumbent": against}
    record(connection, actor, project, "gate_start", now, subject=gate, reason=reason, detail=detail)
    return gate


def stop_gate(
    connection: Connection, actor: Actor, project: str, gate_id: str, now: datetime, *, reason: str | None = None
) -> Any:
    """Ends a gate without a verdict; its α stays spent. The candidate may enter another."""
    require(actor, "operator", "stop a gate")
    gate = gate_of(connection, project, gate_id, lock=True)
    if gate.state not in OPEN:
        raise UserError(f"gate {gate_id} is {gate.state} already")
    end_gate(connection, gate, "stopped", reason or f"stopped by {actor.name}", now, "candidate")
    record(connection, actor, project, "gate_stop", now, subject=gate_id, reason=reason)
    return gate
