"""The rows, one module per subject: who (`identity`), what they may spend (`budget`), the pool (`pool`),
routers (`router`), the log (`log`), background work (`jobs`), memory of teams (`teams`),
rewards and audits (`search`), gates and certificates (`claims`), what serves (`promotion`), who did what (`actors`),
label sets (`learning`),
people's reviews (`review`), hourly sums (`rollup`), turns of the flywheel (`flywheel`).

SQLModel is for schema, migrations and reads. The log is written by the shipper's COPY alone. Log
tables carry no foreign keys: rows arrive in batches and in any order, and idempotently by id.
"""

from pointsman.tables.actors import ActorLogRow
from pointsman.tables.base import METADATA, PARTITIONED
from pointsman.tables.budget import BudgetLease, BudgetRow, IdempotencyRow
from pointsman.tables.claims import AlarmRow, AlphaLedgerRow, CertificateRow, GateRow, GateStepRow
from pointsman.tables.flywheel import FlywheelTurn
from pointsman.tables.identity import ApiKey, Project
from pointsman.tables.jobs import (
    ArtifactRow,
    JobChunkRow,
    JobLogRow,
    JobRow,
    RateBucketRow,
    ScheduleRow,
)
from pointsman.tables.learning import LabelSetRow
from pointsman.tables.log import Call, Decision, Episode, Feedback, Outcome, Request
from pointsman.tables.pool import Card, PoolSnapshot, PriceRow, WorkerEndpoint, WorkerRow
from pointsman.tables.promotion import DetectorRow, DialRow, PromotionRow
from pointsman.tables.review import ReviewItem, SavedSet, Verdict
from pointsman.tables.rollup import RollupHour, RollupMark, RollupShare, RollupSpread, RollupWord
from pointsman.tables.router import RouterVersionRow
from pointsman.tables.search import AuditRunRow, JudgeScoreRow, RewardRow, RewardSpecRow
from pointsman.tables.teams import MemoryItem

__all__ = [
    "METADATA",
    "PARTITIONED",
    "ActorLogRow",
    "AlarmRow",
    "AlphaLedgerRow",
    "ApiKey",
    "ArtifactRow",
    "AuditRunRow",
    "BudgetLease",
    "BudgetRow",
    "Call",
    "Card",
    "CertificateRow",
    "Decision",
    "DetectorRow",
    "DialRow",
    "Episode",
    "Feedback",
    "FlywheelTurn",
    "GateRow",
    "GateStepRow",
    "IdempotencyRow",
    "JobChunkRow",
    "JobLogRow",
    "JobRow",
    "JudgeScoreRow",
    "LabelSetRow",
    "MemoryItem",
    "Outcome",
    "PoolSnapshot",
    "PriceRow",
    "Project",
    "PromotionRow",
    "RateBucketRow",
    "Request",
    "ReviewItem",
    "RewardRow",
    "RewardSpecRow",
    "RollupHour",
    "RollupMark",
    "RollupShare",
    "RollupSpread",
    "RollupWord",
    "RouterVersionRow",
    "SavedSet",
    "ScheduleRow",
    "Verdict",
    "WorkerEndpoint",
    "WorkerRow",
]
