"""What all tables share: naming of constraints, column types, closed sets as text with a check."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Column, DateTime, Numeric, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import SQLModel

from pointsman.words import members

METADATA = SQLModel.metadata
METADATA.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

PARTITIONED = ("request", "decision", "call", "outcome")
"""Range-partitioned by id: a UUIDv7's month is a range of ids."""

BY_ID: dict[str, Any] = {"postgresql_partition_by": "RANGE (id)"}


def moment(*, nullable: bool = False, index: bool = False) -> Column[datetime]:
    """A `timestamptz` column."""
    return Column(DateTime(timezone=True), nullable=nullable, index=index)


def text(*, nullable: bool = True, index: bool = False) -> Column[str]:
    """An unbounded text column. Never indexed where it holds people's text (a b-tree takes 2.7 kB)."""
    return Column(Text, nullable=nullable, index=index)


def json_column(*, nullable: bool = True) -> Column[Any]:
    """A `jsonb` column whose None is SQL NULL."""
    return Column(JSONB(none_as_null=True), nullable=nullable)


def money() -> Column[Any]:
    """USD, exact."""
    return Column(Numeric(20, 10), nullable=True)


def one_of(column: str, literal: object) -> CheckConstraint:
    """A check that `column` is one of a closed set of words (or NULL)."""
    words = ", ".join(f"'{word}'" for word in members(literal))
    return CheckConstraint(f"{column} IN ({words})", name=column)
