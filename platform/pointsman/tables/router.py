"""Router versions. A version owns the cards, instructions and template that it serves with."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlmodel import Field, SQLModel

from pointsman.tables.base import json_column, moment, one_of
from pointsman.words import RouterKind, RouterState


class RouterVersionRow(SQLModel, table=True):
    """Its id is a function of kind and artifact hash, so every gateway names one version alike."""

    __tablename__ = "router_version"
    __table_args__ = (one_of("kind", RouterKind), one_of("state", RouterState))

    id: UUID = Field(primary_key=True)
    kind: str
    parent_id: UUID | None = None
    artifact_hash: str = Field(index=True)
    config: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    state: str = "serving"
    created_at: datetime = Field(sa_column=moment())
