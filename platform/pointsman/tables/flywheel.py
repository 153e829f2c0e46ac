"""The turns of the flywheel: one row tells the story of each."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Column, Index
from sqlalchemy import text as sql
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from pointsman.tables.base import json_column, moment, money, one_of, text
from pointsman.words import GateMode, TurnState

OPEN_TURN = "state IN ('running', 'proposed')"
"""A project has one turn at a time."""


class FlywheelTurn(SQLModel, table=True):
    """From new information to a router that serves, or to the link that did not pay.

    `information` is what had come in when the turn was opened (`flywheel.rule`). `links` is the story, in order: name,
    state, jobs, reason, numbers, when and for how much. `facts` is what links hand to later ones.
    """

    __tablename__ = "flywheel_turn"
    __table_args__ = (
        one_of("state", TurnState),
        one_of("mode", GateMode),
        Index("uq_flywheel_turn_project_id", "project_id", unique=True, postgresql_where=sql(OPEN_TURN)),
        Index("ix_flywheel_turn_project_id_id", "project_id", "id"),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    state: str = "running"
    mode: str
    opened_by: str = Field(sa_column=text(nullable=False))
    opened_because: str = Field(sa_column=text(nullable=False))
    information: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    links: list[dict[str, Any]] = Field(sa_column=Column(JSONB, nullable=False, server_default=sql("'[]'")))
    facts: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False, server_default=sql("'{}'")))
    reason: str | None = Field(default=None, sa_column=text())
    candidate_id: UUID | None = None
    gate_id: UUID | None = None
    budget: Decimal | None = Field(default=None, sa_column=money())
    opened_at: datetime = Field(sa_column=moment())
    ended_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
