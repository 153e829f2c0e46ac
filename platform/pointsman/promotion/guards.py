"""A gate's guardrails: the limits of errors, latency and cost, from the configuration or from what serves now.

    errors    the share of requests that fail, or that another worker had to answer
    latency   at most one in twenty requests may take longer than `latency_seconds`
    cost      the mean cost may not pass `cost` USD; single requests count up to ten times that

The numbers are fixed when the gate is registered. A request whose cost is not known counts as the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, case, func, select

from pointsman.config.model import GateConfig
from pointsman.queries.scope import DECISION, OUTCOME, in_time
from pointsman.statistics.guardrails import Limit, cost_observation, latency_observation

FAILED = ("upstream_error", "timeout", "truncated")
LEAST_ERRORS = 0.05
LEAST_SECONDS = 1.0
SLOW_SHARE = 0.05
CAP = 10
"""A request counts as at most so many times the limit of the mean."""
_RECORD = timedelta(days=14)
_LEAST_ROWS = 50


@dataclass(frozen=True)
class Guards:
    """None: that guardrail is not there."""

    errors: float
    latency_seconds: float | None = None
    cost: float | None = None

    def limits(self, alpha: float) -> tuple[Limit, ...]:
        """As the statistics take them."""
        limits = [Limit("errors", self.errors, alpha)]
        if self.latency_seconds is not None:
            limits.append(Limit("latency", SLOW_SHARE, alpha))
        if self.cost is not None:
            limits.append(Limit("cost", 1 / CAP, alpha))
        return tuple(limits)

    def observed(self, outcome: Any, arm: str | None) -> dict[str, float]:
        """What one request of the candidate says; an outcome that never came is an error."""
        if outcome is None:
            return {"errors": 1.0}
        fell_back = outcome.worker is not None and arm is not None and outcome.worker != arm
        seen = {"errors": float(outcome.status in FAILED or fell_back)}
        if self.latency_seconds is not None and outcome.latency_ms is not None:
            seen["latency"] = latency_observation(outcome.latency_ms / 1000, self.latency_seconds)
        if self.cost is not None:
            paid = self.cost if outcome.cost is None else float(outcome.cost)
            seen["cost"] = cost_observation(paid, CAP * self.cost)
        return seen

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Guards:
        """From `dataclasses.asdict`, as it comes back from JSON."""
        return cls(**stored)


def guards_of(connection: Connection, project: str, config: GateConfig, now: datetime) -> Guards:
    """From the configuration; what it leaves open is twice what the project's traffic shows now."""
    record = _record(connection, project, now)
    known = record.rows >= _LEAST_ROWS
    errors = config.max_errors
    if errors is None:
        errors = min(max(LEAST_ERRORS, 2 * record.errors / record.rows if known else 0.0), 0.5)
    seconds = config.max_latency
    if seconds is None and known and record.slow is not None:
        seconds = max(2 * record.slow / 1000, LEAST_SECONDS)
    cost = None if config.max_cost is None else float(config.max_cost)
    if cost is None and known and record.cost:
        cost = 2 * float(record.cost)
    return Guards(float(errors), seconds, cost)


def _record(connection: Connection, project: str, now: datetime) -> Any:
    """Rows, failures, the 95th percentile in milliseconds and the mean cost of lately ended traffic."""
    d, o = DECISION.c, OUTCOME.c
    failed = case((o.status.in_(FAILED) | (o.worker != d.chosen), 1), else_=0)
    since = now - _RECORD
    return connection.execute(
        select(
            func.count().label("rows"),
            func.coalesce(func.sum(failed), 0).label("errors"),
            func.percentile_cont(0.95).within_group(o.latency_ms).label("slow"),
            func.avg(o.cost).label("cost"),
        )
        .select_from(DECISION.join(OUTCOME, o.id == d.id))
        .where(
            d.project_id == project,
            d.origin == "traffic",
            d.kind == "route",
            d.parent_id.is_(None),
            d.probabilities.is_not(None),
            in_time(d.id, since, None),
            in_time(o.id, since, None),
        )
    ).one()
