"""Who owns an episode: the worker that leads it or took it over keeps it from one request to the next.

A worker's prompt cache is worth keeping, so it changes only at a compaction: where the client's conversation has become
much shorter than it was (it was summed up), the cache is lost anyway and whoever is best may go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from harness.engine.memory import Item
from harness.engine.request import tokens_of
from harness.engine.state import State
from pointsman.ids import new_id

COMPACTED = 0.5
"""A conversation with less than this share of its former tokens was compacted."""


@dataclass(frozen=True)
class Owner:
    """`tokens` is how long the conversation was when it was last seen, `compacted` whether it has shrunk since."""

    worker: str
    tokens: int
    compacted: bool


def owner_of(state: State) -> Owner | None:
    """Who owns the episode under this pattern; None at its beginning."""
    for item in reversed(state.recalled):
        if item.kind == "context" and item.content.get("pattern") == state.name and "owner" in item.content:
            before = int(item.content["tokens"])
            now = tokens_of(state.request.messages, {})
            return Owner(str(item.content["owner"]), before, now < COMPACTED * before)
    return None


def owner_item(state: State, worker: str) -> Item:
    """What is kept of who owns the episode now."""
    tokens = tokens_of(state.request.messages, {})
    return context_item(state, worker, {"owner": worker, "tokens": tokens})


def context_item(state: State, worker: str, content: dict[str, Any]) -> Item:
    """Something of a worker's own that outlives the request, under this pattern's name."""
    request = state.request
    return Item(
        id=new_id(),
        project_id=request.project_id,
        episode_id=request.episode_id,
        kind="context",
        content={"pattern": state.name, **content},
        created_at=datetime.now(UTC),
        workflow=state.workflow,
        worker=worker,
    )


def cache_note(state: State, owner: Owner | None) -> dict[str, Any] | None:
    """What a change of worker costs at a compaction: the tokens whose cache is lost, and those to be read anew."""
    if owner is None or not owner.compacted:
        return None
    prefill = tokens_of(state.request.messages, {})
    return {"compaction": {"before": owner.worker, "tokens_before": owner.tokens, "prefill_tokens": prefill}}
