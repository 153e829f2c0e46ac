"""Registering a gate: everything that decides is fixed, in the database, before the gate's first row.

α_j comes from the project's ledger and is spent by registering; a project has one gate at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table, insert, select, update

from pointsman.config import Config
from pointsman.errors import UserError
from pointsman.ids import is_uuid, new_id
from pointsman.judge.judging import JudgeSpec
from pointsman.pool import Pool
from pointsman.promotion.guards import Guards, guards_of
from pointsman.promotion.ledger import enter_canary
from pointsman.promotion.serving import announce
from pointsman.promotion.versions import StoredVersion, set_state
from pointsman.rewards.spec import spec_of
from pointsman.rewards.store import save_spec
from pointsman.statistics.gate import Terms
from pointsman.statistics.ramp import Ramp
from pointsman.tables import METADATA
from pointsman.words import GateMode, GateState

GATE: Table = METADATA.tables["gate"]
GATE_ROW: Table = METADATA.tables["gate_row"]
OPEN: tuple[GateState, ...] = ("registered", "running", "ready")


@dataclass(frozen=True)
class Overrides:
    """What a person registers otherwise than `[gate]` says. None: as there."""

    mode: GateMode | None = None
    epsilon: float | None = None
    ramp: Sequence[tuple[int, float]] | None = None


def register_gate(
    connection: Connection,
    project: str,
    candidate: StoredVersion,
    incumbent: str,
    config: Config,
    now: datetime,
    *,
    by: str,
    overrides: Overrides | None = None,
) -> str:
    """Registers and starts a gate; its id. `UserError` where one is open, or where there is nothing to compare."""
    asked = overrides or Overrides()
    if candidate.id == incumbent:
        raise UserError(f"router version {candidate.id} serves already: there is nothing to compare it with")
    if candidate.state == "draft":
        raise UserError(f"router version {candidate.id} is a draft: it is not finished")
    if (other := open_gate(connection, project)) is not None:
        raise UserError(f"gate {other.id} is {other.state}; end it first: pointsman gate stop {other.id}")
    section, spec, pool, gate = config.gate, spec_of(config, config.gate.reward), Pool.of(config), new_id()
    judge = JudgeSpec.of(config, pool)
    save_spec(connection, spec, now)
    entry = enter_canary(connection, project, pool.epoch, section.alpha, now, version=candidate.id, gate=gate)
    guards = guards_of(connection, project, section, now)
    epsilon = section.epsilon if asked.epsilon is None else asked.epsilon
    terms = Terms(
        entry.alpha, epsilon, section.alpha_rollback, section.epsilon_rollback, guards.limits(section.alpha_guards)
    )
    steps = section.ramp if asked.ramp is None else asked.ramp
    values = {
        "id": gate, "project_id": project, "candidate_id": candidate.id, "incumbent_id": incumbent, "state": "running",
        "terms": asdict(terms), "ramp": asdict(Ramp(tuple((int(begin), float(share)) for begin, share in steps))),
        "spec_hash": spec.hash, "unit": "episode", "deadline_seconds": spec.deadline,
        "timeout_value": section.timeout_value, "pool_epoch": pool.epoch, "alpha_id": entry.id,
        "mode": asked.mode or section.mode, "guards": asdict(guards), "judge_hash": judge.hash if judge else None,
        "expires_at": now + timedelta(days=section.days), "rows": 0, "registered_by": by,
        "registered_at": now, "started_at": now,
    }  # fmt: skip
    connection.execute(insert(GATE).values(values))
    set_state(connection, candidate.id, "canary")
    announce(connection, f"gate {gate}")
    return gate


def open_gate(connection: Connection, project: str) -> Any | None:
    """The project's gate that has not ended."""
    g = GATE.c
    return connection.execute(select(GATE).where(g.project_id == project, g.state.in_(OPEN))).first()


def gate_of(connection: Connection, project: str | None, gate_id: str, *, lock: bool = False) -> Any:
    """The gate's row; `project` None: of any. Raises `UserError` where there is none."""
    query = select(GATE).where(GATE.c.id == gate_id)
    if project is not None:
        query = query.where(GATE.c.project_id == project)
    row = connection.execute(query.with_for_update() if lock else query).first() if is_uuid(gate_id) else None
    if row is None:
        raise UserError(f"there is no gate {gate_id!r} here; `pointsman gate` lists them")
    return row


def end_gate(
    connection: Connection, gate: Any, state: GateState, reason: str, now: datetime, candidate: str | None
) -> None:
    """Ends a gate for good; `candidate` is the state that its candidate then has, None: it is set elsewhere."""
    values: Mapping[str, Any] = {"state": state, "reason": reason, "ended_at": None if state == "ready" else now}
    connection.execute(update(GATE).where(GATE.c.id == gate.id).values(values))
    if candidate is not None:
        set_state(connection, str(gate.candidate_id), candidate)  # type: ignore[arg-type]
    announce(connection, f"gate {gate.id} {state}")


def terms_of(gate: Any) -> Terms:
    return Terms.from_json(gate.terms)


def ramp_of(gate: Any) -> Ramp:
    return Ramp.from_json(gate.ramp)


def guards_of_gate(gate: Any) -> Guards:
    return Guards.from_json(gate.guards)
