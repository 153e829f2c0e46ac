"""One decision whole, from Postgres or, while it is on its way there, from this process's memory."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Boolean, Column, DefaultClause, Integer
from sqlalchemy.exc import SQLAlchemyError

from harness.gateway.recent import Entry
from harness.gateway.state import State
from harness.routing.base import RouterVersion
from pointsman.database.clean import clean_json
from pointsman.pool import Pool
from pointsman.queries import decision_record, find_decision
from pointsman.queries.record import plain
from pointsman.tables import METADATA

YOUNG_WAIT_SECONDS = 2.0
POLL_SECONDS = 0.1
QUERY_SECONDS = 2.0
YOUNG_SECONDS = 600.0
AHEAD_SECONDS = 60.0  # how far another gateway's clock may be ahead of ours


async def find_record(state: State, project: str | None, decision_id: str) -> dict[str, Any] | None:
    """The record of a decision of `project` (None: any); waits up to two seconds for a young id."""
    until = time.monotonic() + YOUNG_WAIT_SECONDS
    while True:
        local = state.recent.get(decision_id)
        if local is not None and project not in (None, local.project_id):
            return None
        stored = await _stored(state, project, decision_id)
        if stored is not None and (stored.get("outcome") or local is None or local.outcome is None):
            return stored
        if local is not None:
            return _rendered(state, local)
        if time.monotonic() >= until or not is_young(decision_id):
            return stored
        await asyncio.sleep(POLL_SECONDS)


async def find_by_completion(state: State, project: str, completion_id: str) -> str | None:
    """The decision whose answer carried a completion id."""
    local = state.recent.by_completion(project, completion_id)
    if local is not None:
        return local
    try:
        async with asyncio.timeout(QUERY_SECONDS):
            return await asyncio.to_thread(find_decision, state.engine, project, completion_id)
    except (SQLAlchemyError, TimeoutError):
        return None


def is_young(identity: str) -> bool:
    """Whether an id of ours is so new that its row may still be on its way."""
    value = UUID(identity)
    if value.version != 7:
        return False
    seconds = time.time() - (value.int >> 80) / 1000
    return -AHEAD_SECONDS < seconds < YOUNG_SECONDS


async def _stored(state: State, project: str | None, decision_id: str) -> dict[str, Any] | None:
    if not state.database_up:
        return None
    try:
        async with asyncio.timeout(QUERY_SECONDS):
            return await asyncio.to_thread(decision_record, state.engine, project, decision_id)
    except (SQLAlchemyError, TimeoutError):
        return None


def _rendered(state: State, entry: Entry) -> dict[str, Any]:
    """The shape of a stored record, from the rows that went to the journal."""
    decision = _whole("decision", entry.decision)
    generation = state.generation
    same_pool = decision["pool_hash"] == generation.pool.hash
    router_id = decision["router_version_id"]
    chain = generation.pinned.get(router_id) if router_id else None
    version = chain.routers[0].version if chain is not None else None
    return {
        "decision": decision,
        "request": _whole("request", entry.request) if entry.request else None,
        "calls": [_whole("call", call) for call in entry.calls],
        "outcome": _whole("outcome", entry.outcome) if entry.outcome else None,
        "outcomes": [],
        "feedback": [_whole("feedback", row) for row in entry.feedback],
        "router_version": _version(version) if version is not None else None,
        "cards": _cards(decision, generation.pool) if same_pool else {},
        "prices": _prices(generation.pool) if same_pool else {},
        "children": _children(state, entry),
    }


def _children(state: State, entry: Entry) -> list[dict[str, Any]]:
    """The decisions below this one, nested as `pointsman.queries.record` has them."""
    by_parent: dict[str, list[Entry]] = {}
    for other in state.recent.of_request(entry.decision["request_id"]):
        if (parent := other.decision.get("parent_id")) is not None:
            by_parent.setdefault(parent, []).append(other)

    def below(parent: str) -> list[dict[str, Any]]:
        return [
            {
                "decision": _whole("decision", child.decision),
                "calls": [_whole("call", call) for call in child.calls],
                "outcome": _whole("outcome", child.outcome) if child.outcome else None,
                "children": below(child.decision["id"]),
            }
            for child in by_parent.pop(parent, [])
        ]

    return below(entry.decision["id"])


def _whole(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row with all columns of its table, as JSON has them; a column that was left out has its default."""
    columns = METADATA.tables[table].columns
    return {column.name: _value(row, column) for column in columns}


def _value(row: dict[str, Any], column: Column[Any]) -> Any:
    if column.name in row:
        value = plain(row[column.name])
        return json.loads(clean_json(value)) if isinstance(value, msgspec.Raw) else msgspec.to_builtins(value)
    default = column.server_default
    text = str(default.arg) if isinstance(default, DefaultClause) else None
    if isinstance(column.type, Boolean):
        return text == "true"
    return int(text) if text is not None and isinstance(column.type, Integer) else text


def _version(version: RouterVersion) -> dict[str, Any]:
    return _whole(
        "router_version",
        {
            "id": version.id,
            "kind": version.kind,
            "parent_id": version.parent_id,
            "artifact_hash": version.artifact_hash,
            "config": dict(version.config),
            "state": "serving",
        },
    )


def _cards(decision: dict[str, Any], pool: Pool) -> dict[str, str]:
    """Of the workers that could be chosen, in the order in which they were shown."""
    texts = {worker.name: worker.card for worker in pool.workers if decision["eligible"].get(worker.name, "") is None}
    order = [name for name in decision["card_order"] or () if name in texts]
    return {name: texts[name] for name in [*order, *sorted(set(texts) - set(order))]}


def _prices(pool: Pool) -> dict[str, dict[str, Any]]:
    return {
        worker.name: _whole(
            "price",
            {
                "hash": worker.price_hash,
                "worker": worker.name,
                "input": worker.price.input,
                "output": worker.price.output,
                "cached_input": worker.price.cached_input,
            },
        )
        for worker in pool.workers
        if worker.price is not None
    }
