"""The α ledger in Postgres: half of a project's error for live gates, half for certification sets, per pool epoch.

`pointsman.statistics.alpha_ledger` has the rule; this keeps its count, one at a time, and remembers which
certification sets were opened: a set is spent when it is opened, whatever came of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select, text

from pointsman.errors import UserError
from pointsman.ids import new_id
from pointsman.statistics.alpha_ledger import AlphaLedger
from pointsman.tables import METADATA
from pointsman.words import AlphaPurpose

ALPHA_LEDGER: Table = METADATA.tables["alpha_ledger"]


@dataclass(frozen=True)
class Entry:
    """What one test may spend: the `index`-th of its purpose in this epoch."""

    id: str
    alpha: float
    index: int


def ledger(connection: Connection, project: str, epoch: str, alpha: float) -> AlphaLedger:
    """What the project has used in this epoch of its pool."""
    a = ALPHA_LEDGER.c
    mine = select(a.purpose, func.count()).where(a.project_id == project, a.pool_epoch == epoch).group_by(a.purpose)
    counts = {str(row[0]): int(row[1]) for row in connection.execute(mine)}
    return AlphaLedger(alpha, epoch, counts.get("certification", 0), counts.get("gate", 0))


def enter_canary(
    connection: Connection, project: str, epoch: str, alpha: float, now: datetime, *, version: str, gate: str
) -> Entry:
    """The next index of the live half, spent by this."""
    found = _locked(connection, project, epoch, alpha)
    share, after = found.enter_canary()
    row = {"router_version_id": version, "gate_id": gate}
    return _spend(connection, project, "gate", after, after.canaries, share, now, row)


def open_certification(
    connection: Connection, project: str, epoch: str, alpha: float, now: datetime, *, version: str, data_hash: str
) -> Entry:
    """The next index of the other half. The set named by `data_hash` is spent: a second opening is a `UserError`."""
    found = _locked(connection, project, epoch, alpha)
    a = ALPHA_LEDGER.c
    opened = connection.scalar(select(a.opened_at).where(a.project_id == project, a.data_hash == data_hash))
    if opened is not None:
        raise UserError(
            f"this certification set was opened on {opened:%Y-%m-%d %H:%M} and is retired: "
            "gather fresh rows with `pointsman audit` or `pointsman probe`"
        )
    share, after = found.open_certification()
    row = {"router_version_id": version, "data_hash": data_hash, "retired_at": now}
    return _spend(connection, project, "certification", after, after.certifications, share, now, row)


def entries(connection: Connection, project: str, epoch: str | None = None) -> list[Any]:
    """The rows of a project's ledger, newest first."""
    a = ALPHA_LEDGER.c
    query = select(ALPHA_LEDGER).where(a.project_id == project).order_by(a.id.desc())
    return list(connection.execute(query if epoch is None else query.where(a.pool_epoch == epoch)))


def _locked(connection: Connection, project: str, epoch: str, alpha: float) -> AlphaLedger:
    """The count, while no other transaction may add to it."""
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": f"alpha {project}"})
    return ledger(connection, project, epoch, alpha)


def _spend(
    connection: Connection,
    project: str,
    purpose: AlphaPurpose,
    after: AlphaLedger,
    index: int,
    share: float,
    now: datetime,
    more: dict[str, Any],
) -> Entry:
    identity = new_id()
    values = {
        "id": identity, "project_id": project, "pool_epoch": after.pool_epoch, "purpose": purpose, "index": index,
        "alpha": share, "spent": after.spent, "opened_at": now, **more,
    }  # fmt: skip
    connection.execute(insert(ALPHA_LEDGER).values(values))
    return Entry(identity, share, index)
