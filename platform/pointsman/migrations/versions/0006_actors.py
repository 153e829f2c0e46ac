"""Promotions, dials and detectors, who did what; modes and guardrails of gates, evidence of certificates.

Revision 0006, after 0005.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_BEFORE = "state IN ('registered', 'running', 'promoted', 'rolled_back', 'expired', 'stopped')"
_AFTER = "state IN ('registered', 'running', 'ready', 'promoted', 'rolled_back', 'expired', 'stopped')"


def upgrade() -> None:
    _actor_log()
    _promotion()
    _dial()
    _detector()
    op.add_column("gate", sa.Column("mode", sa.String(), server_default="propose", nullable=False))
    op.add_column("gate", sa.Column("guards", JSONB(none_as_null=True), nullable=True))
    op.add_column("gate", sa.Column("judge_hash", sa.String(), nullable=True))
    op.add_column("gate", sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True))
    op.create_check_constraint(op.f("ck_gate_mode"), "gate", "mode IN ('auto', 'propose')")
    _states(_AFTER)
    op.add_column("gate_row", sa.Column("keys", ARRAY(sa.Text()), nullable=True))
    op.add_column("certificate", sa.Column("evidence", JSONB(none_as_null=True), nullable=True))
    op.create_index(
        "ix_decision_gate_id_id", "decision", ["gate_id", "id"], postgresql_where=sa.text("gate_id IS NOT NULL")
    )


def downgrade() -> None:
    op.drop_index("ix_decision_gate_id_id", table_name="decision")
    op.drop_column("certificate", "evidence")
    op.drop_column("gate_row", "keys")
    op.execute("UPDATE gate SET state = 'stopped' WHERE state = 'ready'")
    _states(_BEFORE)
    op.drop_constraint(op.f("ck_gate_mode"), "gate", type_="check")
    for column in ("expires_at", "judge_hash", "guards", "mode"):
        op.drop_column("gate", column)
    op.drop_index("uq_detector_project_id_kind_subject", table_name="detector")
    op.drop_table("detector")
    op.drop_index("uq_dial_project_id", table_name="dial")
    op.drop_table("dial")
    op.drop_index("ix_promotion_project_id_id", table_name="promotion")
    op.drop_table("promotion")
    op.drop_index("ix_actor_log_project_id_id", table_name="actor_log")
    op.drop_table("actor_log")


def _states(words: str) -> None:
    op.drop_constraint(op.f("ck_gate_state"), "gate", type_="check")
    op.create_check_constraint(op.f("ck_gate_state"), "gate", words)


def _actor_log() -> None:
    op.create_table(
        "actor_log",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("detail", JSONB(none_as_null=True), nullable=True),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("role IN ('viewer', 'reviewer', 'operator', 'admin')", name=op.f("ck_actor_log_role")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_actor_log")),
    )
    op.create_index("ix_actor_log_project_id_id", "actor_log", ["project_id", "id"])


def _promotion() -> None:
    op.create_table(
        "promotion",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("router_version_id", sa.Uuid(), nullable=True),
        sa.Column("previous_id", sa.Uuid(), nullable=True),
        sa.Column("fallback_id", sa.Uuid(), nullable=True),
        sa.Column("cards_hash", sa.String(), nullable=True),
        sa.Column("gate_id", sa.Uuid(), nullable=True),
        sa.Column("certificate_id", sa.Uuid(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind IN ('promote', 'roll_back')", name=op.f("ck_promotion_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_promotion")),
    )
    op.create_index("ix_promotion_project_id_id", "promotion", ["project_id", "id"])


def _dial() -> None:
    op.create_table(
        "dial",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("endpoint_hash", sa.String(), nullable=False),
        sa.Column("router_version_id", sa.Uuid(), nullable=False),
        sa.Column("threshold", sa.Float(), nullable=False),
        sa.Column("certificate_id", sa.Uuid(), nullable=False),
        sa.Column("pool_epoch", sa.String(), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dial")),
    )
    op.create_index(
        "uq_dial_project_id", "dial", ["project_id"], unique=True, postgresql_where=sa.text("retired_at IS NULL")
    )


def _detector() -> None:
    op.create_table(
        "detector",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("endpoint_hash", sa.String(), nullable=True),
        sa.Column("state", JSONB(none_as_null=True), nullable=False),
        sa.Column("cursor", sa.Uuid(), nullable=True),
        sa.Column("alarm_id", sa.Uuid(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "kind IN ('worker_reward', 'silent_update', 'input_mix', 'pool')", name=op.f("ck_detector_kind")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_detector")),
    )
    op.create_index("uq_detector_project_id_kind_subject", "detector", ["project_id", "kind", "subject"], unique=True)
