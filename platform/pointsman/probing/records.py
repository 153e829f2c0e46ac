"""From an asked cell to the rows of the log, and back: which cells are answered there already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, select

from pointsman.database.copy import copy_rows
from pointsman.hashing import text_hash
from pointsman.ids import content_id
from pointsman.pool import Pool
from pointsman.probing.subjects import Cell, Subject
from pointsman.queries.scope import OUTCOME
from pointsman.replay.records import pool_rows
from pointsman.upstream.price import add
from pointsman.upstream.record import CallRecord
from pointsman.words import OutcomeStatus

Row = dict[str, Any]
TableRow = tuple[str, Row]
LOOKED_UP = 5_000


def answered(engine: Engine, cells: Sequence[Cell]) -> set[str]:
    """The ids of those cells that have an answer in the log."""
    ids = [cell.id for cell in cells]
    found: set[str] = set()
    with engine.connect() as connection:
        for start in range(0, len(ids), LOOKED_UP):
            part = [UUID(identity) for identity in ids[start : start + LOOKED_UP]]
            query = select(OUTCOME.c.id).where(OUTCOME.c.id.in_(part), OUTCOME.c.status == "ok")
            found.update(str(row.id) for row in connection.execute(query))
    return found


def write(connection: Connection, rows: Iterable[TableRow]) -> None:
    """Inserts rows whose ids are new. Calls and outcomes go before the decisions that they belong to."""
    by_table: dict[str, list[Row]] = {}
    for table, row in rows:
        by_table.setdefault(table, []).append(row)
    driver = connection.connection.driver_connection
    for table in sorted(by_table, key=lambda table: table in ("request", "decision")):
        copy_rows(driver, table, by_table[table])  # type: ignore[arg-type]


def write_pool(connection: Connection, pool: Pool) -> None:
    """What the rows of this pool name by hash."""
    now = datetime.now(UTC)
    rows: list[TableRow] = [("pool_snapshot", {"hash": pool.hash, "content": pool.content, "created_at": now})]
    for worker in pool.workers:
        rows.append(("worker", {"id": content_id("worker", worker.name), "name": worker.name, "created_at": now}))
        rows += [(table, row) for table, more in pool_rows(worker, now).items() for row in more]
    write(connection, rows)


def decision_rows(subject: Subject, pool: Pool) -> list[TableRow]:
    """The decision, and the request where it is new."""
    rows: list[TableRow] = [] if subject.request is None else [("request", dict(subject.request))]
    decision = {
        "id": subject.id,
        "project_id": subject.project_id,
        "request_id": subject.request_id,
        "episode_id": subject.episode_id,
        "parent_id": subject.parent_id,
        "origin": subject.origin,
        "decided_at": datetime.now(UTC),
        "pool_hash": pool.hash,
        "cards_hash": pool.cards_hash,
        "eligible": dict(subject.eligible),
        "audit_rate": subject.rate,
    }
    return [*rows, ("decision", decision)]


def request_row(
    subject_id: str, project_id: str, moment: datetime, text: str, body: dict[str, Any], **more: Any
) -> Row:
    """A request that is made for a subject and that no client sent."""
    return {
        "id": subject_id,
        "project_id": project_id,
        "received_at": moment,
        "text": text,
        "text_hash": text_hash(text),
        "body": body,
        **more,
    }


def cell_rows(cell: Cell, records: Sequence[CallRecord], score: float | None) -> list[TableRow]:
    """The calls of a cell and its outcome. The answer's call has the cell's own id; one that failed keeps its own."""
    subject = cell.subject
    rows: list[TableRow] = []
    spent: Decimal | None = Decimal(0)
    for record in records:
        spent = add(spent, record.cost)
        row = record.row(subject.project_id, subject.id, subject.request_id, store_text=True)
        row |= {"purpose": subject.origin, "repeat": cell.repeat}
        if record.status == "ok":
            row["id"] = cell.id
        rows.append(("call", row))
    last = records[-1]
    identity = rows[-1][1]["id"]
    outcome = {
        "id": identity,
        "project_id": subject.project_id,
        "decision_id": subject.id,
        "call_id": identity,
        "episode_id": subject.episode_id,
        "origin": subject.origin,
        "status": _status(last),
        "worker": cell.worker.name,
        "score": score if last.status == "ok" else None,
        "reason": last.fault,
        "http_status": last.http_status,
        "calls": len(records),
        "cost": spent,
        "first_token_ms": last.first_token_ms,
        "latency_ms": last.latency_ms,
        "ended_at": datetime.now(UTC),
    }
    return [*rows, ("outcome", outcome)]


def _status(record: CallRecord) -> OutcomeStatus:
    if record.status == "ok":
        return "ok"
    return "timeout" if record.status == "timeout" else "upstream_error"
