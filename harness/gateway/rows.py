"""A request's rows: what goes to the journal when it is decided, and when it has ended."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from harness.gateway.access import Caller
from harness.gateway.decide import Decision
from harness.gateway.episodes import Episode
from harness.gateway.request import ChatRequest
from pointsman.hashing import text_hash
from pointsman.journal.lines import TableRow
from pointsman.redaction import Redactor
from pointsman.upstream.price import add
from pointsman.upstream.record import CallRecord
from pointsman.words import OutcomeStatus

SURFACE = "chat.completions"


def request_row(
    request_id: str,
    caller: Caller,
    received_at: datetime,
    *,
    episode_id: str | None = None,
    request: ChatRequest | None = None,
    body: msgspec.Raw | None = None,
    redactor: Redactor | None = None,
) -> dict[str, Any]:
    """The `request` row. `body` is None where no text may be stored, and where the request could not be read."""
    row: dict[str, Any] = {
        "id": request_id,
        "project_id": caller.project_id,
        "key_id": caller.key_id,
        "episode_id": episode_id,
        "received_at": received_at,
        "surface": SURFACE,
        "learn": caller.learn,
    }
    if request is not None and redactor is not None:
        ask, hints = request.conversation.ask, request.hints
        row |= {
            "model": request.model,
            "stream": request.stream,
            "text": redactor.text(ask) if body is not None else None,
            "text_hash": text_hash(ask),
            "body": body,
            "hints": redactor.struct(hints),
            "tags": redactor.value(hints.tags),
            "learn": caller.learn and request.store,
        }
    return row


def decision_row(decision: Decision, caller: Caller, redactor: Redactor, *, stored: bool) -> dict[str, Any]:
    """The `decision` row. Where a prompted router failed before the one that scored, its reply is kept.

    A router's reply may quote the request, so it is kept only where text is `stored`.
    """
    pool, draw, decided = decision.generation.pool, decision.draw, decision.decided
    row: dict[str, Any] = {
        "id": decision.id,
        "project_id": caller.project_id,
        "request_id": decision.request_id,
        "episode_id": decision.episode.id,
        "turn": 0,
        "pattern": "single",
        "kind": "route",
        "origin": decision.origin,
        "decided_at": decision.decided_at,
        "cards_hash": pool.cards_hash,
        "pool_hash": pool.hash,
        "eligible": decision.eligibility.reasons,
        "probabilities": draw.probabilities,
        "chosen": draw.chosen,
        "propensity": decision.propensity,
        "draw": draw.draw or None,
        "explored": draw.explored,
        "forced": draw.forced,
        "audit_rate": decision.audit_rate,
        "audited": decision.audited,
        "flags": decision.flags or None,
        "shadow_picks": decision.picks,
        "gate_id": decision.gate_id,
    }
    if decided is None:
        return row
    scored = decided.scored
    said = next((failure for failure in decided.failures if failure.raw_reply is not None), scored)
    usages = decision.usages
    row |= {
        "router_version_id": decided.router.version.id,
        "router_kind": decided.router.kind,
        "template_hash": scored.template_hash,
        "card_order": said.card_order or None,
        "scores": scored.scores,
        "parse_status": said.parse_status,
        "raw_reply": redactor.text(said.raw_reply) if stored else None,
        "fail_open": decided.fail_open or None,
        "router_input_tokens": _sum(usage.input_tokens for usage in usages) if usages else None,
        "router_output_tokens": _sum(usage.output_tokens for usage in usages) if usages else None,
        "router_cost": decision.router_cost,
        "router_ms": round(decided.seconds * 1000, 3),
    }
    return row


def rejected_decision_row(decision_id: str, request_id: str, caller: Caller, now: datetime) -> dict[str, Any]:
    """A decision that was none: the request was refused before a worker could be chosen."""
    return {
        "id": decision_id,
        "project_id": caller.project_id,
        "request_id": request_id,
        "decided_at": now,
        "eligible": {},
    }


def episode_row(episode: Episode, started_at: datetime, caller: Caller, redactor: Redactor) -> TableRow:
    return (
        "episode",
        {
            "id": episode.id,
            "project_id": caller.project_id,
            "source": episode.source,
            "given": redactor.text(episode.given),
            "fingerprint": episode.fingerprint,
            "started_at": started_at,
        },
    )


def outcome_row(
    decision_id: str,
    caller: Caller,
    status: OutcomeStatus,
    *,
    episode_id: str | None = None,
    records: list[CallRecord] | None = None,
    worker: str | None = None,
    reason: str | None = None,
    client_closed: bool = False,
    http_status: int | None = None,
    latency_ms: float | None = None,
    overhead_ms: float | None = None,
) -> dict[str, Any]:
    """The one `outcome` of a traffic decision; its id is the decision's."""
    cost: Decimal | None = Decimal(0)
    for record in records or ():
        cost = add(cost, record.cost)
    return {
        "id": decision_id,
        "project_id": caller.project_id,
        "decision_id": decision_id,
        "episode_id": episode_id,
        "origin": "traffic",
        "status": status,
        "worker": worker,
        "reason": reason,
        "client_closed": client_closed,
        "http_status": http_status,
        "calls": len(records or ()),
        "cost": cost,
        "first_token_ms": records[-1].first_token_ms if records else None,
        "latency_ms": latency_ms,
        "overhead_ms": overhead_ms,
        "ended_at": datetime.now(UTC),
    }


def _sum(counts: Any) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
