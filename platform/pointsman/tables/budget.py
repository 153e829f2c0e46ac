"""What a project or a key may spend, the slices of it that gateways hold, and answers kept for a repeat.

`budget.spent` is what closed leases used in the period that began at `period_start`; what a living
lease used stands on its row until it is closed. All three tables are written by short transactions
of the gateways, never by the shipper.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import Boolean, Column, ForeignKey, Index, LargeBinary, Numeric, Uuid
from sqlmodel import Field, SQLModel

from pointsman.tables.base import moment, money, one_of, text
from pointsman.words import BudgetPeriod, IdempotencyState


def usd() -> Column[Decimal]:
    """USD that is always known."""
    return Column(Numeric(20, 10), nullable=False, server_default="0")


class BudgetRow(SQLModel, table=True):
    """A limit of money per period and of rates per minute. `key_id` NULL: for the whole project.

    `requests_left` and `tokens_left` are the two token buckets as they were at `refilled_at`.
    """

    __tablename__ = "budget"
    __table_args__ = (
        one_of("period", BudgetPeriod),
        Index(
            "uq_budget_project_id_key_id_period",
            "project_id",
            "key_id",
            "period",
            unique=True,
            postgresql_nulls_not_distinct=True,
        ),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID = Field(foreign_key="project.id")
    key_id: UUID | None = Field(default=None, foreign_key="api_key.id")
    limit_usd: Decimal | None = Field(default=None, sa_column=money())
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    period: str = "day"
    period_start: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    spent: Decimal = Field(default=Decimal(0), sa_column=usd())
    requests_left: float | None = None
    tokens_left: float | None = None
    refilled_at: datetime | None = Field(default=None, sa_column=moment(nullable=True))
    created_at: datetime = Field(sa_column=moment())


class BudgetLease(SQLModel, table=True):
    """One gateway's slice of a budget: `amount` in all in this period, of it `used` and `reserved` as last told."""

    __tablename__ = "budget_lease"

    id: UUID = Field(primary_key=True)
    budget_id: UUID = Field(
        sa_column=Column(Uuid, ForeignKey("budget.id", ondelete="CASCADE"), nullable=False, index=True)
    )
    holder: str = Field(sa_column=text(nullable=False))
    amount: Decimal = Field(sa_column=usd())
    used: Decimal = Field(default=Decimal(0), sa_column=usd())
    reserved: Decimal = Field(default=Decimal(0), sa_column=usd())
    period_start: datetime = Field(sa_column=moment())
    expires_at: datetime = Field(sa_column=moment())


class IdempotencyRow(SQLModel, table=True):
    """A request under an `Idempotency-Key`. `claim` is the right to finish it; `kept` whether its answer is here."""

    __tablename__ = "idempotency"
    __table_args__ = (one_of("state", IdempotencyState),)

    project_id: UUID = Field(primary_key=True)
    key_hash: str = Field(primary_key=True)
    state: str
    claim: UUID
    request_hash: str
    decision_id: UUID | None = None
    status: int | None = None
    content_type: str | None = None
    body: bytes | None = Field(default=None, sa_column=Column(LargeBinary, nullable=True))
    kept: bool = Field(default=False, sa_column=Column(Boolean, nullable=False, server_default="false"))
    created_at: datetime = Field(sa_column=moment())
    expires_at: datetime = Field(sa_column=moment(index=True))
