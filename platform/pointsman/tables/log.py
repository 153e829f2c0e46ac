"""The log: request, episode, decision, call, outcome, feedback. It is the product.

`request`, `decision`, `call` and `outcome` are partitioned by range of id. An outcome's id is its
decision's id for traffic (one outcome each, by primary key) and its call's id in full-information
rows (one per call).
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, Column, Index, Text
from sqlalchemy import text as sql
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field, SQLModel

from pointsman.tables.base import BY_ID, json_column, moment, money, one_of, text
from pointsman.words import (
    CallPurpose,
    CallStatus,
    DecisionKind,
    EpisodeSource,
    Forced,
    Origin,
    OutcomeStatus,
    ParseStatus,
    Pattern,
)


def flag(default: str = "false") -> Column[bool]:
    return Column(Boolean, nullable=False, server_default=default)


def default(value: str | int) -> Any:
    """A plain column with the same default here and in the database, for the shipper's COPY."""
    return Field(default=value, sa_column_kwargs={"server_default": str(value)})


def words() -> Column[Any]:
    return Column(ARRAY(Text), nullable=True)


class Episode(SQLModel, table=True):
    """A conversation with one outcome: the unit of every interval, split and gate row."""

    __tablename__ = "episode"
    __table_args__ = (
        one_of("source", EpisodeSource),
        Index("ix_episode_project_id_fingerprint", "project_id", "fingerprint"),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    source: str
    given: str | None = Field(default=None, sa_column=text())
    fingerprint: str | None = None
    started_at: datetime = Field(sa_column=moment())


class Request(SQLModel, table=True):
    """What the client sent. `text` is the person's ask, `body` the whole after redaction; both NULL when not stored."""

    __tablename__ = "request"
    __table_args__ = (
        Index("ix_request_search", sql("to_tsvector('simple', left(text, 8000))"), postgresql_using="gin"),
        Index("ix_request_project_id_id", "project_id", "id"),
        Index("ix_request_tags", "tags", postgresql_using="gin", postgresql_where=sql("tags IS NOT NULL")),
        BY_ID,
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    key_id: UUID | None = None
    episode_id: UUID | None = None
    received_at: datetime = Field(sa_column=moment())
    surface: str = default("chat.completions")
    model: str | None = Field(default=None, sa_column=text())
    stream: bool = Field(default=False, sa_column=flag())
    text: str | None = Field(default=None, sa_column=text())
    text_hash: str | None = Field(default=None, index=True)
    body: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    hints: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    tags: list[str] | None = Field(default=None, sa_column=words())
    task: str | None = None
    split: str | None = None
    learn: bool = Field(default=True, sa_column=flag("true"))
    flags: list[str] | None = Field(default=None, sa_column=words())


class Decision(SQLModel, table=True):
    """One logged choice, with the whole vector it was drawn from. `chosen` is the intended arm.

    Where a role was chosen with the worker, `roles` has its own scores, probabilities and draw: two draws, and
    `propensity` is the worker's alone. `plan` is what an orchestrator decided, as it was carried out.
    """

    __tablename__ = "decision"
    __table_args__ = (
        one_of("pattern", Pattern),
        one_of("kind", DecisionKind),
        one_of("origin", Origin),
        one_of("forced", Forced),
        one_of("parse_status", ParseStatus),
        Index("ix_decision_project_id_id", "project_id", "id"),
        Index("ix_decision_project_id_chosen_id", "project_id", "chosen", "id"),
        Index("ix_decision_episode_id", "episode_id"),
        Index("ix_decision_request_id", "request_id"),
        Index("ix_decision_gate_id_id", "gate_id", "id", postgresql_where=sql("gate_id IS NOT NULL")),
        Index("ix_decision_audited", "id", postgresql_where=sql("audited")),
        BY_ID,
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    request_id: UUID
    episode_id: UUID | None = None
    parent_id: UUID | None = None
    turn: int = default(0)
    step: int | None = None
    pattern: str = default("single")
    kind: str = default("route")
    origin: str = default("traffic")
    decided_at: datetime = Field(sa_column=moment())
    router_version_id: UUID | None = None
    router_kind: str | None = None
    template_hash: str | None = None
    cards_hash: str | None = None
    pool_hash: str | None = None
    card_order: list[str] | None = Field(default=None, sa_column=words())
    eligible: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    scores: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    probabilities: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    chosen: str | None = None
    propensity: float | None = None
    draw: list[float] | None = Field(default=None, sa_column=json_column())
    explored: bool = Field(default=False, sa_column=flag())
    forced: str | None = None
    role: str | None = None
    roles: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    plan: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    audit_rate: float | None = None
    audited: bool = Field(default=False, sa_column=flag())
    shadow_picks: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    gate_id: UUID | None = None
    parse_status: str | None = None
    raw_reply: str | None = Field(default=None, sa_column=text())
    fail_open: list[str] | None = Field(default=None, sa_column=words())
    router_input_tokens: int | None = None
    router_output_tokens: int | None = None
    router_cost: Decimal | None = Field(default=None, sa_column=money())
    router_ms: float | None = None
    flags: list[str] | None = Field(default=None, sa_column=words())


class Call(SQLModel, table=True):
    """One provider request under a decision. `messages` is NULL where the worker saw the request's own body."""

    __tablename__ = "call"
    __table_args__ = (
        one_of("purpose", CallPurpose),
        one_of("status", CallStatus),
        Index("ix_call_decision_id", "decision_id"),
        Index("ix_call_project_id_completion_id", "project_id", "completion_id"),
        Index("ix_call_project_id_worker_id", "project_id", "worker", "id"),
        BY_ID,
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    decision_id: UUID
    request_id: UUID | None = None
    worker: str
    endpoint_hash: str | None = None
    card_hash: str | None = None
    price_hash: str | None = None
    purpose: str = default("serve")
    attempt: int = default(1)
    repeat: int = default(0)
    started_at: datetime = Field(sa_column=moment())
    base_url: str | None = Field(default=None, sa_column=text())
    provider_model: str | None = Field(default=None, sa_column=text())
    messages: Any | None = Field(default=None, sa_column=json_column())
    completion: str | None = Field(default=None, sa_column=text())
    reasoning: str | None = Field(default=None, sa_column=text())
    tool_calls: Any | None = Field(default=None, sa_column=json_column())
    completion_id: str | None = Field(default=None, sa_column=text())
    finish_reason: str | None = None
    status: str
    http_status: int | None = None
    fault: str | None = None
    error: str | None = Field(default=None, sa_column=text())
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    usage_estimated: bool = Field(default=False, sa_column=flag())
    cost: Decimal | None = Field(default=None, sa_column=money())
    first_token_ms: float | None = None
    latency_ms: float | None = None
    flags: list[str] | None = Field(default=None, sa_column=words())


class Outcome(SQLModel, table=True):
    """How a decision (traffic) or a call (full information) ended. `cost` is of all its calls, routing apart."""

    __tablename__ = "outcome"
    __table_args__ = (
        one_of("status", OutcomeStatus),
        one_of("origin", Origin),
        Index("ix_outcome_decision_id", "decision_id"),
        Index("ix_outcome_project_id_id", "project_id", "id"),
        BY_ID,
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    decision_id: UUID
    call_id: UUID | None = None
    episode_id: UUID | None = None
    origin: str = default("traffic")
    status: str
    worker: str | None = None
    score: float | None = None
    reason: str | None = Field(default=None, sa_column=text())
    client_closed: bool = Field(default=False, sa_column=flag())
    http_status: int | None = None
    calls: int | None = None
    cost: Decimal | None = Field(default=None, sa_column=money())
    first_token_ms: float | None = None
    latency_ms: float | None = None
    overhead_ms: float | None = None
    ended_at: datetime = Field(sa_column=moment())


class Feedback(SQLModel, table=True):
    """A later word on a decision or an episode. An amendment or retraction is a new row that names the old one."""

    __tablename__ = "feedback"
    __table_args__ = (
        Index("ix_feedback_decision_id", "decision_id"),
        Index("ix_feedback_episode_id", "episode_id"),
        Index("ix_feedback_project_id_id", "project_id", "id"),
        Index("ix_feedback_amends", "amends"),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    key_id: UUID | None = None
    decision_id: UUID | None = None
    episode_id: UUID | None = None
    completion_id: str | None = Field(default=None, sa_column=text())
    metric: str
    value: Any | None = Field(default=None, sa_column=json_column())
    source: str = default("person")
    rater: str | None = Field(default=None, sa_column=text())
    comment: str | None = Field(default=None, sa_column=text())
    better_worker: str | None = None
    demonstration: Any | None = Field(default=None, sa_column=json_column())
    idempotency_key: str | None = Field(default=None, sa_column=text())
    amends: UUID | None = None
    retracted: bool = Field(default=False, sa_column=flag())
    joined: bool = Field(default=False, sa_column=flag())
    created_at: datetime = Field(sa_column=moment())
