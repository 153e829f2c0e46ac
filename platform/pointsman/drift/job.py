"""The runners of `drift` and `canary` jobs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from pointsman.drift.alarms import notify
from pointsman.drift.canary import observe_day
from pointsman.drift.pool import watch_pool
from pointsman.drift.watch import settle_dial, watch_inputs, watch_workers
from pointsman.jobs.context import JobContext
from pointsman.jobs.kinds import CanaryDay, Drift
from pointsman.probing.job import budget_left, tasks_file
from pointsman.probing.probe import Terms, probe
from pointsman.probing.tasks import read_tasks
from pointsman.promotion.admit import admit_offline
from pointsman.rewards.refresh import judge_of, kept, refresh
from pointsman.rewards.spec import spec_of
from pointsman.upstream.direct import Direct


def run_drift(context: JobContext, params: Drift) -> dict[str, Any]:
    """Every detector once, for the job's project."""
    now, config, project = datetime.now(UTC), context.config, context.project_id
    spec = spec_of(config, params.reward)
    with context.stage("pool"), context.engine.begin() as connection:
        messages = watch_pool(connection, project, now)
    with context.stage("rewards"):
        refresh(context.engine, spec, now, kept=kept(config), judge=judge_of(config))
        with context.engine.begin() as connection:
            messages += watch_workers(connection, project, spec, now)
    with context.stage("mix"), context.engine.begin() as connection:
        messages += watch_inputs(connection, project, now)
        retired = settle_dial(connection, project, now)
        admitted = admit_offline(connection, project, config, now)
    for message in messages:
        context.log(message, "warning")
    with context.stage("alarms"):
        sent = _send(context, now)
    return {"alarms": messages, "dial_retired": retired, "promoted": admitted, "sent": sent}


def run_canary(context: JobContext, params: CanaryDay) -> dict[str, Any]:
    """One day: asks, then compares. Repeated on the same day it goes on where it stopped."""
    now = datetime.now(UTC)
    run = f"canary-{params.file.removesuffix('.jsonl')[:60]}-{now:%Y-%m-%d}"
    with context.stage("ask") as stage:
        if stage.todo:
            asyncio.run(_ask(context, params, run))
    with context.stage("compare"), context.engine.begin() as connection:
        found = observe_day(connection, context.project_id, run, now)
        settle_dial(connection, context.project_id, now)
    for worker, what in found.items():
        context.log(f"{worker}: {what}", "warning" if what == "alarm" else "info")
    return {"run": run, "workers": found, "sent": _send(context, now)}


async def _ask(context: JobContext, params: CanaryDay, run: str) -> None:
    tasks = read_tasks(tasks_file(context.settings, params.file))
    async with Direct(context.config, context.settings.secret) as asks:
        await probe(
            tasks,
            config=context.config,
            asks=asks,
            engine=context.engine,
            project_id=context.project_id,
            name=run,
            repeats=params.repeats,
            terms=Terms(params.concurrency, None, budget_left(context)),
            watch=context,
        )


def _send(context: JobContext, now: datetime) -> int:
    """Sends what was not sent yet; what the webhook refuses is tried again next time."""
    url = context.settings.secret(context.config.alarms.webhook_env)
    if url is None:
        return 0
    sent, failed = notify(context.engine, url, now)
    if failed:
        context.log(f"{failed} alarms could not be sent: the webhook does not take them", "warning")
    return sent
