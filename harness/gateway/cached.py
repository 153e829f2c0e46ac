"""Answering from the cache (`[cache]`, off by default): logged like any answer, marked, free, never learned from."""

from __future__ import annotations

from datetime import datetime

from harness.gateway.access import Caller
from harness.gateway.cache import CachedAnswer, cache_key
from harness.gateway.generation import Generation
from harness.gateway.request import ChatRequest
from harness.gateway.responses import Headers, Send, send_json
from harness.gateway.rows import outcome_row, request_row
from harness.gateway.state import State
from pointsman.journal.lines import TableRow

FLAG = "cached"


def key_of(request: ChatRequest, caller: Caller, generation: Generation) -> str | None:
    """The key of a request's answer; None where the cache is off or must not answer it."""
    config = generation.config.cache
    if not config.enabled or request.stream or request.embeddings or not request.store:
        return None
    hints = request.hints
    restrictions = [
        sorted(hints.allowed_workers) if hints.allowed_workers is not None else None,
        sorted(hints.excluded_workers or ()),
        sorted(hints.required_tags or ()),
        str(hints.budget),
        hints.quality,
    ]
    return cache_key(
        request.fields,
        project_id=caller.project_id,
        pool_hash=generation.pool.hash,
        restrictions=restrictions,
        any_temperature=config.any_temperature,
    )


async def answer_from_cache(
    state: State,
    caller: Caller,
    request: ChatRequest,
    known: CachedAnswer,
    ids: tuple[str, str],
    received_at: datetime,
    send: Send,
) -> None:
    """The stored answer under a decision of its own. Raises `StoreError` where it cannot be logged."""
    flags = [FLAG]
    generation = state.generation
    rows: list[TableRow] = [
        (
            "request",
            {
                **request_row(ids[1], caller, received_at, request=request, redactor=state.redactor),
                "learn": False,
                "flags": flags,
            },
        ),
        (
            "decision",
            {
                "id": ids[0],
                "project_id": caller.project_id,
                "request_id": ids[1],
                "decided_at": received_at,
                "pool_hash": generation.pool.hash,
                "cards_hash": generation.pool.cards_hash,
                "eligible": {},
                "chosen": known.worker,
                "flags": [*flags, f"answer_of:{known.decision_id}"],
            },
        ),
        ("outcome", outcome_row(ids[0], caller, "ok", worker=known.worker, reason=FLAG, http_status=200)),
    ]
    state.journal.append(rows)
    state.metrics.ended("ok", known.worker)
    await state.journal.synced()
    await send_json(send, 200, known.body, _headers(known, ids[0]))


def _headers(known: CachedAnswer, decision_id: str) -> Headers:
    return [
        (b"x-pointsman-decision-id", decision_id.encode()),
        (b"x-pointsman-episode-id", b"none"),
        (b"x-pointsman-worker", known.worker.encode()),
        (b"x-pointsman-router", b"none"),
        (b"x-pointsman-pattern", b"single"),
        (b"x-pointsman-propensity", b"0"),
        (b"x-pointsman-cached", b"true"),
    ]
