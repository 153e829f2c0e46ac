"""Budgets, the leases that gateways hold of them, and answers kept for a repeat of a request.

Revision 0002, after 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "budget",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=True),
        sa.Column("limit_usd", sa.Numeric(precision=20, scale=10), nullable=True),
        sa.Column("requests_per_minute", sa.Integer(), nullable=True),
        sa.Column("tokens_per_minute", sa.Integer(), nullable=True),
        sa.Column("period", sa.String(), nullable=False),
        sa.Column("period_start", sa.DateTime(timezone=True), nullable=True),
        sa.Column("spent", sa.Numeric(precision=20, scale=10), server_default="0", nullable=False),
        sa.Column("requests_left", sa.Float(), nullable=True),
        sa.Column("tokens_left", sa.Float(), nullable=True),
        sa.Column("refilled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("period IN ('day', 'month', 'total')", name=op.f("ck_budget_period")),
        sa.ForeignKeyConstraint(["key_id"], ["api_key.id"], name=op.f("fk_budget_key_id_api_key")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_budget_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget")),
    )
    op.create_index(
        "uq_budget_project_id_key_id_period",
        "budget",
        ["project_id", "key_id", "period"],
        unique=True,
        postgresql_nulls_not_distinct=True,
    )
    op.create_table(
        "budget_lease",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("budget_id", sa.Uuid(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("amount", sa.Numeric(precision=20, scale=10), server_default="0", nullable=False),
        sa.Column("used", sa.Numeric(precision=20, scale=10), server_default="0", nullable=False),
        sa.Column("reserved", sa.Numeric(precision=20, scale=10), server_default="0", nullable=False),
        sa.Column("period_start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["budget_id"], ["budget.id"], name=op.f("fk_budget_lease_budget_id_budget"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget_lease")),
    )
    op.create_index(op.f("ix_budget_lease_budget_id"), "budget_lease", ["budget_id"], unique=False)
    op.create_table(
        "idempotency",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("key_hash", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("claim", sa.Uuid(), nullable=False),
        sa.Column("request_hash", sa.String(), nullable=False),
        sa.Column("decision_id", sa.Uuid(), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("content_type", sa.String(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("kept", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("state IN ('running', 'done')", name=op.f("ck_idempotency_state")),
        sa.PrimaryKeyConstraint("project_id", "key_hash", name=op.f("pk_idempotency")),
    )
    op.create_index(op.f("ix_idempotency_expires_at"), "idempotency", ["expires_at"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_idempotency_expires_at"), table_name="idempotency")
    op.drop_table("idempotency")
    op.drop_index(op.f("ix_budget_lease_budget_id"), table_name="budget_lease")
    op.drop_table("budget_lease")
    op.drop_index("uq_budget_project_id_key_id_period", table_name="budget", postgresql_nulls_not_distinct=True)
    op.drop_table("budget")
