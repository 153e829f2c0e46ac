"""Gates with their rows, and what the rows say of the candidate's advantage as they came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, select

from pointsman.ids import is_uuid
from pointsman.queries.scope import of_project
from pointsman.statistics.sequence import BettingSequence
from pointsman.tables import METADATA

GATE = METADATA.tables["gate"]
GATE_ROW = METADATA.tables["gate_row"]
MOST = 5_000
"""Rows from which a confidence sequence is computed for a picture; what decides is the gate's own e-process."""
SHOWN = 200


@dataclass(frozen=True)
class EffectPoint:
    """After `row` rows: the mean of D in units of reward and its 95% confidence sequence."""

    row: int
    mean: float
    low: float
    high: float


def gates(engine: Engine, project: str | None, limit: int = 50) -> tuple[Mapping[str, Any], ...]:
    """Rows of `gate`, newest first."""
    query = select(GATE).where(of_project(GATE, project)).order_by(GATE.c.id.desc()).limit(limit)
    with engine.connect() as connection:
        return tuple(dict(row) for row in connection.execute(query).mappings())


def gate_steps(engine: Engine, project: str | None, gate_id: str) -> tuple[Mapping[str, Any], ...]:
    """Rows of `gate_row` in their order."""
    if not is_uuid(gate_id):
        return ()
    mine = (GATE_ROW.c.gate_id == gate_id, of_project(GATE_ROW, project))
    with engine.connect() as connection:
        rows = connection.execute(select(GATE_ROW).where(*mine).order_by(GATE_ROW.c.seq)).mappings()
        return tuple(dict(row) for row in rows)


def effect_path(effects: Sequence[float], bound: float, alpha: float = 0.05) -> tuple[EffectPoint, ...]:
    """The running mean of D with its betting confidence sequence, at about `SHOWN` rows.

    `bound` ≥ |D| is known before the first row: 1/min(ρ, 1 − ρ) over the registered ramp. D is scaled to [0, 1] for
    the sequence, which assumes that the mean advantage stays the same.
    """
    sequence = BettingSequence.start(alpha)
    taken = effects[:MOST]
    stride = max(1, -(-len(taken) // SHOWN))
    points = []
    for row, effect in enumerate(taken, start=1):
        sequence.observe(min(1.0, max(0.0, (effect / bound + 1) / 2)))
        if row % stride == 0 or row == len(taken):
            found = sequence.interval
            points.append(EffectPoint(row, *((2 * x - 1) * bound for x in (found.estimate, found.low, found.high))))
    return tuple(points)


def bound_of(ramp: Mapping[str, Any]) -> float:
    """The largest |D| that a registered ramp allows."""
    shares = [float(share) for _, share in ramp["steps"]]
    return 1 / min(min(share, 1 - share) for share in shares)
