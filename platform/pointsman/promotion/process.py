"""Rows in, a verdict out: takes a gate's closed episodes in order of assignment, and does what follows.

    passed      mode auto: the candidate serves; mode propose: the gate is `ready`, and a person promotes
    worse       the mirrored process or a guardrail: the candidate gets no more traffic
    overtaken   workers or the incumbent have changed: the gate stops, and says why
    expired     its days are over

One transaction under the gate's lock: a second process that comes meanwhile finds nothing to do. Every number can be
computed again from `gate_row`, and every row from the log (`gate_proof`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log
from typing import Any

from sqlalchemy import Connection, Engine, insert, select, update

from pointsman.actions.actor import THE_GATE, record
from pointsman.drift.alarms import About, raise_alarm
from pointsman.drift.pool import current_pool
from pointsman.pool import epoch_of
from pointsman.promotion.episodes import Closed, closed, waiting
from pointsman.promotion.gate_proof import as_row, gate_rows, rules_of, save_certificate
from pointsman.promotion.one_key import rests_on
from pointsman.promotion.promote import Why, promote
from pointsman.promotion.register import GATE, GATE_ROW, end_gate, ramp_of, terms_of
from pointsman.promotion.serving import announce, lately_deciding, newest_promotion
from pointsman.promotion.versions import versions_of
from pointsman.statistics.gate import Gate, Row, Step
from pointsman.words import GateState

TOGETHER = 500
SETTLE = timedelta(seconds=5)
"""A row is taken so long after it has closed: what was said before it closed may still be on its way to Postgres."""


@dataclass(frozen=True)
class Progress:
    """A gate after a look at it. `taken` rows came in by this look, `rows` in all."""

    gate_id: str
    state: GateState
    rows: int
    taken: int
    log_e: float
    log_r: float
    reason: str | None


def process_open_gates(engine: Engine, now: datetime, *, settle: timedelta = SETTLE) -> list[Progress]:
    """One look at every gate that runs."""
    with engine.connect() as connection:
        running = connection.execute(select(GATE.c.id).where(GATE.c.state == "running").order_by(GATE.c.id)).scalars()
        ids = [str(gate_id) for gate_id in running]
    looked = (process_gate(engine, gate_id, now, settle=settle) for gate_id in ids)
    return [progress for progress in looked if progress is not None]


def process_gate(engine: Engine, gate_id: str, now: datetime, *, settle: timedelta = SETTLE) -> Progress | None:
    """One look at one gate; None where another process has it."""
    with engine.begin() as connection:
        query = select(GATE).where(GATE.c.id == gate_id).with_for_update(skip_locked=True)
        gate = connection.execute(query).first()
        if gate is None:
            return None
        state = _restored(gate)
        if gate.state != "running":
            return _progress(gate, gate.state, state, 0, gate.reason)
        if (why := overtaken(connection, gate)) is not None:
            end_gate(connection, gate, "stopped", why, now, "candidate")
            return _progress(gate, "stopped", state, 0, why)
        taken = _take(connection, gate, state, now, settle)
        ended, reason = _conclude(connection, gate, state, taken, now)
        return _progress(gate, ended, state, taken, reason)


def overtaken(connection: Connection, gate: Any) -> str | None:
    """Why the gate's comparison is void: other workers behind the names, or another incumbent."""
    content = current_pool(connection, str(gate.project_id))
    if content is not None and epoch_of(content) != gate.pool_epoch:
        return "the pool has changed: a worker or its endpoint is another one than when the gate was registered"
    known = (str(gate.incumbent_id), str(gate.candidate_id))
    promoted = newest_promotion(connection, str(gate.project_id))
    since = promoted.version if promoted is not None and promoted.id > str(gate.id) else None
    serving = since or lately_deciding(connection, str(gate.project_id), gate.started_at)
    if serving is not None and serving not in known:
        return f"router version {serving} serves now, and not the gate's incumbent {gate.incumbent_id}"
    return None


def _take(connection: Connection, gate: Any, state: Gate, now: datetime, settle: timedelta) -> int:
    """Takes what has closed; returns how many rows that were."""
    rules, ramp = rules_of(connection, gate), ramp_of(gate)
    before, taken = state.rows, 0
    while True:
        ready = closed(connection, gate.project_id, waiting(connection, gate, TOGETHER), rules, now - settle)
        if not ready:
            break
        rows = [_stored(gate, one, state.observe(_row(one))) for one in ready]
        connection.execute(insert(GATE_ROW), rows)
        taken += len(rows)
    if taken:
        values = {"rows": state.rows, "evidence": state.to_json()}
        connection.execute(update(GATE).where(GATE.c.id == gate.id).values(values))
        if ramp.rho(state.rows) != ramp.rho(before):
            announce(connection, f"gate {gate.id} rho {ramp.rho(state.rows)}")
    return taken


def _conclude(
    connection: Connection, gate: Any, state: Gate, taken: int, now: datetime
) -> tuple[GateState, str | None]:
    """What follows from the rows so far; the gate's state, and why."""
    if (why := _worse(state)) is not None:
        return _roll_back(connection, gate, state, why, now)
    if state.verdict == "promote" and taken:
        rows = gate_rows(connection, gate.id)
        held = rests_on(state.terms, [as_row(row) for row in rows], [row.keys or () for row in rows])
        if held:
            reason = f"passed, but the evidence rests on key {held[0]}: without its rows it never reached 1/α"
            connection.execute(update(GATE).where(GATE.c.id == gate.id).values(reason=reason))
            return "running", reason
        return _pass(connection, gate, state, rows, now)
    if gate.expires_at is not None and now >= gate.expires_at:
        reason = f"not decided after {state.rows} rows: its days are over"
        end_gate(connection, gate, "expired", reason, now, "candidate")
        return "expired", reason
    return "running", gate.reason


def _worse(state: Gate) -> str | None:
    """Also after a verdict: a candidate that waits for a person's word may still turn out bad."""
    fired = [guard.limit.name for guard in state.guards if guard.fired]
    if fired:
        return f"guardrail {fired[0]}: the candidate passed its limit"
    if state.log_r >= -log(state.terms.alpha_rollback):
        return "the candidate is worse than the incumbent where they disagree"
    return None


def _roll_back(connection: Connection, gate: Any, state: Gate, why: str, now: datetime) -> tuple[GateState, str]:
    end_gate(connection, gate, "rolled_back", why, now, "retired")
    project, candidate = str(gate.project_id), str(gate.candidate_id)
    about = About(router_version_id=candidate, gate_id=str(gate.id))
    detail = {"rows": state.rows, "log_r": state.log_r}
    raise_alarm(connection, project, "guardrail", f"gate {gate.id} rolled back: {why}", now, about, detail)
    record(connection, THE_GATE, project, "gate_rolled_back", now, subject=str(gate.id), reason=why, detail=detail)
    return "rolled_back", why


def _pass(connection: Connection, gate: Any, state: Gate, rows: list[Any], now: datetime) -> tuple[GateState, str]:
    project, candidate = str(gate.project_id), str(gate.candidate_id)
    certificate = save_certificate(connection, gate, state, rows, now)
    detail = {"rows": state.rows, "log_e": state.log_e, "certificate_id": certificate}
    if gate.mode == "propose":
        reason = f"passed after {state.rows} rows; it waits for `pointsman promote {candidate}`"
        end_gate(connection, gate, "ready", reason, now, None)
        record(connection, THE_GATE, project, "gate_ready", now, subject=str(gate.id), detail=detail)
        return "ready", reason
    reason = f"passed after {state.rows} rows"
    why = Why(THE_GATE.name, reason, str(gate.id), certificate)
    version = versions_of(connection, [candidate])[candidate]
    promote(connection, project, version, why, now, previous=str(gate.incumbent_id))
    end_gate(connection, gate, "promoted", reason, now, None)
    record(connection, THE_GATE, project, "promote", now, subject=candidate, reason=reason, detail=detail)
    return "promoted", reason


def _row(one: Closed) -> Row:
    return Row(one.drawn.rho, one.drawn.arm == "candidate", one.utility, None, one.observed)


def _stored(gate: Any, one: Closed, step: Step) -> dict[str, Any]:
    drawn = one.drawn
    return {
        "gate_id": gate.id, "seq": step.row, "project_id": gate.project_id, "decision_id": drawn.decision,
        "episode_id": drawn.episode, "rho": drawn.rho, "arm": drawn.arm, "utility": one.utility, "known": one.known,
        "mhat": step.prediction, "effect": step.effect, "log_e": step.log_e, "log_r": step.log_r,
        "observed": dict(one.observed) or None, "keys": list(one.keys), "assigned_at": drawn.assigned_at,
        "closed_at": one.closed_at,
    }  # fmt: skip


def _restored(gate: Any) -> Gate:
    terms = terms_of(gate)
    return Gate(terms) if gate.evidence is None else Gate.from_json(terms, gate.evidence)


def _progress(gate: Any, ended: GateState, state: Gate, taken: int, reason: str | None) -> Progress:
    return Progress(str(gate.id), ended, state.rows, taken, state.log_e, state.log_r, reason)
