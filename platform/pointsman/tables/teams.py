"""What teams of workers remember: between the requests of an episode, and while a client runs their tools."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Column, Index, Text
from sqlalchemy import text as sql
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field, SQLModel

from pointsman.tables.base import json_column, moment, one_of
from pointsman.words import MemoryKind


class MemoryItem(SQLModel, table=True):
    """One thing remembered of an episode, within its project. Bounded per episode; gone at `expires_at`.

    `workflow` counts the runs of the episode. A `state` is a run that waits for the results of `tool_call_ids`.
    """

    __tablename__ = "memory_item"
    __table_args__ = (
        one_of("kind", MemoryKind),
        Index("ix_memory_item_project_id_episode_id_id", "project_id", "episode_id", "id"),
        Index(
            "ix_memory_item_tool_call_ids",
            "tool_call_ids",
            postgresql_using="gin",
            postgresql_where=sql("kind = 'state'"),
        ),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    episode_id: UUID
    kind: str
    workflow: int
    worker: str | None = None
    tool_call_ids: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False))
    content: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    size: int
    created_at: datetime = Field(sa_column=moment())
    expires_at: datetime = Field(sa_column=moment(index=True))
