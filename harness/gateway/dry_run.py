"""`POST /v1/route`: a decision without a call, logged as a dry run and never learned from."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from harness.gateway.access import Caller, Headers
from harness.gateway.decide import Decision, decide
from harness.gateway.log_rows import log_rows
from harness.gateway.recent import Entry
from harness.gateway.request import ChatRequest, parse_chat
from harness.gateway.rows import decision_row, episode_row, request_row
from harness.gateway.state import State
from harness.gateway.teams.dry import foretell_team
from harness.gateway.teams.names import asked_for
from harness.gateway.teams.opening import Asked
from pointsman.ids import new_id
from pointsman.journal.lines import TableRow
from pointsman.upstream.price import cost
from pointsman.upstream.usage import Usage

OUTPUT_GUESS = 300
"""Tokens of output that a forecast assumes where the request sets no limit."""


async def dry_run(state: State, caller: Caller, body: bytes, headers: Headers) -> tuple[str, dict[str, Any]]:
    """The decision's id, and what would have happened: choice, probabilities, expected cost and latency."""
    chat = parse_chat(body, headers)
    episode = await state.episodes.find(caller, chat.conversation, chat.hints.episode_id)
    if names := asked_for(chat, state.generation):
        ids = (new_id(), new_id())
        asked = Asked(caller, chat, episode, state.generation, names, ids, body, datetime.now(UTC), 0.0)
        return ids[0], await foretell_team(state, asked)
    decision = await decide(
        chat,
        caller,
        episode,
        state.generation,
        state.breaker,
        state.rng,
        ids=(new_id(), new_id()),
        origin="dry_run",
    )
    await _log(state, caller, chat, decision, body)
    if state.tracing is not None:
        trace = state.tracing.begin(decision.id, headers)
        trace.decided(decision, "route", "ok", model=chat.model, seconds=_since(decision), http_status=200)
    return decision.id, _foretold(state, chat, decision)


async def _log(state: State, caller: Caller, chat: ChatRequest, decision: Decision, body: bytes) -> None:
    stored = decision.generation.config.log.store_text and chat.store
    row = request_row(
        decision.request_id,
        caller,
        decision.decided_at,
        episode_id=decision.episode.id,
        request=chat,
        body=state.redactor.json(body) if stored else None,
        redactor=state.redactor,
    )
    row |= {"surface": "route", "learn": False}
    made = decision_row(decision, caller, state.redactor, stored=stored)
    rows: list[TableRow] = [
        episode_row(decision.episode, decision.decided_at, caller, state.redactor),
        ("request", row),
        ("decision", made),
    ]
    await log_rows(state, rows)
    state.recent.add(decision.id, Entry(caller.project_id, decision.episode.id, chat.size, made, request=row))


def _foretold(state: State, chat: ChatRequest, decision: Decision) -> dict[str, Any]:
    output = chat.output_tokens or OUTPUT_GUESS
    usage = Usage(chat.prompt_tokens, output, estimated=True)
    scored = decision.decided.scored if decision.decided else None
    return {
        "dry_run": True,
        "decision_id": decision.id,
        "episode_id": decision.episode.id,
        "pattern": "single",
        "worker": decision.draw.chosen,
        "propensity": decision.propensity,
        "probabilities": decision.draw.probabilities,
        "scores": scored.scores if scored else None,
        "parse_status": scored.parse_status if scored else None,
        "explored": decision.draw.explored,
        "forced": decision.draw.forced,
        "router": decision.router,
        "fail_open": decision.decided.fail_open if decision.decided else (),
        "pool_hash": decision.generation.pool.hash,
        "eligible": decision.eligibility.reasons,
        "expected": {
            worker.name: {
                "cost_usd": _number(cost(usage, worker.price)),
                "latency_ms": state.latencies.get(worker.name),
                "input_tokens": chat.prompt_tokens,
                "output_tokens": output,
            }
            for worker in decision.eligibility.workers
        },
    }


def _since(decision: Decision) -> float:
    return (datetime.now(UTC) - decision.decided_at).total_seconds()


def _number(amount: Decimal | None) -> str | None:
    return None if amount is None else format(amount, "f")
