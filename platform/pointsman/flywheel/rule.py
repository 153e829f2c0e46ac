"""Whether enough has come in for a turn to pay: a rule on effective rows, not on the clock.

A full-information row tells of every worker and counts 1. A drawn decision tells of one of its K eligible workers: n
drawn decisions with propensities p have, for a target that is uniform, the weights 1/(K·p), and are worth Kish's
(Σw)²/Σw² rows, each 1/K of a full one. Only decisions whose outcome is known count (a score, or a word on it).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from pointsman.ids import lowest_id

_LOWEST = "00000000-0000-0000-0000-000000000000"
_FULL = text("""
SELECT count(*) FROM decision d
WHERE d.project_id = :project AND d.id >= CAST(:low AS uuid)
  AND d.origin IN ('audit', 'probe', 'replay') AND d.chosen IS NULL
""")
_DRAWN = text("""
SELECT count(*) AS n, coalesce(sum(w), 0) AS s, coalesce(sum(w * w), 0) AS ss, coalesce(avg(k), 0) AS k
FROM (
    SELECT 1.0 / (d.propensity * k.n) AS w, k.n AS k
    FROM decision d
    CROSS JOIN LATERAL (SELECT count(*)::float AS n FROM jsonb_each(d.probabilities)) k
    WHERE d.project_id = :project AND d.id >= CAST(:low AS uuid)
      AND d.origin = 'traffic' AND d.kind = 'route' AND d.parent_id IS NULL AND d.forced IS NULL
      AND d.propensity > 0 AND k.n > 1
      AND (EXISTS (SELECT FROM feedback f WHERE f.decision_id = d.id AND NOT f.retracted)
           OR EXISTS (SELECT FROM feedback f WHERE f.episode_id = d.episode_id AND NOT f.retracted)
           OR EXISTS (SELECT FROM outcome o WHERE o.id = d.id AND o.score IS NOT NULL))
) weights
""")


@dataclass(frozen=True)
class Information:
    """What has come in since `since` (None: ever). `effective` is in full-information rows."""

    full: int
    drawn: int
    drawn_effective: float
    since: datetime | None = None

    @property
    def effective(self) -> float:
        return self.full + self.drawn_effective

    def to_json(self) -> dict[str, Any]:
        values = asdict(self) | {"effective": round(self.effective, 1)}
        return values | {"since": self.since.isoformat() if self.since else None}


@dataclass(frozen=True)
class Need:
    """`enough` and, in words, why or why not."""

    enough: bool
    why: str


def information(connection: Connection, project: str, since: datetime | None = None) -> Information:
    """What the log has of this project from `since` on."""
    given = {"project": project, "low": lowest_id(since) if since else _LOWEST}
    full = int(connection.scalar(_FULL, given) or 0)
    row = connection.execute(_DRAWN, given).one()
    kish = float(row.s) ** 2 / float(row.ss) if row.ss else 0.0
    return Information(full, int(row.n), kish / float(row.k) if row.k else 0.0, since)


def need(new: Information, before: float | None, rows: int, growth: float, *, changed: bool = False) -> Need:
    """`before`: effective rows of all earlier turns; None for the first turn, which wants `rows` of them.

    A later turn wants `growth` times what there was, and at least a quarter of `rows`: with twice the data an
    estimate is better by a third, with a tenth more it is not, and each turn that reaches a gate spends of its α.
    Where workers have `changed` since, a quarter of `rows` is enough: what serves gives way for them until then.
    """
    least = rows / 4
    wanted = float(rows) if before is None else least if changed else max(growth * before, least)
    told = f"{new.full} full rows and {new.drawn} drawn decisions, worth {new.effective:.0f} effective rows"
    if changed and before is not None:
        told = f"workers have changed since the last turn; {told}"
    if new.effective >= wanted:
        return Need(True, f"{told}, of {wanted:.0f} wanted")
    return Need(False, f"{told}; {wanted:.0f} are wanted before a turn pays")
