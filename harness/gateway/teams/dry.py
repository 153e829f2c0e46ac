"""`POST /v1/route` for a pattern: which one would answer, and what it would take, each figure with an interval."""

from __future__ import annotations

from typing import Any

from harness.engine.request import Request
from harness.engine.rows import decision_row
from harness.engine.state import Node
from harness.engine.state import State as RunState
from harness.gateway.decide import ineligible
from harness.gateway.log_rows import log_rows
from harness.gateway.recent import Entry
from harness.gateway.state import State
from harness.gateway.teams.choice import Drawn
from harness.gateway.teams.forecast import Forecast, Span, foretell
from harness.gateway.teams.names import patterns_of
from harness.gateway.teams.opening import Asked, eligible_now, engine_request, opening_rows, refuse_what_no_team_gives
from pointsman.config.model import PatternConfig
from pointsman.journal.lines import TableRow


async def foretell_team(state: State, asked: Asked) -> dict[str, Any]:
    """Logged as a dry run. Where a router chooses the pattern, every one that it may choose is foretold."""
    request, generation = asked.request, asked.generation
    refuse_what_no_team_gives(request)
    seats = eligible_now(state, request, generation)()
    if not seats.workers:
        raise ineligible(seats.reasons)
    drawn = await state.teams.draw(asked.names, generation, request, asked.caller) if len(asked.names) > 1 else None
    name = drawn.name if drawn is not None else asked.names[0]
    patterns = patterns_of(generation.config)
    await _log(state, asked, name, patterns[name], drawn)
    expected = {
        each: _said(
            foretell(
                patterns[each], request.prompt_tokens, request.output_tokens, seats.workers, state.latencies,
                state.teams.tallies.of(each),
            )
        )
        for each in asked.names
    }  # fmt: skip
    root = drawn.root if drawn is not None else {"propensity": 1.0, "probabilities": {name: 1.0}, "scores": None}
    return {
        "dry_run": True,
        "decision_id": asked.ids[0],
        "episode_id": asked.episode.id,
        "pattern": name,
        "kind": patterns[name].pattern,
        "worker": None,
        "propensity": root["propensity"],
        "probabilities": root["probabilities"],
        "scores": root["scores"],
        "forced": None if drawn is not None else "direct",
        "router": drawn.router if drawn is not None else "none",
        "pool_hash": generation.pool.hash,
        "eligible": seats.reasons,
        "expected": expected,
    }


async def _log(state: State, asked: Asked, name: str, pattern: PatternConfig, drawn: Drawn | None) -> None:
    run: Request = engine_request(asked.request, asked.caller, asked.episode, asked.ids, 0, "dry_run")
    root = Node("root", run.root_id, run.id, "pattern")
    pool = asked.generation.pool
    hashes = {"pool_hash": pool.hash, "cards_hash": pool.cards_hash}
    forced = {
        "eligible": {name: None}, "probabilities": {name: 1.0}, "chosen": name, "propensity": 1.0, "forced": "direct",
    }  # fmt: skip
    row = decision_row(RunState(run, pattern.pattern, name), root, None, hashes)
    row |= drawn.root if drawn is not None else forced
    if row.get("raw_reply") is not None:
        row["raw_reply"] = state.redactor.text(row["raw_reply"]) if asked.stored else None
    opening = dict(opening_rows(state, asked, "route"))
    opening["request"]["learn"] = False
    rows: list[TableRow] = [*opening.items(), ("decision", row)]
    await log_rows(state, rows)
    entry = Entry(asked.caller.project_id, asked.episode.id, asked.request.size, row, request=opening["request"])
    state.recent.add(asked.ids[0], entry)


def _said(forecast: Forecast) -> dict[str, Any]:
    return {
        "calls": _span(forecast.calls, 1),
        "cost_usd": {name: format(value, ".9f") for name, value in forecast.usd._asdict().items()},
        "latency_ms": _span(forecast.milliseconds, 1),
        "interval": "the tenth and ninetieth of a hundred runs" if forecast.runs else "what the pattern's shape allows",
        "runs": forecast.runs,
    }


def _span(span: Span, digits: int) -> dict[str, float]:
    return {name: round(value, digits) for name, value in span._asdict().items()}
