"""`pointsman audit`: all eligible workers answer logged requests. It needs the gateway's surfaces to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pointsman.commands.asking import (
    DEFAULT_PROJECT,
    AsJob,
    Budget,
    Concurrency,
    PerMinute,
    Project,
    bar,
    needed,
    rate,
    show_run,
)
from pointsman.commands.options import DATA, ConfigFile, Json, opened

if TYPE_CHECKING:
    from pointsman.config import Config, Settings
    from pointsman.probing.audit import Audited
    from pointsman.probing.probe import Terms

HELP = """Ask all eligible workers logged requests, so that routers can be compared exactly.

With --from-log N, N requests are drawn at random from the log. Without it
those are asked that the gateway drew while it served (\\[audit] rate), as far
as the day's \\[audit] budget reaches.

Only what may be learned from is sent, and only to workers that could have
answered it: requests stored with their text, routed by a draw, not in the
middle of a tool loop, not redacted, of keys that let their requests be
learned from. No verifier knows what is right of such requests: with --judge
the LLM of \\[judge] scores the answers, in its own units.

Examples:
  pointsman audit --from-log 300 --budget 2
  pointsman audit --from-log 300 --name may --seed 5     the same name goes on
  pointsman audit --job

Exit codes: 0 every answer is there; 1 some are missing; 2 a mistake in what
was given.
"""


def audit_command(
    from_log: Annotated[
        int, typer.Option("--from-log", metavar="N", min=0, help="Requests of the log. 0: what the gateway drew.")
    ] = 0,
    name: Annotated[
        str | None, typer.Option("--name", help="Names a run over the log. Default: a new one.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another one draws other requests.")] = 1,
    judge: Annotated[bool, typer.Option("--judge", help="Then let the configured judge score the answers.")] = False,
    budget: Budget = None,
    concurrency: Concurrency = 8,
    per_minute: PerMinute = None,
    project: Project = DEFAULT_PROJECT,
    job: AsJob = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    import asyncio
    from datetime import UTC, datetime

    from pointsman.commands.asking import start_job
    from pointsman.commands.jobs_start import read_budget
    from pointsman.probing.probe import Terms
    from pointsman.probing.reports import audit_figures, audit_lines

    settings, read = opened(config)
    known, limit = needed(settings, read), read_budget(budget)
    terms = Terms(concurrency, rate(per_minute), limit)
    if job:
        params = {"from_log": from_log, "name": name, "seed": seed, "judge": judge, "concurrency": concurrency}
        start_job(settings, known, "audit", {**params, "per_minute": terms.per_minute}, project, limit)
        return
    run_name = name or f"{datetime.now(UTC):%Y-%m-%dT%H.%M.%S.%f}"
    audited = asyncio.run(_audit(settings, known, from_log, run_name, seed, judge, terms, project))
    show_run(audit_figures(audited), audit_lines(audited), json=json)


def register(app: typer.Typer) -> None:
    """Adds the command `audit`."""
    app.command("audit", help=HELP, rich_help_panel=DATA)(audit_command)


async def _audit(
    settings: Settings, config: Config, from_log: int, name: str, seed: int, judge: bool, terms: Terms, project: str
) -> Audited:
    from harness.auditing import audit
    from pointsman.commands.database import log_database
    from pointsman.identity import ensure_project

    with log_database(settings, config) as engine, bar("asking") as watch:
        with engine.begin() as connection:
            project_id = ensure_project(connection, project)
        return await audit(
            from_log,
            config=config,
            secret=settings.secret,
            engine=engine,
            project_id=project_id,
            name=name,
            seed=seed,
            judge=judge,
            terms=terms,
            watch=watch,
        )
