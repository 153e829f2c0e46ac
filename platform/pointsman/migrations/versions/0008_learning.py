"""Label sets.

Revision 0008, after 0007.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "label_set",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=True),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("data_hash", sa.String(), nullable=False),
        sa.Column("manifest_hash", sa.String(), nullable=False),
        sa.Column("manifest", JSONB(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_label_set")),
    )
    op.create_index("ix_label_set_project_id_id", "label_set", ["project_id", "id"])
    op.create_index(op.f("ix_label_set_hash"), "label_set", ["hash"])


def downgrade() -> None:
    op.drop_index(op.f("ix_label_set_hash"), table_name="label_set")
    op.drop_index("ix_label_set_project_id_id", table_name="label_set")
    op.drop_table("label_set")
