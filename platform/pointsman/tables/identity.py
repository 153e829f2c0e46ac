"""Who asks: projects separate tenants, keys belong to a project and are kept as hashes only."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, Column, Text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field, SQLModel

from pointsman.tables.base import json_column, moment, text


class Project(SQLModel, table=True):
    """A tenant. `secret` (hex) keys the HMACs that recognise its episodes; it never leaves the server."""

    __tablename__ = "project"

    id: UUID = Field(primary_key=True)
    name: str = Field(unique=True)
    secret: str
    created_at: datetime = Field(sa_column=moment())


class ApiKey(SQLModel, table=True):
    """A key by the SHA-256 of its whole text. `prefix` is its first characters, for people to tell keys apart."""

    __tablename__ = "api_key"

    id: UUID = Field(primary_key=True)
    project_id: UUID = Field(foreign_key="project.id", index=True)
    hash: str = Field(unique=True)
    prefix: str
    scopes: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False))
    owner: str | None = None
    tags: dict[str, Any] | None = Field(default=None, sa_column=json_column())
    learn: bool = Field(default=True, sa_column=Column(Boolean, nullable=False, server_default="true"))
    explore: bool = Field(default=True, sa_column=Column(Boolean, nullable=False, server_default="true"))
    created_at: datetime = Field(sa_column=moment())
    revoked_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    note: str | None = Field(default=None, sa_column=text())
