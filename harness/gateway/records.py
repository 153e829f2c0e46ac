"""One decision whole, from Postgres or, while it is on its way there, from this process's memory."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from harness.gateway.feedback import is_young
from harness.gateway.recent import Entry
from harness.gateway.state import State
from pointsman.queries import decision_record, find_decision

YOUNG_WAIT_SECONDS = 2.0
POLL_SECONDS = 0.1


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
        return await asyncio.to_thread(find_decision, state.engine, project, completion_id)
    except SQLAlchemyError:
        return None


async def _stored(state: State, project: str | None, decision_id: str) -> dict[str, Any] | None:
    if not state.database_up:
        return None
    try:
        return await asyncio.to_thread(decision_record, state.engine, project, decision_id)
    except SQLAlchemyError:
        return None


def _rendered(state: State, entry: Entry) -> dict[str, Any]:
    """The same shape as a stored record, from the rows that went to the journal."""
    pool = state.generation.pool
    same_pool = entry.decision.get("pool_hash") == pool.hash
    version = next(
        (
            router.version
            for router in state.generation.chain.routers
            if router.version.id == entry.decision.get("router_version_id")
        ),
        None,
    )
    record = {
        "decision": entry.decision,
        "request": entry.request,
        "calls": entry.calls,
        "outcome": entry.outcome,
        "feedback": entry.feedback,
        "router_version": None
        if version is None
        else {
            "id": version.id,
            "kind": version.kind,
            "artifact_hash": version.artifact_hash,
            "parent_id": version.parent_id,
            "state": "serving",
        },
        "cards": {worker.name: worker.card for worker in pool.workers} if same_pool else {},
        "children": [],
    }
    rendered: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record))
    return rendered
