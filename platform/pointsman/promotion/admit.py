"""Letting a candidate in without a live gate: by an offline certificate alone, where its ground is good enough.

Only with `[gate] mode = "auto"` and `offline_rows`: the certificate says that the candidate is better than what serves
now, it rests on at least so many episodes of audited traffic (drawn at random), and every reward in it is a verifier's.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, select

from pointsman.actions.actor import THE_GATE, record
from pointsman.config import Config
from pointsman.promotion.certify import recheck
from pointsman.promotion.gate_proof import CERTIFICATE
from pointsman.promotion.promote import Why, promote
from pointsman.promotion.register import open_gate
from pointsman.promotion.serving import lately_deciding, newest_promotion
from pointsman.promotion.versions import versions_of
from pointsman.queries.scope import DECISION
from pointsman.rewards.store import load_spec


def admit_offline(connection: Connection, project: str, config: Config, now: datetime) -> str | None:
    """The version that serves from now on, None where none may. A gate that runs comes first."""
    least = config.gate.offline_rows
    if config.gate.mode != "auto" or least is None or open_gate(connection, project) is not None:
        return None
    promoted = newest_promotion(connection, project)
    serving = (promoted.version if promoted else None) or lately_deciding(connection, project)
    proof = _proof(connection, project, serving)
    if serving is None or proof is None or not _grounded(connection, proof, least):
        return None
    if not recheck(connection, project, str(proof.id), now).holds:
        return None
    version = versions_of(connection, [proof.router_version_id])[str(proof.router_version_id)]
    reason = f"certified on {proof.numbers['episodes']} audited episodes, by verifiers alone"
    why = Why(THE_GATE.name, reason, None, str(proof.id))
    promote(connection, project, version, why, now, previous=serving)
    detail = {"certificate_id": str(proof.id)}
    record(connection, THE_GATE, project, "promote", now, subject=version.id, reason=reason, detail=detail)
    return version.id


def _proof(connection: Connection, project: str, serving: str | None) -> Any | None:
    """The newest certificate of a candidate against what serves now."""
    c = CERTIFICATE.c
    query = select(CERTIFICATE).where(
        c.project_id == project, c.claim == "better_than_incumbent", c.gate_id.is_(None), c.holds,
        c.incumbent_id == serving, c.evidence.is_not(None), c.judge_units.is_(False),
    )  # fmt: skip
    found = connection.execute(query.order_by(c.id.desc()).limit(1)).first()
    if found is None:
        return None
    version = versions_of(connection, [found.router_version_id]).get(str(found.router_version_id))
    return found if version is not None and version.state == "candidate" else None


def _grounded(connection: Connection, proof: Any, least: int) -> bool:
    """Enough episodes, all of audited traffic, verified rewards alone."""
    if proof.numbers.get("episodes", 0) < least:
        return False
    if proof.spec_hash is not None and load_spec(connection, proof.spec_hash).quality != ("verifier",):
        return False
    rows = [UUID(row) for row in proof.evidence["rows"]]
    d = DECISION.c
    audited = select(func.count()).where(d.id.in_(rows), d.origin == "audit", d.audit_rate.is_not(None))
    return connection.scalar(audited) == len(rows)
