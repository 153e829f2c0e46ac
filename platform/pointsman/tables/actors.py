"""Who did what to a running Pointsman: one row for every action of a person, a policy or a gate."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from pointsman.tables.base import json_column, moment, one_of, text
from pointsman.words import ActorRole


class ActorLogRow(SQLModel, table=True):
    """Written in the transaction of what it tells: no action without its row. `subject` is an id, say of a version."""

    __tablename__ = "actor_log"
    __table_args__ = (one_of("role", ActorRole), Index("ix_actor_log_project_id_id", "project_id", "id"))

    id: UUID = Field(primary_key=True)
    project_id: UUID
    actor: str = Field(sa_column=text(nullable=False))
    role: str
    action: str
    subject: str | None = None
    reason: str | None = Field(default=None, sa_column=text())
    detail: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    done_at: datetime = Field(sa_column=moment())
