"""Reviews, saved filters, and hourly sums of the log for the dashboard.

Revision 0007, after 0006.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_RULES = "rule IN ('disagreement', 'low_confidence', 'bad_outcome', 'reask', 'random')"
_VERDICTS = "verdict IN ('good_fit', 'underpowered', 'overprovisioned', 'failed')"


def upgrade() -> None:
    _review_item()
    _verdict()
    _saved_set()
    _rollup_hour()
    _rollups()


def downgrade() -> None:
    for table in ("rollup_mark", "rollup_share", "rollup_word", "rollup_spread", "rollup_hour"):
        op.drop_table(table)
    op.drop_index("uq_saved_set_project_id_name", table_name="saved_set")
    op.drop_table("saved_set")
    op.drop_index("ix_verdict_project_id_id", table_name="verdict")
    op.drop_index("uq_verdict_item_id_reviewer", table_name="verdict")
    op.drop_table("verdict")
    op.drop_index("ix_review_item_open", table_name="review_item")
    op.drop_index("uq_review_item_project_id_decision_id", table_name="review_item")
    op.drop_table("review_item")


def _moment(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _review_item() -> None:
    op.create_table(
        "review_item",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("decision_id", sa.Uuid(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("information", sa.Float(), nullable=False),
        sa.Column("wanted", sa.Integer(), server_default="1", nullable=False),
        sa.Column("state", sa.String(), server_default="open", nullable=False),
        sa.Column("assigned_to", sa.Text(), nullable=True),
        sa.Column("locked_by", sa.Text(), nullable=True),
        sa.Column("lock_token", sa.Text(), nullable=True),
        _moment("locked_until", nullable=True),
        _moment("created_at"),
        sa.CheckConstraint(_RULES, name=op.f("ck_review_item_rule")),
        sa.CheckConstraint("state IN ('open', 'done')", name=op.f("ck_review_item_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_review_item")),
    )
    op.create_index("uq_review_item_project_id_decision_id", "review_item", ["project_id", "decision_id"], unique=True)
    op.create_index(
        "ix_review_item_open",
        "review_item",
        ["project_id", "rule", sa.text("information DESC")],
        postgresql_where=sa.text("state='open'"),
    )


def _verdict() -> None:
    op.create_table(
        "verdict",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("item_id", sa.Uuid(), nullable=False),
        sa.Column("decision_id", sa.Uuid(), nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("blind", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("better_worker", sa.String(), nullable=True),
        sa.Column("better_answer", sa.Text(), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("feedback_id", sa.Uuid(), nullable=True),
        _moment("given_at"),
        _moment("undone_at", nullable=True),
        sa.CheckConstraint(_VERDICTS, name=op.f("ck_verdict_verdict")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verdict")),
    )
    op.create_index(
        "uq_verdict_item_id_reviewer",
        "verdict",
        ["item_id", "reviewer"],
        unique=True,
        postgresql_where=sa.text("undone_at IS NULL"),
    )
    op.create_index("ix_verdict_project_id_id", "verdict", ["project_id", "id"])


def _saved_set() -> None:
    op.create_table(
        "saved_set",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("filters", JSONB(none_as_null=True), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=False),
        _moment("made_at"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saved_set")),
    )
    op.create_index("uq_saved_set_project_id_name", "saved_set", ["project_id", "name"], unique=True)


def _keys(*names: str) -> list[sa.Column[object]]:
    texts: list[sa.Column[object]] = [sa.Column(name, sa.String(), nullable=False) for name in names]
    return [sa.Column("project_id", sa.Uuid(), nullable=False), _moment("hour"), *texts]


def _rollup_hour() -> None:
    dimensions = ("worker", "router_kind", "status", "forced")
    counts = ("decisions", "own_ok", "begun", "explored", "unknown_cost")
    op.create_table(
        "rollup_hour",
        *_keys(*dimensions),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in counts),
        *(sa.Column(name, sa.Numeric(20, 10), server_default="0", nullable=False) for name in ("cost", "router_cost")),
        sa.Column("drawn", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.Float(), nullable=False) for name in ("drawn_cost", "weight", "weight_cost")),
        sa.PrimaryKeyConstraint("project_id", "hour", *dimensions, name=op.f("pk_rollup_hour")),
    )


def _rollups() -> None:
    op.create_table(
        "rollup_spread",
        *_keys("worker", "measure"),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "hour", "worker", "measure", "bucket", name=op.f("pk_rollup_spread")),
    )
    op.create_table(
        "rollup_word",
        *_keys("worker", "metric"),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("n", "yes", "said", "numbers")),
        sa.Column("total", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "hour", "worker", "metric", name=op.f("pk_rollup_word")),
    )
    op.create_table(
        "rollup_share",
        *_keys("pattern", "version"),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "hour", "pattern", "version", name=op.f("pk_rollup_share")),
    )
    op.create_table(
        "rollup_mark",
        sa.Column("name", sa.String(), nullable=False),
        _moment("until"),
        _moment("words_until"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_rollup_mark")),
    )
