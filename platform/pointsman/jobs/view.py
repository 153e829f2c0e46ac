"""What is read of jobs: plain values, as the row had them when it was read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Row

from pointsman.words import JobLogLevel, JobQueue, JobState

FINISHED: frozenset[JobState] = frozenset(("cancelled", "failed", "done", "skipped", "dead"))
UNFINISHED: frozenset[JobState] = frozenset(("queued", "running", "cancelling"))


@dataclass(frozen=True, slots=True)
class JobView:
    """A job's row. Ids are text. `done` of `total`, `rate` (a second) and `eta_s` are of the present stage."""

    id: str
    project_id: str
    kind: str
    params: dict[str, Any]
    queue: JobQueue
    priority: int
    small: bool
    state: JobState
    reason: str | None
    stage: str | None
    stages_done: list[str]
    done: int | None
    total: int | None
    rate: float | None
    eta_s: float | None
    lease_owner: str | None
    lease_until: datetime | None
    heartbeat_at: datetime | None
    attempt: int
    crashes: int
    losses: int
    fence: int
    checkpoint: dict[str, Any]
    effects: dict[str, Any]
    result: dict[str, Any] | None
    cost: Decimal
    budget: Decimal | None
    asked_by: str | None
    dedupe_key: str | None
    parent_id: str | None
    created_at: datetime
    sent_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def finished(self) -> bool:
        return self.state in FINISHED

    @classmethod
    def of(cls, row: Row[Any]) -> JobView:
        return cls(**{name: _plain(name, row._mapping[name]) for name in _FIELDS})


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a job said."""

    id: str
    at: datetime
    attempt: int
    stage: str | None
    level: JobLogLevel
    message: str


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One point of a job's metric."""

    name: str
    step: int
    value: float
    at: datetime
    attempt: int


@dataclass(frozen=True, slots=True)
class Artifact:
    """A reference to a file of the artifact store: `hash` is the SHA-256 of its bytes."""

    id: str
    project_id: str
    job_id: str | None
    name: str
    hash: str
    suffix: str
    media: str
    size: int
    created_at: datetime

    @classmethod
    def of(cls, row: Row[Any]) -> Artifact:
        return cls(**{item.name: _plain(item.name, row._mapping[item.name]) for item in fields(cls)})


_FIELDS = tuple(item.name for item in fields(JobView))


def _plain(name: str, value: Any) -> Any:
    identity = name == "id" or name.endswith("_id")
    return str(value) if identity and value is not None else value
