"""By what a candidate is let in: gates and their rows, certificates, the α ledger, alarms.

A gate is registered with all its terms before its first row; what is computed from the rows can be computed
again by anybody from the rows alone.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, Column, Index, String, Text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field, SQLModel

from pointsman.tables.base import json_column, moment, one_of, text
from pointsman.words import AlarmKind, AlphaPurpose, Claim, GateArm, GateMode, GateState, GateUnit


class GateRow(SQLModel, table=True):
    """A candidate's gate, pre-registered.

    `terms` are α, ε and the limits of promotion and rollback (`pointsman.statistics.gate.Terms`), `ramp` the shares
    ρ and when each begins, `spec_hash` the reward that is its utility. A row closes `deadline_seconds` after its
    outcome; what is not known then counts as `timeout_value`. `evidence` is the state after the last row. `guards`
    says what the limits of `terms` are measured by. In mode `propose` a passed gate is `ready`: a person promotes.
    """

    __tablename__ = "gate"
    __table_args__ = (
        one_of("state", GateState),
        one_of("unit", GateUnit),
        one_of("mode", GateMode),
        Index("ix_gate_project_id_state", "project_id", "state"),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    candidate_id: UUID
    incumbent_id: UUID
    state: str = "registered"
    terms: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    ramp: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    spec_hash: str
    unit: str = "episode"
    deadline_seconds: float
    timeout_value: float
    pool_epoch: str
    alpha_id: UUID | None = None
    mode: str = Field(default="propose", sa_column=Column(String, nullable=False, server_default="propose"))
    guards: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    judge_hash: str | None = None
    expires_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    rows: int = 0
    evidence: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    reason: str | None = Field(default=None, sa_column=text())
    registered_by: str | None = Field(default=None, sa_column=text())
    registered_at: datetime = Field(sa_column=moment())
    started_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    ended_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))


class GateStepRow(SQLModel, table=True):
    """One row of a gate: an episode in which the two routers disagreed, in order of assignment.

    `mhat` is the prediction that was used, from earlier rows only; `log_e` and `log_r` are ln E (promotion) and
    ln R (rollback) after this row. `known` is false where the timeout's value stands for a reward that never came.
    `keys` are the API keys that asked in the episode or said a word on it.
    """

    __tablename__ = "gate_row"
    __table_args__ = (
        one_of("arm", GateArm),
        Index("uq_gate_row_gate_id_episode_id", "gate_id", "episode_id", unique=True),
    )

    gate_id: UUID = Field(primary_key=True)
    seq: int = Field(primary_key=True)
    project_id: UUID
    decision_id: UUID
    episode_id: UUID
    rho: float
    arm: str
    utility: float
    known: bool = Field(default=True, sa_column=Column(Boolean, nullable=False, server_default="true"))
    mhat: float
    effect: float
    log_e: float
    log_r: float
    observed: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    keys: list[str] | None = Field(default=None, sa_column=Column(ARRAY(Text), nullable=True))
    assigned_at: datetime = Field(sa_column=moment())
    closed_at: datetime = Field(sa_column=moment())


class CertificateRow(SQLModel, table=True):
    """A statement with its confidence level, method, data and assumptions, recomputable from the log.

    `holds` is what the numbers said when they were last computed (`checked_at`). `data_hash` names the rows that
    they were computed from; `judge_units` says that a judge's uncalibrated scores are in them. `evidence` is what
    the log alone does not have: how the routers chose on the rows of a certification set.
    """

    __tablename__ = "certificate"
    __table_args__ = (
        one_of("claim", Claim),
        Index("ix_certificate_project_id_id", "project_id", "id"),
        Index("ix_certificate_router_version_id", "router_version_id"),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    claim: str
    router_version_id: UUID
    incumbent_id: UUID | None = None
    gate_id: UUID | None = None
    alpha_id: UUID | None = None
    alpha: float
    method: str = Field(sa_column=text(nullable=False))
    window_start: datetime = Field(sa_column=moment())
    window_end: datetime = Field(sa_column=moment())
    assumptions: list[str] = Field(sa_column=json_column(nullable=False))
    numbers: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    data_hash: str
    spec_hash: str | None = None
    pool_epoch: str
    judge_units: bool = Field(default=False, sa_column=Column(Boolean, nullable=False, server_default="false"))
    evidence: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    holds: bool = Field(sa_column=Column(Boolean, nullable=False))
    created_at: datetime = Field(sa_column=moment())
    checked_at: datetime = Field(sa_column=moment())


class AlphaLedgerRow(SQLModel, table=True):
    """One entry of a project's α ledger: the `index`-th test of its `purpose` in this epoch of the pool.

    `data_hash` names a certification set, which is spent when it is opened: no project opens one twice.
    """

    __tablename__ = "alpha_ledger"
    __table_args__ = (
        one_of("purpose", AlphaPurpose),
        Index(
            "uq_alpha_ledger_project_id_pool_epoch_purpose_index",
            "project_id",
            "pool_epoch",
            "purpose",
            "index",
            unique=True,
        ),
        Index("uq_alpha_ledger_project_id_data_hash", "project_id", "data_hash", unique=True),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    pool_epoch: str
    purpose: str
    index: int
    alpha: float
    spent: float
    router_version_id: UUID | None = None
    gate_id: UUID | None = None
    data_hash: str | None = None
    opened_at: datetime = Field(sa_column=moment())
    retired_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))


class AlarmRow(SQLModel, table=True):
    """Something has changed, or seems to have. `notified_at` is when the webhook took it."""

    __tablename__ = "alarm"
    __table_args__ = (one_of("kind", AlarmKind), Index("ix_alarm_project_id_id", "project_id", "id"))

    id: UUID = Field(primary_key=True)
    project_id: UUID
    kind: str
    worker: str | None = None
    endpoint_hash: str | None = None
    router_version_id: UUID | None = None
    gate_id: UUID | None = None
    message: str = Field(sa_column=text(nullable=False))
    detail: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    raised_at: datetime = Field(sa_column=moment())
    notified_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    acknowledged_by: str | None = Field(default=None, sa_column=text())
    acknowledged_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    resolved_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
