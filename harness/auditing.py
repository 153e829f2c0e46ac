"""Audits with what only the harness knows: how a stored request of any API becomes a call to a worker.

The engine is `pointsman.probing`; this is its reader, and the runner of `audit` jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Engine

from harness.gateway.surfaces.base import Surface
from harness.gateway.surfaces.served import SURFACES
from pointsman.config import Config
from pointsman.errors import RequestError, UserError
from pointsman.jobs.context import JobContext
from pointsman.jobs.kinds import Audit
from pointsman.probing import runs
from pointsman.probing.asking import Asks, Watch
from pointsman.probing.audit import Audited, audit_live, audit_log, live_name
from pointsman.probing.job import budget_left
from pointsman.probing.judging import judge_as_configured
from pointsman.probing.probe import Terms
from pointsman.probing.reports import audit_figures, audit_lines
from pointsman.upstream.body import Fields
from pointsman.upstream.direct import Direct, Secret
from pointsman.words import Origin

_BY_NAME: Mapping[str, Surface] = {surface.name: surface for surface in SURFACES.values()}
_AUDIT: tuple[Origin, ...] = ("audit",)
_OURS = ("model", "stream", "stream_options", "store", "metadata", "user")
"""Fields that say how a client wants its answer delivered or kept, and nothing of what is asked."""


def read_stored(surface: str, body: bytes) -> Fields | str:
    """What goes to workers for a stored body, or why it cannot be asked again. Counterfactual is the next answer only:
    in the middle of a tool loop the worker that called the tools has to go on."""
    served = _BY_NAME.get(surface)
    if served is None or surface == "embeddings":
        return "surface"
    try:
        request = served.read(body, [], "", datetime.now(UTC)).request
    except RequestError:
        return "unreadable"
    if request.conversation.in_tool_loop:
        return "tool_loop"
    if request.several:
        return "several_answers"
    return {name: value for name, value in request.fields.items() if name not in _OURS}


async def audit(
    from_log: int,
    *,
    config: Config,
    secret: Secret,
    engine: Engine,
    project_id: str,
    name: str,
    seed: int,
    judge: bool,
    terms: Terms,
    watch: Watch,
) -> Audited:
    """`from_log` requests of the log; 0: those that the gateway drew. `name` and `seed` are of runs over the log.

    With `judge` the configured judge then scores what has no score, with what the budget has left; for requests that
    the gateway drew it counts as part of the day's.
    """
    if judge and config.judge is None:
        raise UserError("no judge is configured: [judge] worker names the worker that judges")
    now = datetime.now(UTC)
    async with Direct(config, secret) as asks:
        audited = await _asked(from_log, config, asks, engine, project_id, name, seed, terms, watch, now)
        if not judge:
            return audited
        judged = await judge_as_configured(
            config,
            asks=asks,
            engine=engine,
            project_id=project_id,
            origins=_AUDIT,
            budget=None if terms.budget is None else max(terms.budget - audited.asked.counted, Decimal(0)),
            concurrency=terms.concurrency,
            watch=watch,
        )
        if not from_log:
            runs.charge(engine, project_id, "live", live_name(now), judged.counted)
        return replace(audited, judged=judged)


async def _asked(
    from_log: int,
    config: Config,
    asks: Asks,
    engine: Engine,
    project_id: str,
    name: str,
    seed: int,
    terms: Terms,
    watch: Watch,
    now: datetime,
) -> Audited:
    if not from_log:
        return await audit_live(
            config=config,
            asks=asks,
            engine=engine,
            read=read_stored,
            project_id=project_id,
            terms=terms,
            watch=watch,
            now=now,
        )
    return await audit_log(
        from_log,
        config=config,
        asks=asks,
        engine=engine,
        read=read_stored,
        project_id=project_id,
        name=name,
        seed=seed,
        terms=terms,
        watch=watch,
        now=now,
    )


def run(context: JobContext, params: Audit) -> dict[str, Any]:
    """The runner of `audit` jobs."""
    with context.stage("ask") as stage:
        if not stage.todo:
            return {}
        audited = asyncio.run(
            audit(
                params.from_log,
                config=context.config,
                secret=context.settings.secret,
                engine=context.engine,
                project_id=context.project_id,
                name=params.name or context.job_id,
                seed=params.seed,
                judge=params.judge,
                terms=Terms(params.concurrency, params.per_minute, budget_left(context)),
                watch=context,
            )
        )
    for line in audit_lines(audited):
        context.log(line)
    return audit_figures(audited)
