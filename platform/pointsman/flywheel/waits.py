"""The links of a turn that wait for traffic: the candidate as a shadow, then under its gate.

A shadow costs nothing and tells whether there is anything to compare: a candidate that never chooses otherwise would
hold a gate open until its days are over, and its share of α would be gone.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from pointsman.actions.actor import Actor
from pointsman.actions.gates import start_gate
from pointsman.actions.routers import shadow
from pointsman.config import Config
from pointsman.errors import UserError
from pointsman.flywheel.links import Conclusion
from pointsman.flywheel.store import LinkRecord, Turn
from pointsman.promotion.register import Overrides, gate_of, open_gate
from pointsman.promotion.versions import versions_of
from pointsman.words import TurnState

THE_FLYWHEEL = Actor("flywheel", "operator")
"""What a turn does by itself: `[flywheel]` allows it."""

_SEEN = text("""
SELECT count(*) AS n,
    count(*) FILTER (WHERE pick.value->>'worker' <> d.shadow_picks->'picks'->0->>'worker') AS otherwise
FROM decision d CROSS JOIN LATERAL jsonb_array_elements(d.shadow_picks->'picks') pick
WHERE d.project_id = :project AND d.origin = 'traffic' AND d.decided_at >= :since AND d.shadow_picks IS NOT NULL
  AND pick.value->>'version' = :version AND pick.value->>'worker' IS NOT NULL
""")
_TURN_STATE: dict[str, TurnState] = {
    "promoted": "promoted", "rolled_back": "refused", "expired": "refused", "stopped": "stopped",
}  # fmt: skip


def begin_shadow(connection: Connection, turn: Turn, config: Config, now: datetime) -> dict[str, Any] | str:
    """Numbers to begin with, or why no shadow is needed."""
    candidate = turn.facts["candidate"]
    if not config.flywheel.shadow_rows:
        return "[flywheel] shadow_rows is 0"
    if versions_of(connection, [candidate])[candidate].state == "candidate":
        shadow(connection, THE_FLYWHEEL, turn.project_id, candidate, now, on=True)
    return {"rows": 0, "otherwise": 0}


def look_at_shadow(
    connection: Connection, turn: Turn, record: LinkRecord, config: Config, now: datetime
) -> Conclusion | dict[str, Any]:
    """A conclusion, or the numbers while it goes on."""
    section, candidate = config.flywheel, turn.facts["candidate"]
    began = datetime.fromisoformat(record.began_at)
    seen = connection.execute(_SEEN, {"project": turn.project_id, "since": began, "version": candidate}).one()
    numbers = {"rows": seen.n, "otherwise": seen.otherwise}
    late = now - began >= timedelta(hours=section.shadow_hours)
    if seen.n < section.shadow_rows and not late:
        return numbers
    if versions_of(connection, [candidate])[candidate].state == "shadow":
        shadow(connection, THE_FLYWHEEL, turn.project_id, candidate, now, on=False)
    if not seen.n:
        why = f"no request was seen in {section.shadow_hours:g} hours, so there is nothing to compare on"
        return Conclusion("refused", why, numbers, ends="refused")
    if not seen.otherwise:
        why = f"in {seen.n} requests it never chose otherwise than what serves: a gate would wait for nothing"
        return Conclusion("refused", why, numbers, ends="refused")
    return Conclusion("done", f"it chose otherwise in {seen.otherwise} of {seen.n} requests", numbers)


def begin_canary(connection: Connection, turn: Turn, config: Config, now: datetime) -> str:
    """Registers the candidate's gate; its id. The turn's mode is the gate's."""
    return start_gate(
        connection, THE_FLYWHEEL, turn.project_id, turn.facts["candidate"], config, now,
        overrides=Overrides(mode=turn.mode), reason=f"turn {turn.id} of the flywheel",
    )  # fmt: skip


def busy(connection: Connection, turn: Turn) -> str | None:
    """Why no gate can be registered now: another one is open. The turn waits for it."""
    gate = open_gate(connection, turn.project_id)
    return None if gate is None else f"gate {gate.id} is {gate.state}; one gate at a time"


def look_at_canary(connection: Connection, turn: Turn) -> tuple[TurnState, str | None, dict[str, Any]]:
    """The turn's state as its gate says, why, and numbers."""
    if turn.gate_id is None:
        raise UserError(f"turn {turn.id} has no gate")
    gate = gate_of(connection, turn.project_id, turn.gate_id)
    evidence = gate.evidence or {}
    numbers = {"rows": gate.rows, **{key: evidence[key] for key in ("log_e", "log_r") if key in evidence}}
    if gate.state == "running":
        return "running", gate.reason, numbers
    if gate.state == "ready":
        return "proposed", gate.reason, numbers
    return _TURN_STATE[gate.state], gate.reason, numbers
