"""What routers are trained on: label sets. Their rows lie in the artifact store, one Parquet file for each set."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from pointsman.tables.base import json_column, moment


class LabelSetRow(SQLModel, table=True):
    """One label set. `hash` is of its content; the files are named by the hashes of their bytes.

    `manifest` is the whole of `labels.json`: arms by endpoint, parts, parameters, data report.
    """

    __tablename__ = "label_set"
    __table_args__ = (Index("ix_label_set_project_id_id", "project_id", "id"),)

    id: UUID = Field(primary_key=True)
    project_id: UUID
    job_id: UUID | None = None
    hash: str = Field(index=True)
    rows: int
    data_hash: str
    manifest_hash: str
    manifest: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    created_at: datetime = Field(sa_column=moment())
