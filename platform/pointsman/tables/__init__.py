"""The rows, one module per subject: who (`identity`), what they may spend (`budget`), the pool (`pool`),
routers (`router`), the log (`log`).

SQLModel is for schema, migrations and reads. The log is written by the shipper's COPY alone. Log
tables carry no foreign keys: rows arrive in batches and in any order, and idempotently by id.
"""

from pointsman.tables.base import METADATA, PARTITIONED
from pointsman.tables.budget import BudgetLease, BudgetRow, IdempotencyRow
from pointsman.tables.identity import ApiKey, Project
from pointsman.tables.log import Call, Decision, Episode, Feedback, Outcome, Request
from pointsman.tables.pool import Card, PoolSnapshot, PriceRow, WorkerEndpoint, WorkerRow
from pointsman.tables.router import RouterVersionRow

__all__ = [
    "METADATA",
    "PARTITIONED",
    "ApiKey",
    "BudgetLease",
    "BudgetRow",
    "Call",
    "Card",
    "Decision",
    "Episode",
    "Feedback",
    "IdempotencyRow",
    "Outcome",
    "PoolSnapshot",
    "PriceRow",
    "Project",
    "Request",
    "RouterVersionRow",
    "WorkerEndpoint",
    "WorkerRow",
]
