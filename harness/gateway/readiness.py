"""Whether this process can serve and log, and what is away."""

from __future__ import annotations

from typing import Any

from harness.gateway.state import State

NEAR_FULL = 0.95
_TOLD = ("kind", "worker", "message", "raised_at")
"""Of an alarm: this is for everybody who may ask whether we are ready."""


def readiness(state: State) -> tuple[bool, dict[str, Any]]:
    """(ready, details). In spool mode a database that is away is said, and does not make it unready."""
    generation = state.generation
    limit = state.journal.max_bytes
    near_full = state.journal.waiting >= NEAR_FULL * limit
    strict_away = generation.config.log.mode == "strict" and not state.database_up
    ready = not (state.stopping or near_full or strict_away)
    return ready, {
        "status": "ready" if ready else "not ready",
        "database": "ok" if state.database_up else "away",
        "log_mode": generation.config.log.mode,
        "journal": {
            "waiting_bytes": state.journal.waiting,
            "waiting_lines": state.journal.waiting_lines,
            "limit_bytes": limit,
            "rows_lost": state.journal.lost,
        },
        "stopping": state.stopping,
        "generation": generation.number,
        "configuration": generation.hash,
        "cards": generation.pool.cards_hash,
        "simulation": generation.config.sandbox is not None,
        "alarms": [{name: alarm[name] for name in _TOLD} for alarm in state.alarms],
        "notes": list(generation.notes),
        "workers": {
            worker.name: "ok" if state.breaker.healthy(worker.name) else "unhealthy"
            for worker in generation.pool.workers
        },
    }
