"""The runner of `gates` jobs: one look at every gate that runs. `pulse` starts one when a gate has rows to take."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from pointsman.drift.alarms import notify
from pointsman.jobs.context import JobContext
from pointsman.jobs.kinds import Gates
from pointsman.promotion.process import process_open_gates


def run(context: JobContext, params: Gates) -> dict[str, Any]:
    with context.stage("look"):
        return _look(context, datetime.now(UTC))


def _look(context: JobContext, now: datetime) -> dict[str, Any]:
    config = context.place.config
    looked = process_open_gates(context.engine, now)
    url = None if config is None else context.settings.secret(config.alarms.webhook_env)
    sent, _ = notify(context.engine, url, now) if url and any(one.state == "rolled_back" for one in looked) else (0, 0)
    return {"gates": [asdict(one) for one in looked], "alarms_sent": sent}
