"""The walking product's tables: identity, pool, routers, and the log partitioned by range of id.

Revision 0001, the first. Monthly partitions are made by `pointsman.database.partitions` at every
migration and by the shipper; here each log table gets its default partition only.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

PARTITIONED = ("request", "decision", "call", "outcome")

# Text compresses better and twice as fast with lz4, which not every build of PostgreSQL has and not
# every role may set; the default serves where it cannot be had.
LZ4 = """
DO $$
BEGIN
    IF (SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
        EXECUTE format('ALTER DATABASE %I SET default_toast_compression = lz4', current_database());
        SET LOCAL default_toast_compression = lz4;
    END IF;
EXCEPTION WHEN insufficient_privilege THEN NULL;
END $$
"""


def upgrade() -> None:
    op.execute(LZ4)
    op.create_table(
        "call",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("decision_id", sa.Uuid(), nullable=False),
        sa.Column("request_id", sa.Uuid(), nullable=True),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("endpoint_hash", sa.String(), nullable=True),
        sa.Column("card_hash", sa.String(), nullable=True),
        sa.Column("price_hash", sa.String(), nullable=True),
        sa.Column("purpose", sa.String(), server_default="serve", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="1", nullable=False),
        sa.Column("repeat", sa.Integer(), server_default="0", nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=True),
        sa.Column("provider_model", sa.Text(), nullable=True),
        sa.Column("messages", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("completion", sa.Text(), nullable=True),
        sa.Column("reasoning", sa.Text(), nullable=True),
        sa.Column("tool_calls", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("completion_id", sa.Text(), nullable=True),
        sa.Column("finish_reason", sa.String(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("fault", sa.String(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=True),
        sa.Column("cached_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=True),
        sa.Column("usage_estimated", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("cost", sa.Numeric(precision=20, scale=10), nullable=True),
        sa.Column("first_token_ms", sa.Float(), nullable=True),
        sa.Column("latency_ms", sa.Float(), nullable=True),
        sa.Column("flags", postgresql.ARRAY(sa.Text()), nullable=True),
        sa.CheckConstraint(
            "purpose IN ('serve', 'route', 'audit', 'probe', 'judge', 'rollout', 'shadow', 'replay')",
            name=op.f("ck_call_purpose"),
        ),
        sa.CheckConstraint(
            "status IN ('ok', 'error', 'truncated', 'cancelled', 'timeout')", name=op.f("ck_call_status")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_call")),
        postgresql_partition_by="RANGE (id)",
    )
    op.create_index("ix_call_decision_id", "call", ["decision_id"], unique=False)
    op.create_index("ix_call_project_id_completion_id", "call", ["project_id", "completion_id"], unique=False)
    op.create_index("ix_call_project_id_worker_id", "call", ["project_id", "worker", "id"], unique=False)
    op.create_table(
        "card",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_card")),
    )
    op.create_index(op.f("ix_card_worker"), "card", ["worker"], unique=False)
    op.create_table(
        "decision",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("episode_id", sa.Uuid(), nullable=True),
        sa.Column("parent_id", sa.Uuid(), nullable=True),
        sa.Column("turn", sa.Integer(), server_default="0", nullable=False),
        sa.Column("step", sa.Integer(), nullable=True),
        sa.Column("pattern", sa.String(), server_default="single", nullable=False),
        sa.Column("kind", sa.String(), server_default="route", nullable=False),
        sa.Column("origin", sa.String(), server_default="traffic", nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("router_version_id", sa.Uuid(), nullable=True),
        sa.Column("router_kind", sa.String(), nullable=True),
        sa.Column("template_hash", sa.String(), nullable=True),
        sa.Column("cards_hash", sa.String(), nullable=True),
        sa.Column("pool_hash", sa.String(), nullable=True),
        sa.Column("card_order", postgresql.ARRAY(sa.Text()), nullable=True),
        sa.Column("eligible", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("scores", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("probabilities", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("chosen", sa.String(), nullable=True),
        sa.Column("propensity", sa.Float(), nullable=True),
        sa.Column("draw", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("explored", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("forced", sa.String(), nullable=True),
        sa.Column("audit_rate", sa.Float(), nullable=True),
        sa.Column("audited", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("shadow_picks", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("gate_id", sa.Uuid(), nullable=True),
        sa.Column("parse_status", sa.String(), nullable=True),
        sa.Column("raw_reply", sa.Text(), nullable=True),
        sa.Column("fail_open", postgresql.ARRAY(sa.Text()), nullable=True),
        sa.Column("router_input_tokens", sa.Integer(), nullable=True),
        sa.Column("router_output_tokens", sa.Integer(), nullable=True),
        sa.Column("router_cost", sa.Numeric(precision=20, scale=10), nullable=True),
        sa.Column("router_ms", sa.Float(), nullable=True),
        sa.Column("flags", postgresql.ARRAY(sa.Text()), nullable=True),
        sa.CheckConstraint("forced IN ('sticky', 'direct', 'only_one', 'fallback')", name=op.f("ck_decision_forced")),
        sa.CheckConstraint(
            "kind IN ('route', 'role', 'delegate', 'escalate', 'vote', 'stop', 'pattern')",
            name=op.f("ck_decision_kind"),
        ),
        sa.CheckConstraint(
            "origin IN ('traffic', 'audit', 'probe', 'replay', 'rollout', 'shadow', 'dry_run')",
            name=op.f("ck_decision_origin"),
        ),
        sa.CheckConstraint(
            "parse_status IN ('ok', 'repaired', 'ambiguous', 'unknown', 'empty', 'not_parsed')",
            name=op.f("ck_decision_parse_status"),
        ),
        sa.CheckConstraint(
            "pattern IN ('single', 'trinity', 'workflow', 'cascade', 'sidekick', 'handoff', 'vote')",
            name=op.f("ck_decision_pattern"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decision")),
        postgresql_partition_by="RANGE (id)",
    )
    op.create_index("ix_decision_episode_id", "decision", ["episode_id"], unique=False)
    op.create_index("ix_decision_project_id_chosen_id", "decision", ["project_id", "chosen", "id"], unique=False)
    op.create_index("ix_decision_project_id_id", "decision", ["project_id", "id"], unique=False)
    op.create_index("ix_decision_request_id", "decision", ["request_id"], unique=False)
    op.create_table(
        "episode",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("given", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.String(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("source IN ('given', 'inferred', 'new')", name=op.f("ck_episode_source")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_episode")),
    )
    op.create_index("ix_episode_project_id_fingerprint", "episode", ["project_id", "fingerprint"], unique=False)
    op.create_table(
        "feedback",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=True),
        sa.Column("decision_id", sa.Uuid(), nullable=True),
        sa.Column("episode_id", sa.Uuid(), nullable=True),
        sa.Column("completion_id", sa.Text(), nullable=True),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("value", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("source", sa.String(), server_default="person", nullable=False),
        sa.Column("rater", sa.Text(), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("better_worker", sa.String(), nullable=True),
        sa.Column("demonstration", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("amends", sa.Uuid(), nullable=True),
        sa.Column("retracted", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("joined", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feedback")),
    )
    op.create_index("ix_feedback_decision_id", "feedback", ["decision_id"], unique=False)
    op.create_index("ix_feedback_episode_id", "feedback", ["episode_id"], unique=False)
    op.create_index("ix_feedback_amends", "feedback", ["amends"], unique=False)
    op.create_index("ix_feedback_project_id_id", "feedback", ["project_id", "id"], unique=False)
    op.create_table(
        "outcome",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("decision_id", sa.Uuid(), nullable=False),
        sa.Column("call_id", sa.Uuid(), nullable=True),
        sa.Column("episode_id", sa.Uuid(), nullable=True),
        sa.Column("origin", sa.String(), server_default="traffic", nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=True),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("client_closed", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("calls", sa.Integer(), nullable=True),
        sa.Column("cost", sa.Numeric(precision=20, scale=10), nullable=True),
        sa.Column("first_token_ms", sa.Float(), nullable=True),
        sa.Column("latency_ms", sa.Float(), nullable=True),
        sa.Column("overhead_ms", sa.Float(), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "origin IN ('traffic', 'audit', 'probe', 'replay', 'rollout', 'shadow', 'dry_run')",
            name=op.f("ck_outcome_origin"),
        ),
        sa.CheckConstraint(
            "status IN ('ok', 'upstream_error', 'truncated', 'client_cancelled', 'timeout', 'rejected', 'abandoned')",
            name=op.f("ck_outcome_status"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outcome")),
        postgresql_partition_by="RANGE (id)",
    )
    op.create_index("ix_outcome_decision_id", "outcome", ["decision_id"], unique=False)
    op.create_index("ix_outcome_project_id_id", "outcome", ["project_id", "id"], unique=False)
    op.create_table(
        "pool_snapshot",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("content", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_pool_snapshot")),
    )
    op.create_table(
        "price",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("input", sa.Numeric(precision=20, scale=10), nullable=True),
        sa.Column("output", sa.Numeric(precision=20, scale=10), nullable=True),
        sa.Column("cached_input", sa.Numeric(precision=20, scale=10), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_price")),
    )
    op.create_index(op.f("ix_price_worker"), "price", ["worker"], unique=False)
    op.create_table(
        "project",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
    )
    op.create_table(
        "request",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=True),
        sa.Column("episode_id", sa.Uuid(), nullable=True),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("surface", sa.String(), server_default="chat.completions", nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("stream", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("text_hash", sa.String(), nullable=True),
        sa.Column("body", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("hints", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("tags", postgresql.ARRAY(sa.Text()), nullable=True),
        sa.Column("task", sa.String(), nullable=True),
        sa.Column("split", sa.String(), nullable=True),
        sa.Column("learn", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("flags", postgresql.ARRAY(sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_request")),
        postgresql_partition_by="RANGE (id)",
    )
    op.create_index("ix_request_project_id_id", "request", ["project_id", "id"], unique=False)
    op.create_index(
        "ix_request_search",
        "request",
        [sa.literal_column("to_tsvector('simple', left(text, 8000))")],
        unique=False,
        postgresql_using="gin",
    )
    op.create_index(op.f("ix_request_text_hash"), "request", ["text_hash"], unique=False)
    op.create_table(
        "router_version",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("parent_id", sa.Uuid(), nullable=True),
        sa.Column("artifact_hash", sa.String(), nullable=False),
        sa.Column("config", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "kind IN ('learned', 'harness', 'classic', 'rule', 'default')",
            name=op.f("ck_router_version_kind"),
        ),
        sa.CheckConstraint(
            "state IN ('draft', 'candidate', 'shadow', 'canary', 'serving', 'retired')",
            name=op.f("ck_router_version_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_router_version")),
    )
    op.create_index(op.f("ix_router_version_artifact_hash"), "router_version", ["artifact_hash"], unique=False)
    op.create_table(
        "worker",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker")),
        sa.UniqueConstraint("name", name=op.f("uq_worker_name")),
    )
    op.create_table(
        "worker_endpoint",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("content", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_worker_endpoint")),
    )
    op.create_index(op.f("ix_worker_endpoint_worker"), "worker_endpoint", ["worker"], unique=False)
    op.create_table(
        "api_key",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("prefix", sa.String(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("tags", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("learn", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("explore", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_api_key_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
        sa.UniqueConstraint("hash", name=op.f("uq_api_key_hash")),
    )
    op.create_index(op.f("ix_api_key_project_id"), "api_key", ["project_id"], unique=False)
    for table in PARTITIONED:
        op.execute(f'CREATE TABLE "{table}_default" PARTITION OF "{table}" DEFAULT')


def downgrade() -> None:
    op.drop_index(op.f("ix_api_key_project_id"), table_name="api_key")
    op.drop_table("api_key")
    op.drop_index(op.f("ix_worker_endpoint_worker"), table_name="worker_endpoint")
    op.drop_table("worker_endpoint")
    op.drop_table("worker")
    op.drop_index(op.f("ix_router_version_artifact_hash"), table_name="router_version")
    op.drop_table("router_version")
    op.drop_index(op.f("ix_request_text_hash"), table_name="request")
    op.drop_index("ix_request_search", table_name="request", postgresql_using="gin")
    op.drop_index("ix_request_project_id_id", table_name="request")
    op.drop_table("request")
    op.drop_table("project")
    op.drop_index(op.f("ix_price_worker"), table_name="price")
    op.drop_table("price")
    op.drop_table("pool_snapshot")
    op.drop_index("ix_outcome_project_id_id", table_name="outcome")
    op.drop_index("ix_outcome_decision_id", table_name="outcome")
    op.drop_table("outcome")
    op.drop_index("ix_feedback_amends", table_name="feedback")
    op.drop_index("ix_feedback_project_id_id", table_name="feedback")
    op.drop_index("ix_feedback_episode_id", table_name="feedback")
    op.drop_index("ix_feedback_decision_id", table_name="feedback")
    op.drop_table("feedback")
    op.drop_index("ix_episode_project_id_fingerprint", table_name="episode")
    op.drop_table("episode")
    op.drop_index("ix_decision_request_id", table_name="decision")
    op.drop_index("ix_decision_project_id_id", table_name="decision")
    op.drop_index("ix_decision_project_id_chosen_id", table_name="decision")
    op.drop_index("ix_decision_episode_id", table_name="decision")
    op.drop_table("decision")
    op.drop_index(op.f("ix_card_worker"), table_name="card")
    op.drop_table("card")
    op.drop_index("ix_call_project_id_worker_id", table_name="call")
    op.drop_index("ix_call_project_id_completion_id", table_name="call")
    op.drop_index("ix_call_decision_id", table_name="call")
    op.drop_table("call")
