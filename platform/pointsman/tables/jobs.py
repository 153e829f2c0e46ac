"""Jobs: the job's row, its parts (`job_chunk`), what it said (`job_log`), its files, schedules, and shared rates.

A job's row is the truth about it. `fence` grows with each claim: what a worker writes names the fence
it was given, and a row that has moved on takes nothing from it. Unlike the log, these tables are
written row by row, by whoever holds the lease.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, Index, Integer, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field, SQLModel

from pointsman.tables.base import json_column, moment, money, one_of
from pointsman.tables.base import text as text_column
from pointsman.tables.budget import usd
from pointsman.words import ChunkState, JobLogLevel, JobQueue, JobState

DEDUPED = "dedupe_key IS NOT NULL AND state IN ('queued', 'running', 'cancelling')"
"""Among these a project's dedupe key is unique: its unfinished jobs."""


def _object() -> Column[Any]:
    """A `jsonb` object that is never NULL."""
    return Column(JSONB, nullable=False, server_default=text("'{}'"))


def _count() -> Column[int]:
    return Column(Integer, nullable=False, server_default="0")


def _of_job(**options: Any) -> Column[UUID]:
    return Column(Uuid, ForeignKey("job.id", ondelete="CASCADE"), nullable=False, **options)


class JobRow(SQLModel, table=True):
    """One unit of background work.

    `project_id` has no foreign key: 50,000 inserts at once would queue for the project's row. `small`
    jobs run inside the worker, several in one transaction. `checkpoint` is stage → what its runner kept;
    `effects` is name → the value of each effect that was published. `sent_at` is the last wake-up.
    `done` of `total` is the present stage's progress, `rate` its items a second, `eta_s` what is left.
    `crashes` in a row are the job's own, `losses` came from outside; `begun` is whether this attempt's
    process got as far as the job's own code.
    """

    __tablename__ = "job"
    __table_args__ = (
        one_of("state", JobState),
        one_of("queue", JobQueue),
        Index("ix_job_waiting", "queue", text("priority DESC"), "id", postgresql_where=text("state = 'queued'")),
        # Not by lease_until: a heartbeat would then write to the index, each second, for each job.
        Index("ix_job_active", "id", postgresql_where=text("state IN ('running', 'cancelling')")),
        Index("ix_job_project_id", "project_id", "id"),
        Index("ix_job_parent_id", "parent_id", postgresql_where=text("parent_id IS NOT NULL")),
        Index(
            "uq_job_dedupe_key",
            "project_id",
            "dedupe_key",
            unique=True,
            postgresql_where=text(DEDUPED),
        ),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    kind: str
    params: dict[str, Any] = Field(sa_column=_object())
    queue: str = "default"
    priority: int = Field(default=0, sa_column=_count())
    small: bool = Field(default=False, sa_column=Column(Boolean, nullable=False, server_default="false"))
    state: str = "queued"
    reason: str | None = Field(default=None, sa_column=text_column())
    stage: str | None = None
    stages_done: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False, server_default=text("'{}'")))
    done: int | None = Field(default=None, sa_column=Column(BigInteger, nullable=True))
    total: int | None = Field(default=None, sa_column=Column(BigInteger, nullable=True))
    rate: float | None = Field(default=None, sa_column=Column(Float, nullable=True))
    eta_s: float | None = Field(default=None, sa_column=Column(Float, nullable=True))
    lease_owner: str | None = Field(default=None, sa_column=text_column())
    lease_until: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    heartbeat_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    attempt: int = Field(default=0, sa_column=_count())
    crashes: int = Field(default=0, sa_column=_count())
    losses: int = Field(default=0, sa_column=_count())
    begun: bool = Field(default=False, sa_column=Column(Boolean, nullable=False, server_default="false"))
    fence: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    checkpoint: dict[str, Any] = Field(sa_column=_object())
    effects: dict[str, Any] = Field(sa_column=_object())
    result: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    cost: Decimal = Field(default=Decimal(0), sa_column=usd())
    budget: Decimal | None = Field(default=None, sa_column=money())
    asked_by: str | None = Field(default=None, sa_column=text_column())
    dedupe_key: str | None = None
    parent_id: UUID | None = None
    created_at: datetime = Field(sa_column=moment())
    sent_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    started_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    ended_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))


class JobChunkRow(SQLModel, table=True):
    """One small part of a job's stage, by its place in the stage's list; claimed in batches, each with a lease."""

    __tablename__ = "job_chunk"
    __table_args__ = (
        one_of("state", ChunkState),
        Index(
            "ix_job_chunk_open", "job_id", "stage", "number", postgresql_where=text("state IN ('queued', 'running')")
        ),
    )

    job_id: UUID = Field(sa_column=_of_job(primary_key=True))
    stage: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    params: Any = Field(default=None, sa_column=json_column())
    state: str = "queued"
    attempts: int = Field(default=0, sa_column=_count())
    lease_owner: str | None = Field(default=None, sa_column=text_column())
    lease_until: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    result: Any = Field(default=None, sa_column=json_column())
    error: str | None = Field(default=None, sa_column=text_column())


class JobLogRow(SQLModel, table=True):
    """A line that a job said (`message`), or a point of a metric: `name`, `step`, `value`."""

    __tablename__ = "job_log"
    __table_args__ = (one_of("level", JobLogLevel), Index("ix_job_log_job_id", "job_id", "id"))

    id: UUID = Field(primary_key=True)
    job_id: UUID = Field(sa_column=_of_job())
    at: datetime = Field(sa_column=moment())
    attempt: int
    stage: str | None = None
    level: str
    message: str | None = Field(default=None, sa_column=text_column())
    name: str | None = None
    step: int | None = Field(default=None, sa_column=Column(BigInteger, nullable=True))
    value: float | None = Field(default=None, sa_column=Column(Float, nullable=True))


class ArtifactRow(SQLModel, table=True):
    """That a job, or (`job_id` NULL) something that outlives its job, refers to a file of the artifact store.

    `hash` is the SHA-256 of the file's bytes; the file goes when the last row that names it goes.
    """

    __tablename__ = "artifact"
    __table_args__ = (Index("uq_artifact_job_id_name", "job_id", "name", unique=True),)

    id: UUID = Field(primary_key=True)
    project_id: UUID = Field(index=True)
    job_id: UUID | None = Field(
        default=None, sa_column=Column(Uuid, ForeignKey("job.id", ondelete="CASCADE"), nullable=True)
    )
    name: str
    hash: str = Field(index=True)
    suffix: str
    media: str
    size: int = Field(sa_column=Column(BigInteger, nullable=False))
    created_at: datetime = Field(sa_column=moment())


class ScheduleRow(SQLModel, table=True):
    """A schedule of the configuration as it was last seen, and when it was last due."""

    __tablename__ = "schedule"

    id: UUID = Field(primary_key=True)
    project_id: UUID
    name: str = Field(unique=True)
    kind: str
    params: dict[str, Any] = Field(sa_column=_object())
    cron: str
    last_due_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    last_job_id: UUID | None = None
    updated_at: datetime = Field(sa_column=moment())


class RateBucketRow(SQLModel, table=True):
    """A token bucket that all workers of all jobs share: one per provider. `left` is as it was at `refilled_at`."""

    __tablename__ = "rate_bucket"

    name: str = Field(primary_key=True)
    left: float = Field(sa_column=Column(Float, nullable=False))
    refilled_at: datetime = Field(sa_column=moment())
