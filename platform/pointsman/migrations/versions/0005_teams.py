"""Memory of an episode's workflows; roles and plans of decisions.

Revision 0005, after 0004.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_BEFORE = "forced IN ('sticky', 'direct', 'only_one', 'fallback')"
_AFTER = "forced IN ('sticky', 'direct', 'only_one', 'fallback', 'plan', 'rule', 'suggested')"


def upgrade() -> None:
    op.create_table(
        "memory_item",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("episode_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("workflow", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(), nullable=True),
        sa.Column("tool_call_ids", ARRAY(sa.Text()), nullable=False),
        sa.Column("content", JSONB(none_as_null=True), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind IN ('tool', 'context', 'state')", name=op.f("ck_memory_item_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memory_item")),
    )
    op.create_index("ix_memory_item_project_id_episode_id_id", "memory_item", ["project_id", "episode_id", "id"])
    op.create_index(
        "ix_memory_item_tool_call_ids",
        "memory_item",
        ["tool_call_ids"],
        postgresql_using="gin",
        postgresql_where=sa.text("kind = 'state'"),
    )
    op.create_index(op.f("ix_memory_item_expires_at"), "memory_item", ["expires_at"])
    op.add_column("decision", sa.Column("role", sa.String(), nullable=True))
    op.add_column("decision", sa.Column("roles", JSONB(none_as_null=True), nullable=True))
    op.add_column("decision", sa.Column("plan", JSONB(none_as_null=True), nullable=True))
    _check(_AFTER)


def downgrade() -> None:
    op.execute("UPDATE decision SET forced = 'direct' WHERE forced IN ('plan', 'rule', 'suggested')")
    _check(_BEFORE)
    op.drop_column("decision", "plan")
    op.drop_column("decision", "roles")
    op.drop_column("decision", "role")
    op.drop_index(op.f("ix_memory_item_expires_at"), table_name="memory_item")
    op.drop_index("ix_memory_item_tool_call_ids", table_name="memory_item")
    op.drop_index("ix_memory_item_project_id_episode_id_id", table_name="memory_item")
    op.drop_table("memory_item")


def _check(words: str) -> None:
    op.drop_constraint(op.f("ck_decision_forced"), "decision", type_="check")
    op.create_check_constraint(op.f("ck_decision_forced"), "decision", words)
