"""What people make of the log in the dashboard: items to judge, verdicts on them, filters kept under a name."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Index
from sqlalchemy import text as sql
from sqlmodel import Field, SQLModel

from pointsman.tables.base import json_column, moment, one_of, text
from pointsman.words import ReviewRule, ReviewState, ReviewVerdict


class ReviewItem(SQLModel, table=True):
    """A decision that somebody should judge, and by which rule it was found.

    `information` in [0, 1] ranks a queue: about how much a verdict would teach. `wanted` reviewers judge it,
    each alone. Whoever has it open holds it until `locked_until`, by name and by session (`lock_token`).
    """

    __tablename__ = "review_item"
    __table_args__ = (
        one_of("rule", ReviewRule),
        one_of("state", ReviewState),
        Index("uq_review_item_project_id_decision_id", "project_id", "decision_id", unique=True),
        Index(
            "ix_review_item_open", "project_id", "rule", sql("information DESC"), postgresql_where=sql("state='open'")
        ),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    decision_id: UUID
    rule: str
    information: float
    wanted: int = Field(default=1, sa_column_kwargs={"server_default": "1"})
    state: str = Field(default="open", sa_column_kwargs={"server_default": "open"})
    assigned_to: str | None = Field(default=None, sa_column=text())
    locked_by: str | None = Field(default=None, sa_column=text())
    lock_token: str | None = Field(default=None, sa_column=text())
    locked_until: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    created_at: datetime = Field(sa_column=moment())


class Verdict(SQLModel, table=True):
    """One reviewer's word on an item. `feedback_id`: the feedback that it became; NULL: not given yet."""

    __tablename__ = "verdict"
    __table_args__ = (
        one_of("verdict", ReviewVerdict),
        Index(
            "uq_verdict_item_id_reviewer", "item_id", "reviewer", unique=True, postgresql_where=sql("undone_at IS NULL")
        ),
        Index("ix_verdict_project_id_id", "project_id", "id"),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    item_id: UUID
    decision_id: UUID
    reviewer: str = Field(sa_column=text(nullable=False))
    verdict: str
    blind: bool = Field(default=False, sa_column_kwargs={"server_default": "false"})
    better_worker: str | None = None
    better_answer: str | None = Field(default=None, sa_column=text())
    comment: str | None = Field(default=None, sa_column=text())
    feedback_id: UUID | None = None
    given_at: datetime = Field(sa_column=moment())
    undone_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))


class SavedSet(SQLModel, table=True):
    """A filter of decisions under a name: what it names grows with the log. `filters` are `DecisionFilter`'s."""

    __tablename__ = "saved_set"
    __table_args__ = (Index("uq_saved_set_project_id_name", "project_id", "name", unique=True),)

    id: UUID = Field(primary_key=True)
    project_id: UUID
    name: str
    filters: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    made_by: str = Field(sa_column=text(nullable=False))
    made_at: datetime = Field(sa_column=moment())
