"""Jobs, their chunks, log lines, artifacts and schedules; the rates that workers share.

Revision 0003, after 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "job",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("params", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("priority", sa.Integer(), server_default="0", nullable=False),
        sa.Column("small", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("stage", sa.String(), nullable=True),
        sa.Column("stages_done", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=True),
        sa.Column("total", sa.BigInteger(), nullable=True),
        sa.Column("rate", sa.Float(), nullable=True),
        sa.Column("eta_s", sa.Float(), nullable=True),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("crashes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column(
            "checkpoint", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("effects", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("result", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("cost", sa.Numeric(precision=20, scale=10), server_default="0", nullable=False),
        sa.Column("budget", sa.Numeric(precision=20, scale=10), nullable=True),
        sa.Column("asked_by", sa.Text(), nullable=True),
        sa.Column("dedupe_key", sa.String(), nullable=True),
        sa.Column("parent_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("queue IN ('default', 'probe', 'train')", name=op.f("ck_job_queue")),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'cancelling', 'cancelled', 'failed', 'done', 'skipped', 'dead')",
            name=op.f("ck_job_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    op.create_index(
        "ix_job_active", "job", ["id"], unique=False, postgresql_where=sa.text("state IN ('running', 'cancelling')")
    )
    op.create_index(
        "ix_job_parent_id", "job", ["parent_id"], unique=False, postgresql_where=sa.text("parent_id IS NOT NULL")
    )
    op.create_index("ix_job_project_id", "job", ["project_id", "id"], unique=False)
    op.create_index(
        "ix_job_waiting",
        "job",
        ["queue", sa.literal_column("priority DESC"), "id"],
        unique=False,
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_index(
        "uq_job_dedupe_key",
        "job",
        ["project_id", "dedupe_key"],
        unique=True,
        postgresql_where=sa.text("dedupe_key IS NOT NULL AND state IN ('queued', 'running', 'cancelling')"),
    )
    op.create_table(
        "rate_bucket",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("left", sa.Float(), nullable=False),
        sa.Column("refilled_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_rate_bucket")),
    )
    op.create_table(
        "schedule",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("params", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("cron", sa.String(), nullable=False),
        sa.Column("last_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_job_id", sa.Uuid(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedule")),
        sa.UniqueConstraint("name", name=op.f("uq_schedule_name")),
    )
    op.create_table(
        "artifact",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("suffix", sa.String(), nullable=False),
        sa.Column("media", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_artifact_job_id_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifact")),
    )
    op.create_index(op.f("ix_artifact_hash"), "artifact", ["hash"], unique=False)
    op.create_index(op.f("ix_artifact_project_id"), "artifact", ["project_id"], unique=False)
    op.create_index("uq_artifact_job_id_name", "artifact", ["job_id", "name"], unique=True)
    op.create_table(
        "job_chunk",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("params", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("result", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('queued', 'running', 'done', 'failed')", name=op.f("ck_job_chunk_state")),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_job_chunk_job_id_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "stage", "number", name=op.f("pk_job_chunk")),
    )
    op.create_index(
        "ix_job_chunk_open",
        "job_chunk",
        ["job_id", "stage", "number"],
        unique=False,
        postgresql_where=sa.text("state IN ('queued', 'running')"),
    )
    op.create_table(
        "job_log",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("stage", sa.String(), nullable=True),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("value", sa.Float(), nullable=True),
        sa.CheckConstraint("level IN ('info', 'warning', 'error', 'metric')", name=op.f("ck_job_log_level")),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_job_log_job_id_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_log")),
    )
    op.create_index("ix_job_log_job_id", "job_log", ["job_id", "id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_job_log_job_id", table_name="job_log")
    op.drop_table("job_log")
    op.drop_index("ix_job_chunk_open", table_name="job_chunk")
    op.drop_table("job_chunk")
    op.drop_index("uq_artifact_job_id_name", table_name="artifact")
    op.drop_index(op.f("ix_artifact_project_id"), table_name="artifact")
    op.drop_index(op.f("ix_artifact_hash"), table_name="artifact")
    op.drop_table("artifact")
    op.drop_table("schedule")
    op.drop_table("rate_bucket")
    op.drop_index("uq_job_dedupe_key", table_name="job")
    op.drop_index("ix_job_waiting", table_name="job")
    op.drop_index("ix_job_project_id", table_name="job")
    op.drop_index("ix_job_parent_id", table_name="job")
    op.drop_index("ix_job_active", table_name="job")
    op.drop_table("job")
