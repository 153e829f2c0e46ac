"""The pool at its versions. Endpoint, card, price and snapshot rows are keyed by their content hash."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlmodel import Field, SQLModel

from pointsman.tables.base import json_column, moment, money, text


class WorkerRow(SQLModel, table=True):
    """A worker by name; its id is a function of the name."""

    __tablename__ = "worker"

    id: UUID = Field(primary_key=True)
    name: str = Field(unique=True)
    created_at: datetime = Field(sa_column=moment())


class WorkerEndpoint(SQLModel, table=True):
    """Provider model, addresses and parameters of a worker. A new hash is a new arm."""

    __tablename__ = "worker_endpoint"

    hash: str = Field(primary_key=True)
    worker: str = Field(index=True)
    model: str = Field(sa_column=text(nullable=False))
    content: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    created_at: datetime = Field(sa_column=moment())


class Card(SQLModel, table=True):
    """A versioned description of a worker; `source` is `file`, `optimised` or `person`."""

    __tablename__ = "card"

    hash: str = Field(primary_key=True)
    worker: str = Field(index=True)
    text: str = Field(sa_column=text(nullable=False))
    source: str = Field(default="file")
    created_at: datetime = Field(sa_column=moment())


class PriceRow(SQLModel, table=True):
    """USD per million tokens."""

    __tablename__ = "price"

    hash: str = Field(primary_key=True)
    worker: str = Field(index=True)
    input: Decimal = Field(sa_column=money())
    output: Decimal = Field(sa_column=money())
    cached_input: Decimal = Field(sa_column=money())
    created_at: datetime = Field(sa_column=moment())


class PoolSnapshot(SQLModel, table=True):
    """`content` is {worker: {endpoint, card, price}}, each a hash."""

    __tablename__ = "pool_snapshot"

    hash: str = Field(primary_key=True)
    content: dict[str, Any] = Field(sa_column=json_column(nullable=False))
    created_at: datetime = Field(sa_column=moment())
