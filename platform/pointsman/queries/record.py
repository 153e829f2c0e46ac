"""The whole record of one decision and its tree, as `GET /v1/decisions/{id}` gives it.

Values are JSON's: ids and money as text, times as ISO 8601 with their offset. Keys are stable: columns
by their names, plus `calls`, `feedback`, `router_version`, `cards`, `prices` and `children`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Engine, Table, and_, or_, select

from pointsman.ids import is_uuid
from pointsman.queries.scope import CALL, DECISION, FEEDBACK, OUTCOME, REQUEST, of_project
from pointsman.tables import METADATA

CARD = METADATA.tables["card"]
PRICE = METADATA.tables["price"]
POOL_SNAPSHOT = METADATA.tables["pool_snapshot"]
ROUTER_VERSION = METADATA.tables["router_version"]

Record = dict[str, Any]


def decision_record(engine: Engine, project: str | None, decision_id: str) -> Record | None:
    """Everything on record about a decision; None where this project has no such decision.

    `outcome` is the decision's own (traffic); a full-information row has one per call instead, under
    `outcomes`. `feedback` lists every word ever given, retracted ones too.
    """
    if not is_uuid(decision_id):
        return None
    identity = UUID(decision_id)
    with engine.connect() as connection:
        found = _rows(connection, DECISION, DECISION.c.id == identity, of_project(DECISION, project))
        if not found:
            return None
        decision = found[0]
        outcomes = _rows(connection, OUTCOME, OUTCOME.c.decision_id == identity)
        calls = _rows(connection, CALL, CALL.c.decision_id == identity)
        requests = _rows(connection, REQUEST, REQUEST.c.id == UUID(decision["request_id"]))
        pool = _pool(connection, decision["pool_hash"])
        return {
            "decision": decision,
            "request": requests[0] if requests else None,
            "calls": sorted(calls, key=lambda call: (call["attempt"], call["repeat"], call["id"])),
            "outcome": next((row for row in outcomes if row["id"] == decision_id.lower()), None),
            "outcomes": [row for row in outcomes if row["call_id"] is not None],
            "feedback": _feedback(connection, decision),
            "router_version": _router_version(connection, decision["router_version_id"]),
            "cards": _cards(connection, decision, pool),
            "prices": _prices(connection, pool),
            "children": _children(connection, decision),
        }


def _feedback(connection: Connection, decision: Record) -> list[Record]:
    """Words on the decision itself and on its whole episode."""
    f = FEEDBACK.c
    about: ColumnElement[bool] = f.decision_id == UUID(decision["id"])
    if decision["episode_id"]:
        about = or_(about, and_(f.decision_id.is_(None), f.episode_id == UUID(decision["episode_id"])))
    return _rows(connection, FEEDBACK, about, f.project_id == UUID(decision["project_id"]))


def _router_version(connection: Connection, identity: str | None) -> Record | None:
    if identity is None:
        return None
    rows = _rows(connection, ROUTER_VERSION, ROUTER_VERSION.c.id == UUID(identity))
    return rows[0] if rows else None


def _pool(connection: Connection, pool_hash: str | None) -> dict[str, dict[str, str | None]]:
    """{worker: {endpoint, card, price}} of the snapshot that the decision names."""
    content = connection.scalar(select(POOL_SNAPSHOT.c.content).where(POOL_SNAPSHOT.c.hash == pool_hash))
    return dict(content or {})


def _cards(connection: Connection, decision: Record, pool: Mapping[str, Any]) -> dict[str, str]:
    """The texts of the cards of the workers that could be chosen: masked workers' cards are not seen."""
    seen = {worker for worker, reason in decision["eligible"].items() if reason is None}
    hashes = {pool[worker]["card"]: worker for worker in pool if worker in seen}
    query = select(CARD.c.hash, CARD.c.text).where(CARD.c.hash.in_(hashes))
    texts = {hashes[found]: text for found, text in connection.execute(query)}
    order = [worker for worker in decision["card_order"] or () if worker in texts]
    return {worker: texts[worker] for worker in [*order, *sorted(set(texts) - set(order))]}


def _prices(connection: Connection, pool: Mapping[str, Any]) -> dict[str, Record]:
    """USD per million tokens by worker, at the versions of the decision's pool."""
    hashes = [entry["price"] for entry in pool.values() if entry.get("price")]
    return {row["worker"]: row for row in _rows(connection, PRICE, PRICE.c.hash.in_(hashes), order="worker")}


def _children(connection: Connection, decision: Record) -> list[Record]:
    """The decisions below this one, nested, each with its calls and its outcome.

    A tree shares its request, which is indexed; parents are not.
    """
    d = DECISION.c
    rows = _rows(
        connection,
        DECISION,
        d.request_id == UUID(decision["request_id"]),
        d.project_id == UUID(decision["project_id"]),
        d.parent_id.is_not(None),
    )
    if not rows:
        return []
    by_parent: dict[str, list[Record]] = defaultdict(list)
    for row in rows:
        by_parent[row["parent_id"]].append(row)
    tree = [UUID(row["id"]) for row in rows]
    calls: dict[str, list[Record]] = defaultdict(list)
    for call in _rows(connection, CALL, CALL.c.decision_id.in_(tree)):
        calls[call["decision_id"]].append(call)
    outcomes = {row["id"]: row for row in _rows(connection, OUTCOME, OUTCOME.c.id.in_(tree))}

    def below(parent: str) -> list[Record]:
        return [
            {
                "decision": row,
                "calls": sorted(calls[row["id"]], key=lambda call: (call["attempt"], call["id"])),
                "outcome": outcomes.get(row["id"]),
                "children": below(row["id"]),
            }
            for row in by_parent.pop(parent, [])
        ]

    return below(decision["id"])


def _rows(connection: Connection, table: Table, *conditions: ColumnElement[bool], order: str = "id") -> list[Record]:
    query = select(table).where(*conditions).order_by(table.c[order])
    return [{key: plain(value) for key, value in row.items()} for row in connection.execute(query).mappings()]


def plain(value: Any) -> Any:
    """A column's value as JSON has it; JSON columns are JSON already."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    return value
