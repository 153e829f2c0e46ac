"""Which router serves: promote, roll back, shadow."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from pointsman.actions.actor import Actor, record, require
from pointsman.errors import UserError
from pointsman.promotion import promote as effects
from pointsman.promotion.certify import proof_of
from pointsman.promotion.promote import Why
from pointsman.promotion.register import end_gate, open_gate
from pointsman.promotion.serving import announce
from pointsman.promotion.versions import StoredVersion, find_version, set_state


def promote(
    connection: Connection,
    actor: Actor,
    project: str,
    named: str,
    now: datetime,
    *,
    reason: str | None = None,
    fallback: str | None = None,
    uncertified: bool = False,
    cards_hash: str | None = None,
    serving: str | None = None,
) -> StoredVersion:
    """Makes a version serve. Without a certificate that it is better it is refused, unless `uncertified` is said.

    `serving` is the version that serves now, where it is known and was never promoted. A gate of this version ends.
    """
    require(actor, "operator", "promote a router version")
    version = find_version(connection, named)
    proof = proof_of(connection, project, version.id)
    if proof is None and not uncertified:
        raise UserError(
            f"no certificate says that {version.id} is better than what serves; `pointsman gate start {version.id}` "
            "gathers one, --uncertified promotes it all the same"
        )
    second = find_version(connection, fallback).id if fallback is not None else None
    gate = open_gate(connection, project)
    mine = gate is not None and str(gate.candidate_id) == version.id
    certificate = None if proof is None else str(proof.id)
    why = Why(actor.name, reason, str(gate.id) if mine and gate else None, certificate, cards_hash)
    effects.promote(connection, project, version, why, now, fallback=second, previous=serving)
    if gate is not None:
        state, told = ("promoted", f"promoted by {actor.name}") if mine else ("stopped", "another version was promoted")
        end_gate(connection, gate, state, told, now, None if mine else "candidate")  # type: ignore[arg-type]
    detail = {"certificate_id": certificate, "uncertified": proof is None, "fallback": second}
    record(connection, actor, project, "promote", now, subject=version.id, reason=reason, detail=detail)
    return version


def roll_back(
    connection: Connection,
    actor: Actor,
    project: str,
    now: datetime,
    *,
    reason: str | None = None,
    cards_hash: str | None = None,
) -> str | None:
    """Undoes the last promotion; the version that serves now, None where that is the file's. A gate that runs stops."""
    require(actor, "operator", "roll back")
    back, _ = effects.roll_back(connection, project, Why(actor.name, reason, cards_hash=cards_hash), now)
    if (gate := open_gate(connection, project)) is not None:
        end_gate(connection, gate, "stopped", "its incumbent was rolled back", now, "candidate")
    record(connection, actor, project, "roll_back", now, subject=back, reason=reason)
    return back


def shadow(connection: Connection, actor: Actor, project: str, named: str, now: datetime, *, on: bool) -> StoredVersion:
    """Lets a candidate choose beside what serves, without effect (`on`), or ends that."""
    require(actor, "operator", "change a shadow")
    version = find_version(connection, named)
    wanted, state = ("candidate", "shadow") if on else ("shadow", "candidate")
    if version.state != wanted:
        raise UserError(f"router version {version.id} is {version.state}, and only a {wanted} can become {state}")
    set_state(connection, version.id, state)  # type: ignore[arg-type]
    announce(connection, f"shadow {version.id}")
    record(connection, actor, project, "shadow_on" if on else "shadow_off", now, subject=version.id)
    return version
