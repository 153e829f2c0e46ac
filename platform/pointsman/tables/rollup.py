"""Hourly sums of the log, so that an overview of a million decisions reads some thousand rows.

Written by the `rollup` job alone, hour by hour; everything here can be made again from the log. Where the log has
NULL these have an empty text, which a primary key takes. Only whole hours before `rollup_mark.until` are here.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import DateTime
from sqlmodel import Field, SQLModel

from pointsman.tables.base import moment
from pointsman.tables.budget import usd


def _hour() -> object:
    return Field(primary_key=True, sa_type=DateTime(timezone=True))


class RollupHour(SQLModel, table=True):
    """Traffic of one hour by worker, router kind, outcome and reason of being forced.

    `own_ok`: the chosen worker itself answered well. `begun`: first decisions of an episode. `drawn` and `drawn_cost`
    are of decisions that were drawn and whose cost is known; `weight` is their Σ 1/p, `weight_cost` their Σ cost/p
    (USD), from which the cost of a router that always chose this worker is estimated.
    """

    __tablename__ = "rollup_hour"

    project_id: UUID = Field(primary_key=True)
    hour: datetime = _hour()  # type: ignore[assignment]
    worker: str = Field(primary_key=True)
    router_kind: str = Field(primary_key=True)
    status: str = Field(primary_key=True)
    forced: str = Field(primary_key=True)
    decisions: int
    own_ok: int
    begun: int
    explored: int
    unknown_cost: int
    cost: Decimal = Field(sa_column=usd())
    router_cost: Decimal = Field(sa_column=usd())
    drawn: int
    drawn_cost: float
    weight: float
    weight_cost: float


class RollupSpread(SQLModel, table=True):
    """How many values fell into a bucket of a logarithmic scale: `measure` is `latency` or `overhead`, ms."""

    __tablename__ = "rollup_spread"

    project_id: UUID = Field(primary_key=True)
    hour: datetime = _hour()  # type: ignore[assignment]
    worker: str = Field(primary_key=True)
    measure: str = Field(primary_key=True)
    bucket: int = Field(primary_key=True)
    n: int


class RollupWord(SQLModel, table=True):
    """Standing feedback on one hour's decisions, by the worker that answered: booleans, and sums of numbers."""

    __tablename__ = "rollup_word"

    project_id: UUID = Field(primary_key=True)
    hour: datetime = _hour()  # type: ignore[assignment]
    worker: str = Field(primary_key=True)
    metric: str = Field(primary_key=True)
    n: int
    yes: int
    said: int
    numbers: int
    total: float


class RollupShare(SQLModel, table=True):
    """Traffic of one hour by pattern and router version; '' where a decision names none."""

    __tablename__ = "rollup_share"

    project_id: UUID = Field(primary_key=True)
    hour: datetime = _hour()  # type: ignore[assignment]
    pattern: str = Field(primary_key=True)
    version: str = Field(primary_key=True)
    n: int


class RollupMark(SQLModel, table=True):
    """How far the sums reach: hours before `until`, with the words that were there at `words_until`."""

    __tablename__ = "rollup_mark"

    name: str = Field(primary_key=True)
    until: datetime = Field(sa_column=moment())
    words_until: datetime = Field(sa_column=moment())
