"""The certificate of a gate that was passed, and the same gate computed again by anybody from the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isclose, log
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from pointsman.hashing import content_hash
from pointsman.ids import new_id
from pointsman.promotion.episodes import Closed, Rules, closed, taken
from pointsman.promotion.register import GATE_ROW, guards_of_gate, terms_of
from pointsman.rewards.store import load_spec
from pointsman.statistics.gate import Gate, Row, replay
from pointsman.tables import METADATA

CERTIFICATE: Table = METADATA.tables["certificate"]
METHOD = "e-process on disagreements (arXiv 2102.09540), betting as in arXiv 2010.09686; anytime valid"
ASSUMPTIONS = (
    "the logged probabilities are those that arms were drawn with",
    "rewards lie in [0, 1] and mean what the reward spec says; a row without one counts as the timeout's value",
    "episodes do not influence one another",
    "the workers behind their names stayed the same meanwhile (pool epoch), and α is spent per epoch",
    "it speaks of the requests on which the two routers disagreed, in this traffic",
)


@dataclass(frozen=True)
class Recomputed:
    """A gate taken again. `faults` is what does not agree with what was stored; `gone` are rows the log lost."""

    rows: int
    log_e: float
    reached: float
    data_hash: str
    faults: tuple[str, ...]
    gone: int


def rules_of(connection: Connection, gate: Any) -> Rules:
    """How the gate turns an episode into a number."""
    spec = load_spec(connection, gate.spec_hash)
    deadline = timedelta(seconds=gate.deadline_seconds)
    return Rules(spec, deadline, gate.timeout_value, guards_of_gate(gate), gate.judge_hash)


def gate_rows(connection: Connection, gate_id: Any) -> list[Any]:
    """In the order in which they were taken."""
    return list(connection.execute(select(GATE_ROW).where(GATE_ROW.c.gate_id == gate_id).order_by(GATE_ROW.c.seq)))


def as_row(row: Any) -> Row:
    """A stored row as the statistics take it; m̂ is computed anew."""
    return Row(row.rho, row.arm == "candidate", row.utility, None, row.observed or {})


def data_hash(rows: Sequence[Any]) -> str:
    """Names the rows that a verdict was computed from."""
    return content_hash([[str(row.decision_id), row.rho, row.arm, row.utility, row.known] for row in rows])


def numbers_of(gate: Any, state: Gate, rows: Sequence[Any]) -> dict[str, float | int]:
    """What a certificate of the gate shows."""
    weight = float(state.evidence.weight[0])
    return {
        "rows": state.rows,
        "log_e": state.log_e,
        "log_e_needed": -log(state.terms.alpha),
        "effect": float(state.evidence.effect[0]) / weight if weight else 0.0,
        "epsilon": state.terms.epsilon,
        "rewards_known": sum(row.known for row in rows) / max(len(rows), 1),
        "candidate_rows": sum(row.arm == "candidate" for row in rows),
    }


def save_certificate(connection: Connection, gate: Any, state: Gate, rows: Sequence[Any], now: datetime) -> str:
    """The certificate of a gate that was passed; its id."""
    identity = new_id()
    values = {
        "id": identity, "project_id": gate.project_id, "claim": "better_than_incumbent",
        "router_version_id": gate.candidate_id, "incumbent_id": gate.incumbent_id, "gate_id": gate.id,
        "alpha_id": gate.alpha_id, "alpha": state.terms.alpha, "method": METHOD,
        "window_start": rows[0].assigned_at, "window_end": max(row.closed_at for row in rows),
        "assumptions": list(ASSUMPTIONS), "numbers": numbers_of(gate, state, rows), "data_hash": data_hash(rows),
        "spec_hash": gate.spec_hash, "pool_epoch": gate.pool_epoch, "judge_units": gate.judge_hash is not None,
        "holds": True, "created_at": now, "checked_at": now,
    }  # fmt: skip
    connection.execute(insert(CERTIFICATE).values(values))
    return identity


def recompute(connection: Connection, gate: Any, rows: int | None = None) -> Recomputed:
    """Takes the gate again: every row from the log, then every step from the rows, the first `rows` of them.

    Rows are taken in order of assignment: a later one may well have closed earlier.
    """
    stored = gate_rows(connection, gate.id)[:rows]
    faults: list[str] = []
    gone = _compare_with_log(connection, gate, stored, faults)
    steps = replay(terms_of(gate), [as_row(row) for row in stored])
    for row, step in zip(stored, steps, strict=True):
        if not isclose(row.log_e, step.log_e, abs_tol=1e-9) or not isclose(row.mhat, step.prediction, abs_tol=1e-9):
            faults.append(f"row {row.seq}: ln E is {step.log_e:.6f}, stored was {row.log_e:.6f}")
            break
    reached = max((step.log_e for step in steps), default=0.0)
    return Recomputed(
        len(stored), steps[-1].log_e if steps else 0.0, reached, data_hash(stored), tuple(faults[:10]), gone
    )


def _compare_with_log(connection: Connection, gate: Any, stored: Sequence[Any], faults: list[str]) -> int:
    """Adds what differs from the log; returns how many rows the log does not have any more."""
    rules = rules_of(connection, gate)
    found = taken(connection, gate, [row.decision_id for row in stored])
    there = [found[row.decision_id] for row in stored if row.decision_id in found]
    longest = max((one.closes(rules.deadline) for one in there), default=None)
    again: Mapping[Any, Closed] = {}
    if longest is not None:
        again = {one.drawn.decision: one for one in closed(connection, gate.project_id, there, rules, longest)}
    for row in stored:
        if (one := again.get(row.decision_id)) is None:
            continue
        seen = (one.drawn.rho, one.drawn.arm, round(one.utility, 9), one.known)
        if seen != (row.rho, row.arm, round(row.utility, 9), row.known):
            faults.append(
                f"row {row.seq}: the log says {seen}, stored was {(row.rho, row.arm, row.utility, row.known)}"
            )
    return len(stored) - len(again)
