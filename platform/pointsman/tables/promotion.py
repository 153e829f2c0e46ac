"""What serves, project by project, and what watches over it: promotions, dials, detectors."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Index
from sqlalchemy import text as sql
from sqlmodel import Field, SQLModel

from pointsman.tables.base import json_column, moment, one_of, text
from pointsman.words import DetectorKind, PromotionKind


class PromotionRow(SQLModel, table=True):
    """From here on this version serves the project; the newest row says who does.

    `router_version_id` NULL: what the configuration file declares. `fallback_id` is the router that decides where
    this one cannot, NULL: the rest of the file's chain. `cards_hash` is of the descriptions that the file had
    then, so that a later change of them is noticed.
    """

    __tablename__ = "promotion"
    __table_args__ = (one_of("kind", PromotionKind), Index("ix_promotion_project_id_id", "project_id", "id"))

    id: UUID = Field(primary_key=True)
    project_id: UUID
    kind: str
    router_version_id: UUID | None = None
    previous_id: UUID | None = None
    fallback_id: UUID | None = None
    cards_hash: str | None = None
    gate_id: UUID | None = None
    certificate_id: UUID | None = None
    actor: str = Field(sa_column=text(nullable=False))
    reason: str | None = Field(default=None, sa_column=text())
    made_at: datetime = Field(sa_column=moment())


class DialRow(SQLModel, table=True):
    """A threshold above which the cheap worker answers, with the certificate of its failure rate.

    It holds for scores of one router version and for one endpoint of the worker; a change of either retires it.
    """

    __tablename__ = "dial"
    __table_args__ = (
        Index("uq_dial_project_id", "project_id", unique=True, postgresql_where=sql("retired_at IS NULL")),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    worker: str
    endpoint_hash: str
    router_version_id: UUID
    threshold: float
    certificate_id: UUID
    pool_epoch: str
    made_by: str = Field(sa_column=text(nullable=False))
    made_at: datetime = Field(sa_column=moment())
    retired_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    reason: str | None = Field(default=None, sa_column=text())


class DetectorRow(SQLModel, table=True):
    """The state of one drift detector. `subject` is the worker it watches, or empty; `cursor` the last row it took."""

    __tablename__ = "detector"
    __table_args__ = (
        one_of("kind", DetectorKind),
        Index("uq_detector_project_id_kind_subject", "project_id", "kind", "subject", unique=True),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID
    kind: str
    subject: str
    endpoint_hash: str | None = None
    state: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    cursor: UUID | None = None
    alarm_id: UUID | None = None
    started_at: datetime = Field(sa_column=moment())
    updated_at: datetime = Field(sa_column=moment())
