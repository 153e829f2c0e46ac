"""Turns of the flywheel.

Revision 0009, after 0008.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "flywheel_turn",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("mode", sa.String(), nullable=False),
        sa.Column("opened_by", sa.Text(), nullable=False),
        sa.Column("opened_because", sa.Text(), nullable=False),
        sa.Column("information", JSONB(none_as_null=True), nullable=False),
        sa.Column("links", JSONB(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("facts", JSONB(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("candidate_id", sa.Uuid(), nullable=True),
        sa.Column("gate_id", sa.Uuid(), nullable=True),
        sa.Column("budget", sa.Numeric(precision=20, scale=10), nullable=True),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('running', 'proposed', 'promoted', 'refused', 'stopped', 'failed')",
            name=op.f("ck_flywheel_turn_state"),
        ),
        sa.CheckConstraint("mode IN ('auto', 'propose')", name=op.f("ck_flywheel_turn_mode")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flywheel_turn")),
    )
    op.create_index("ix_flywheel_turn_project_id_id", "flywheel_turn", ["project_id", "id"])
    op.create_index(
        "uq_flywheel_turn_project_id",
        "flywheel_turn",
        ["project_id"],
        unique=True,
        postgresql_where=sa.text("state IN ('running', 'proposed')"),
    )


def downgrade() -> None:
    op.drop_index("uq_flywheel_turn_project_id", table_name="flywheel_turn")
    op.drop_index("ix_flywheel_turn_project_id_id", table_name="flywheel_turn")
    op.drop_table("flywheel_turn")
