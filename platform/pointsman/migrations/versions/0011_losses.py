"""Jobs: what ended from outside is counted apart from a job's own crashes, and nothing before its code was reached.

A job's row is written three times at least. With room in its page the versions take each other's place; without, a
long queue that is drained between two vacuums left the table at 2.65 times its size.

Revision 0011, after 0010.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("job", sa.Column("losses", sa.Integer(), server_default="0", nullable=False))
    op.add_column("job", sa.Column("begun", sa.Boolean(), server_default="false", nullable=False))
    op.execute("ALTER TABLE job SET (fillfactor = 50)")


def downgrade() -> None:
    op.execute("ALTER TABLE job RESET (fillfactor)")
    op.drop_column("job", "begun")
    op.drop_column("job", "losses")
