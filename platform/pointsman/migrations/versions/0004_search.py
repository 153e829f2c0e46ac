"""Reward specs and rewards, judges' scores, audit runs; gates, certificates, the α ledger, alarms.

Revision 0004, after 0003.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "alarm",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=True),
        sa.Column("endpoint_hash", sa.String(), nullable=True),
        sa.Column("router_version_id", sa.Uuid(), nullable=True),
        sa.Column("gate_id", sa.Uuid(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("detail", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("raised_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("notified_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("acknowledged_by", sa.Text(), nullable=True),
        sa.Column("acknowledged_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "kind IN ('worker_reward', 'silent_update', 'input_mix', 'guardrail', 'endpoint_changed', 'card_changed')",
            name=op.f("ck_alarm_kind"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alarm")),
    )
    op.create_index("ix_alarm_project_id_id", "alarm", ["project_id", "id"], unique=False)
    op.create_table(
        "alpha_ledger",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("pool_epoch", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("alpha", sa.Float(), nullable=False),
        sa.Column("spent", sa.Float(), nullable=False),
        sa.Column("router_version_id", sa.Uuid(), nullable=True),
        sa.Column("gate_id", sa.Uuid(), nullable=True),
        sa.Column("data_hash", sa.String(), nullable=True),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("purpose IN ('certification', 'gate')", name=op.f("ck_alpha_ledger_purpose")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alpha_ledger")),
    )
    op.create_index("uq_alpha_ledger_project_id_data_hash", "alpha_ledger", ["project_id", "data_hash"], unique=True)
    op.create_index(
        "uq_alpha_ledger_project_id_pool_epoch_purpose_index",
        "alpha_ledger",
        ["project_id", "pool_epoch", "purpose", "index"],
        unique=True,
    )
    op.create_table(
        "audit_run",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("settings", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("cells", sa.Integer(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Numeric(precision=20, scale=10), nullable=True),
        sa.Column("counted", sa.Numeric(precision=20, scale=10), server_default="0", nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind IN ('probe', 'log', 'live')", name=op.f("ck_audit_run_kind")),
        sa.CheckConstraint("state IN ('running', 'done', 'stopped')", name=op.f("ck_audit_run_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_run")),
    )
    op.create_index("uq_audit_run_project_id_kind_name", "audit_run", ["project_id", "kind", "name"], unique=True)
    op.create_table(
        "certificate",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("claim", sa.String(), nullable=False),
        sa.Column("router_version_id", sa.Uuid(), nullable=False),
        sa.Column("incumbent_id", sa.Uuid(), nullable=True),
        sa.Column("gate_id", sa.Uuid(), nullable=True),
        sa.Column("alpha_id", sa.Uuid(), nullable=True),
        sa.Column("alpha", sa.Float(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("window_start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("window_end", sa.DateTime(timezone=True), nullable=False),
        sa.Column("assumptions", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("numbers", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("data_hash", sa.String(), nullable=False),
        sa.Column("spec_hash", sa.String(), nullable=True),
        sa.Column("pool_epoch", sa.String(), nullable=False),
        sa.Column("judge_units", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("holds", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "claim IN ('better_than_incumbent', 'best_of_finalists', 'oracle_of_pool', 'cheap_routing')",
            name=op.f("ck_certificate_claim"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_certificate")),
    )
    op.create_index("ix_certificate_project_id_id", "certificate", ["project_id", "id"], unique=False)
    op.create_index("ix_certificate_router_version_id", "certificate", ["router_version_id"], unique=False)
    op.create_table(
        "gate",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("candidate_id", sa.Uuid(), nullable=False),
        sa.Column("incumbent_id", sa.Uuid(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("terms", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("ramp", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("spec_hash", sa.String(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("deadline_seconds", sa.Float(), nullable=False),
        sa.Column("timeout_value", sa.Float(), nullable=False),
        sa.Column("pool_epoch", sa.String(), nullable=False),
        sa.Column("alpha_id", sa.Uuid(), nullable=True),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("evidence", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("registered_by", sa.Text(), nullable=True),
        sa.Column("registered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('registered', 'running', 'promoted', 'rolled_back', 'expired', 'stopped')",
            name=op.f("ck_gate_state"),
        ),
        sa.CheckConstraint("unit IN ('episode', 'request')", name=op.f("ck_gate_unit")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gate")),
    )
    op.create_index("ix_gate_project_id_state", "gate", ["project_id", "state"], unique=False)
    op.create_table(
        "gate_row",
        sa.Column("gate_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("decision_id", sa.Uuid(), nullable=False),
        sa.Column("episode_id", sa.Uuid(), nullable=False),
        sa.Column("rho", sa.Float(), nullable=False),
        sa.Column("arm", sa.String(), nullable=False),
        sa.Column("utility", sa.Float(), nullable=False),
        sa.Column("known", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("mhat", sa.Float(), nullable=False),
        sa.Column("effect", sa.Float(), nullable=False),
        sa.Column("log_e", sa.Float(), nullable=False),
        sa.Column("log_r", sa.Float(), nullable=False),
        sa.Column("observed", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("assigned_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("arm IN ('candidate', 'incumbent')", name=op.f("ck_gate_row_arm")),
        sa.PrimaryKeyConstraint("gate_id", "seq", name=op.f("pk_gate_row")),
    )
    op.create_index("uq_gate_row_gate_id_episode_id", "gate_row", ["gate_id", "episode_id"], unique=True)
    op.create_table(
        "judge_score",
        sa.Column("judge_hash", sa.String(), nullable=False),
        sa.Column("call_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("decision_id", sa.Uuid(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("judge_worker", sa.String(), nullable=False),
        sa.Column("mode", sa.String(), nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("detail", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("mode IN ('grade', 'pairwise')", name=op.f("ck_judge_score_mode")),
        sa.PrimaryKeyConstraint("judge_hash", "call_id", name=op.f("pk_judge_score")),
    )
    op.create_index(op.f("ix_judge_score_decision_id"), "judge_score", ["decision_id"], unique=False)
    op.create_index("ix_judge_score_project_id_call_id", "judge_score", ["project_id", "call_id"], unique=False)
    op.create_table(
        "reward",
        sa.Column("spec_hash", sa.String(), nullable=False),
        sa.Column("outcome_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("decision_id", sa.Uuid(), nullable=False),
        sa.Column("call_id", sa.Uuid(), nullable=True),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("arm", sa.String(), nullable=True),
        sa.Column("worker", sa.String(), nullable=True),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("skill", sa.Float(), nullable=True),
        sa.Column("source", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("terms", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("closed", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("closed_value", sa.Float(), nullable=True),
        sa.Column("computed_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "origin IN ('traffic', 'audit', 'probe', 'replay', 'rollout', 'shadow', 'dry_run')",
            name=op.f("ck_reward_origin"),
        ),
        sa.CheckConstraint(
            "reason IN ('unknown', 'no_cost', 'no_latency', 'fallback', 'upstream_error', 'timeout', 'truncated')",
            name=op.f("ck_reward_reason"),
        ),
        sa.CheckConstraint("source IN ('verifier', 'feedback', 'judge')", name=op.f("ck_reward_source")),
        sa.PrimaryKeyConstraint("spec_hash", "outcome_id", name=op.f("pk_reward")),
    )
    op.create_index(op.f("ix_reward_decision_id"), "reward", ["decision_id"], unique=False)
    op.create_index(
        "ix_reward_project_id_spec_hash_outcome_id", "reward", ["project_id", "spec_hash", "outcome_id"], unique=False
    )
    op.create_table(
        "reward_spec",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("content", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_reward_spec")),
    )
    op.create_index(op.f("ix_reward_spec_name"), "reward_spec", ["name"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_reward_spec_name"), table_name="reward_spec")
    op.drop_table("reward_spec")
    op.drop_index("ix_reward_project_id_spec_hash_outcome_id", table_name="reward")
    op.drop_index(op.f("ix_reward_decision_id"), table_name="reward")
    op.drop_table("reward")
    op.drop_index("ix_judge_score_project_id_call_id", table_name="judge_score")
    op.drop_index(op.f("ix_judge_score_decision_id"), table_name="judge_score")
    op.drop_table("judge_score")
    op.drop_index("uq_gate_row_gate_id_episode_id", table_name="gate_row")
    op.drop_table("gate_row")
    op.drop_index("ix_gate_project_id_state", table_name="gate")
    op.drop_table("gate")
    op.drop_index("ix_certificate_router_version_id", table_name="certificate")
    op.drop_index("ix_certificate_project_id_id", table_name="certificate")
    op.drop_table("certificate")
    op.drop_index("uq_audit_run_project_id_kind_name", table_name="audit_run")
    op.drop_table("audit_run")
    op.drop_index("uq_alpha_ledger_project_id_pool_epoch_purpose_index", table_name="alpha_ledger")
    op.drop_index("uq_alpha_ledger_project_id_data_hash", table_name="alpha_ledger")
    op.drop_table("alpha_ledger")
    op.drop_index("ix_alarm_project_id_id", table_name="alarm")
    op.drop_table("alarm")
