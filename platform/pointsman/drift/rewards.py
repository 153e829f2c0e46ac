"""Have a worker's rewards fallen? A Shiryaev–Roberts detector per worker, on what its answers earned in traffic.

The first rewards at an endpoint say what is usual; a baseline is a sample too, so what alarms lies below it by more
than its own noise. Conditional on being routed: a router that sends a worker harder requests lowers its mean as well,
and the alarm's message says so. After an alarm was resolved a new baseline is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, and_, select

from pointsman.drift.alarms import ALARM, About, raise_alarm
from pointsman.drift.state import detector, forget, keep
from pointsman.queries.scope import CALL
from pointsman.rewards.store import REWARD
from pointsman.statistics.change import FallDetector
from pointsman.tables import METADATA

BASELINE = 200
SLACK = 0.03
NOISE = 2.0
"""Standard errors of the baseline's mean that a fall must exceed, if that is more than SLACK; ours."""
RUN_LENGTH = 5_000
_PAGE = 5_000
WORKER_ENDPOINT: Table = METADATA.tables["worker_endpoint"]


@dataclass
class Watched:
    """One worker: a baseline that grows, then a detector."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    detector: FallDetector | None = None

    def observe(self, value: float, baseline: int) -> bool:
        """Takes the next reward; whether there is an alarm."""
        if self.detector is not None:
            return self.detector.observe(value)
        self.n += 1
        self.total += value
        self.squares += value * value
        if self.n >= baseline:
            self.detector = FallDetector.start(self.usual, RUN_LENGTH)
        return False

    @property
    def usual(self) -> float:
        """What is not alarming: the baseline's mean less its noise."""
        mean = self.total / self.n
        variance: float = max(self.squares / self.n - mean * mean, 0.0)
        noise: float = NOISE * (variance / self.n) ** 0.5
        return min(max(mean - max(SLACK, noise), 0.01), 1.0)

    def to_json(self) -> dict[str, Any]:
        found = None if self.detector is None else self.detector.to_json()
        return {"n": self.n, "total": self.total, "squares": self.squares, "detector": found}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Watched:
        found = stored["detector"]
        return cls(
            stored["n"], stored["total"], stored["squares"], None if found is None else FallDetector.from_json(found)
        )


def watch_rewards(
    connection: Connection,
    project: str,
    spec_hash: str,
    endpoints: Mapping[str, str],
    now: datetime,
    *,
    baseline: int = BASELINE,
) -> list[str]:
    """Takes the rewards that are new, worker by worker (`endpoints`: {worker: hash}); the messages of new alarms."""
    messages = (
        _watch(connection, project, spec_hash, worker, endpoint, now, baseline)
        for worker, endpoint in sorted(endpoints.items())
    )
    return [message for message in messages if message is not None]


def _watch(
    connection: Connection, project: str, spec_hash: str, worker: str, endpoint: str, now: datetime, baseline: int
) -> str | None:
    row = detector(connection, project, "worker_reward", worker)
    if row is not None and (row.endpoint_hash != endpoint or _resolved(connection, row.alarm_id)):
        forget(connection, project, "worker_reward", worker)
        after = row.cursor if row.endpoint_hash == endpoint else None
        row = None
    else:
        after = None if row is None else row.cursor
    watched = Watched() if row is None else Watched.from_json(row.state)
    alarm_id = None if row is None or row.alarm_id is None else str(row.alarm_id)
    message = None
    for identity, value in _new(connection, project, spec_hash, worker, endpoint, after):
        after = identity
        if watched.observe(value, baseline) and alarm_id is None:
            message = _message(worker, watched)
            about = About(worker=worker, endpoint_hash=endpoint)
            alarm_id = raise_alarm(connection, project, "worker_reward", message, now, about, watched.to_json())
    keep(
        connection, project, "worker_reward", worker, watched.to_json(), now,
        endpoint_hash=endpoint, cursor=after, alarm_id=alarm_id,
    )  # fmt: skip
    return message


def _message(worker: str, watched: Watched) -> str:
    found = watched.detector
    assert found is not None
    return (
        f"worker {worker}: its rewards have fallen below {found.usual:.2f}, which was usual, after {found.n} more "
        "answers; it has changed, or is sent other requests"
    )


def _new(
    connection: Connection, project: str, spec_hash: str, worker: str, endpoint: str, after: Any
) -> list[tuple[Any, float]]:
    """Closed rewards of the worker at this endpoint, oldest first, up to the first that is still open."""
    w, c = REWARD.c, CALL.c
    answered = and_(
        c.decision_id == w.decision_id, c.worker == w.worker, c.endpoint_hash == endpoint, c.status == "ok",
        c.purpose == "serve",
    )  # fmt: skip
    query = (
        select(w.outcome_id, w.skill, w.closed)
        .select_from(REWARD.join(CALL, answered))
        .where(w.project_id == project, w.spec_hash == spec_hash, w.origin == "traffic", w.worker == worker)
        .order_by(w.outcome_id)
        .limit(_PAGE)
    )
    found = []
    for row in connection.execute(query if after is None else query.where(w.outcome_id > after)):
        if not row.closed:
            break
        if row.skill is not None:
            found.append((row.outcome_id, row.skill))
    return found


def _resolved(connection: Connection, alarm_id: Any) -> bool:
    if alarm_id is None:
        return False
    return connection.scalar(select(ALARM.c.resolved_at).where(ALARM.c.id == alarm_id)) is not None
