"""The runner of `probe` jobs: a tasks file in the data folder, every worker, every task."""

from __future__ import annotations

import asyncio
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from pointsman.config import Settings
from pointsman.errors import UserError
from pointsman.jobs.context import JobContext
from pointsman.jobs.kinds import Probe
from pointsman.probing.asking import Asked
from pointsman.probing.probe import Terms, probe
from pointsman.probing.reports import asked_figures, asked_lines
from pointsman.probing.tasks import ProbeTask, read_tasks
from pointsman.upstream.direct import Direct

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}\.jsonl")


def run(context: JobContext, params: Probe) -> dict[str, Any]:
    """Probes; the result has the figures that the command prints."""
    tasks = read_tasks(tasks_file(context.settings, params.file))
    with context.stage("ask") as stage:
        if not stage.todo:
            return {}
        asked = asyncio.run(_probe(context, params, tasks))
    for line in asked_lines(asked):
        context.log(line)
    return asked_figures(asked)


def tasks_file(settings: Settings, name: str) -> Path:
    """A file of tasks by its name in the data folder's `tasks`: a job's parameters name no other place."""
    if not _FILE.fullmatch(name):
        raise UserError(f"file: expected the name of a .jsonl file in {settings.home / 'tasks'}, got {name!r}")
    return settings.home / "tasks" / name


def budget_left(context: JobContext) -> Decimal | None:
    """What the job may still spend, None where it has no budget."""
    if context.held.budget is None:
        return None
    return max(context.held.budget - context.spend(Decimal(0)), Decimal(0))


async def _probe(context: JobContext, params: Probe, tasks: list[ProbeTask]) -> Asked:
    async with Direct(context.config, context.settings.secret) as asks:
        return await probe(
            tasks,
            config=context.config,
            asks=asks,
            engine=context.engine,
            project_id=context.project_id,
            name=params.name or context.job_id,
            repeats=params.repeats,
            workers=params.workers,
            terms=Terms(params.concurrency, params.per_minute, budget_left(context)),
            watch=context,
        )
