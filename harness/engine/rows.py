"""The log's rows for a node: its decision, its calls, its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from harness.engine.deciders import Choice, Written
from harness.engine.request import Message
from harness.engine.state import Node, State
from harness.engine.workers import CallRow
from harness.routing.eligibility import Eligibility
from harness.routing.exploration import Draw
from pointsman.words import CallPurpose, OutcomeStatus

RAW_REPLY_CHARS = 8_000

Row = dict[str, Any]


def decision_row(state: State, node: Node, parent_id: str | None, hashes: Mapping[str, str | None]) -> Row:
    """What every decision has. `hashes` are the pool's and the cards'."""
    request = state.request
    return {
        "id": node.id,
        "project_id": request.project_id,
        "request_id": request.id,
        "episode_id": request.episode_id,
        "parent_id": parent_id,
        "turn": node.turn,
        "step": node.step,
        "pattern": state.pattern,
        "kind": node.kind,
        "origin": request.origin,
        "decided_at": datetime.now(UTC),
        "eligible": {},
        **hashes,
    }


def drawn(draw: Draw) -> Row:
    """The columns of a draw."""
    return {
        "probabilities": draw.probabilities,
        "chosen": draw.chosen,
        "propensity": draw.probabilities[draw.chosen],
        "draw": list(draw.draw) or None,
        "explored": draw.explored,
        "forced": draw.forced,
    }


def chosen(choice: Choice, eligible: Eligibility) -> Row:
    """The columns of a worker's choice: the whole vector, and all that is known of who scored."""
    row: Row = {"eligible": eligible.reasons, **drawn(choice.draw), "scores": dict(choice.scores) or None}
    if choice.role is not None:
        row |= {"role": choice.role.role, "roles": choice.role.row()}
    decided = choice.decided
    if decided is not None:
        scored = decided.scored
        said = next((failure for failure in decided.failures if failure.raw_reply is not None), scored)
        tokens = router_tokens(choice)
        row |= {
            "router_version_id": decided.router.version.id,
            "router_kind": decided.router.kind,
            "template_hash": scored.template_hash,
            "card_order": list(said.card_order) or None,
            "parse_status": said.parse_status,
            "raw_reply": said.raw_reply,
            "fail_open": list(decided.fail_open) or None,
            "router_input_tokens": tokens[0],
            "router_output_tokens": tokens[1],
            "router_cost": router_cost(choice),
            "router_ms": round(decided.seconds * 1000, 3),
            "flags": list(scored.flags) or None,
        }
    elif choice.role is not None:
        tokens = router_tokens(choice)
        row |= {
            "router_input_tokens": tokens[0],
            "router_output_tokens": tokens[1],
            "router_cost": router_cost(choice),
        }
    return row | dict(choice.fields)


def written(node: Node, said: Written, eligible: Eligibility, template_hash: str) -> Row:
    """The columns of what an orchestrator wrote."""
    return {
        "eligible": eligible.reasons,
        "template_hash": template_hash,
        "card_order": list(node.options.values()) or None,
        "raw_reply": None if said.text is None else said.text[:RAW_REPLY_CHARS],
        "fail_open": [f"orchestrator:{said.fault}"] if said.fault else None,
        "router_input_tokens": said.usage.input_tokens,
        "router_output_tokens": said.usage.output_tokens,
        "router_cost": said.usage.cost,
        "router_ms": said.milliseconds,
    }


def call_row(state: State, node: Node, row: CallRow, messages: list[Message], purpose: CallPurpose) -> Row:
    """A provider request with the exact messages that its worker saw; NULL where they are the request's own."""
    request = state.request
    return {
        **row,
        "project_id": request.project_id,
        "decision_id": node.id,
        "request_id": request.id,
        "purpose": "rollout" if request.origin == "rollout" else purpose,
        "messages": None if messages == request.messages else messages,
    }


def orchestrator_call(state: State, node: Node, said: Written, messages: list[Message], call_id: str) -> Row:
    """An orchestrator's text as a call of purpose `route`; its tokens and cost stand on the decision alone."""
    row: CallRow = {
        "id": call_id,
        "worker": said.model or "none",
        "attempt": 1,
        "started_at": datetime.now(UTC),
        "completion": said.text,
        "status": "ok" if said.fault is None else "timeout" if said.fault == "timeout" else "error",
        "fault": said.fault,
        "latency_ms": said.milliseconds,
    }
    return call_row(state, node, row, messages, "route") | {"purpose": "route"}


def outcome_row(
    state: State,
    node_id: str,
    status: OutcomeStatus,
    *,
    worker: str | None = None,
    reason: str | None = None,
    score: float | None = None,
    calls: int = 0,
    cost: Decimal | None = Decimal(0),
    first_token_ms: float | None = None,
    latency_ms: float | None = None,
) -> Row:
    """How a decision ended. A node's counts its own calls; the root's those of its whole tree."""
    request = state.request
    return {
        "id": node_id,
        "project_id": request.project_id,
        "decision_id": node_id,
        "episode_id": request.episode_id,
        "origin": request.origin,
        "status": status,
        "worker": worker,
        "score": score,
        "reason": reason,
        "client_closed": status == "client_cancelled",
        "calls": calls,
        "cost": cost,
        "first_token_ms": first_token_ms,
        "latency_ms": latency_ms,
        "ended_at": datetime.now(UTC),
    }


def router_tokens(choice: Choice) -> tuple[int, int]:
    usages = [choice.role.usage] if choice.role is not None else []
    if choice.decided is not None:
        usages += [choice.decided.scored.usage, *(failure.usage for failure in choice.decided.failures)]
    return sum(u.input_tokens or 0 for u in usages), sum(u.output_tokens or 0 for u in usages)


def router_cost(choice: Choice) -> Decimal | None:
    """USD of all routers that were asked; None where one is unknown."""
    usages = [choice.role.usage] if choice.role is not None else []
    if choice.decided is not None:
        usages += [choice.decided.scored.usage, *(failure.usage for failure in choice.decided.failures)]
    total = Decimal(0)
    for usage in usages:
        if usage.cost is None and (usage.input_tokens or usage.output_tokens):
            return None
        total += usage.cost or 0
    return total
