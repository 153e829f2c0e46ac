"""How far rewards follow the log; which rewards are still open, and which decisions were drawn for an audit.

Revision 0010, after 0009.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reward_mark",
        sa.Column("spec_hash", sa.String(), nullable=False),
        sa.Column("seen_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("swept_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("spec_hash", name=op.f("pk_reward_mark")),
    )
    still_open = sa.text("NOT closed AND origin = 'traffic'")
    op.create_index("ix_reward_open", "reward", ["spec_hash", "outcome_id"], postgresql_where=still_open)
    op.create_index("ix_decision_audited", "decision", ["id"], postgresql_where=sa.text("audited"))


def downgrade() -> None:
    op.drop_index("ix_decision_audited", table_name="decision")
    op.drop_index("ix_reward_open", table_name="reward")
    op.drop_table("reward_mark")
