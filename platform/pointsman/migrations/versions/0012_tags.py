"""An index on the tags of requests: without it a rare tag is looked for in the whole log.

Revision 0012, after 0011. While it is built, rows of requests wait in the journal.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_request_tags",
        "request",
        ["tags"],
        postgresql_using="gin",
        postgresql_where=sa.text("tags IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_request_tags", table_name="request", postgresql_using="gin")
