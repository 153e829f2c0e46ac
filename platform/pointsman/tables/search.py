"""What is known of quality, and what may be claimed from it: rewards, audit runs, judges' scores.

The rows by which a candidate is let in (gates, certificates, the α ledger, alarms) are in `claims`.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, Column, Index
from sqlalchemy import text as sql
from sqlmodel import Field, SQLModel

from pointsman.tables.base import json_column, moment, money, one_of, text
from pointsman.tables.budget import usd
from pointsman.words import AuditKind, AuditState, JudgeMode, Origin, RewardReason, RewardSource


class RewardSpecRow(SQLModel, table=True):
    """One version of a named reward spec, by the hash of name and content. It never changes."""

    __tablename__ = "reward_spec"

    hash: str = Field(primary_key=True)
    name: str = Field(index=True)
    content: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    created_at: datetime = Field(sa_column=moment())


class RewardRow(SQLModel, table=True):
    """The reward of one outcome under one spec.

    `value` is the intended arm's (`arm`), from everything known by now; `closed_value` the same from what was
    known when the row closed, and never changes afterwards: gates read that one. `skill` is the answer's, for
    the worker that gave it (`worker`); NULL where the outcome says nothing of anybody's skill. A NULL `value`
    is not known (`reason`), never a guess. `terms` are what the numbers were computed from.
    """

    __tablename__ = "reward"
    __table_args__ = (
        one_of("origin", Origin),
        one_of("source", RewardSource),
        one_of("reason", RewardReason),
        Index("ix_reward_project_id_spec_hash_outcome_id", "project_id", "spec_hash", "outcome_id"),
        Index("ix_reward_open", "spec_hash", "outcome_id", postgresql_where=sql("NOT closed AND origin = 'traffic'")),
    )

    spec_hash: str = Field(primary_key=True)
    outcome_id: UUID = Field(primary_key=True)
    project_id: UUID
    decision_id: UUID = Field(index=True)
    call_id: UUID | None = None
    origin: str
    arm: str | None = None
    worker: str | None = None
    value: float | None = None
    skill: float | None = None
    source: str | None = None
    reason: str | None = None
    terms: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    closed: bool = Field(default=False, sa_column=Column(Boolean, nullable=False, server_default="false"))
    closed_value: float | None = None
    computed_at: datetime = Field(sa_column=moment())


class RewardMarkRow(SQLModel, table=True):
    """How far the rewards of a spec follow the log: what was there at `seen_until` and, however late, at `swept_at`."""

    __tablename__ = "reward_mark"

    spec_hash: str = Field(primary_key=True)
    seen_until: datetime = Field(sa_column=moment())
    swept_at: datetime = Field(sa_column=moment())


class JudgeScoreRow(SQLModel, table=True):
    """What a judge made of one call's answer, in judge units. NULL: its reply could not be read.

    `judge_hash` is of judge, mode and prompt: another prompt is another judge. What it said is on its own calls
    (purpose `judge`), named in `detail`.
    """

    __tablename__ = "judge_score"
    __table_args__ = (one_of("mode", JudgeMode), Index("ix_judge_score_project_id_call_id", "project_id", "call_id"))

    judge_hash: str = Field(primary_key=True)
    call_id: UUID = Field(primary_key=True)
    project_id: UUID
    decision_id: UUID = Field(index=True)
    worker: str
    judge_worker: str
    mode: str
    score: float | None = None
    detail: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    created_at: datetime = Field(sa_column=moment())


class AuditRunRow(SQLModel, table=True):
    """One named run of probes or audits; another start under the same name goes on with it.

    `settings` are what it was started with. `cells` are the answers wanted in all, `done` those that are in the
    log, `failed` those that no call brought. `cost` is in USD, NULL where a price is unknown; `counted` is what
    budgets count, where an unknown price is the dearest of the pool.
    """

    __tablename__ = "audit_run"
    __table_args__ = (
        one_of("kind", AuditKind),
        one_of("state", AuditState),
        Index("uq_audit_run_project_id_kind_name", "project_id", "kind", "name", unique=True),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    kind: str
    name: str = Field(sa_column=text(nullable=False))
    settings: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    state: str = "running"
    reason: str | None = Field(default=None, sa_column=text())
    rows: int = 0
    cells: int = 0
    done: int = 0
    failed: int = 0
    cost: Decimal | None = Field(default=None, sa_column=money())
    counted: Decimal = Field(default=Decimal(0), sa_column=usd())
    started_at: datetime = Field(sa_column=moment())
    ended_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
