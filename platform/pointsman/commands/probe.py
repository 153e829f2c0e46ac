"""`pointsman probe`: every worker answers every task of a file, and the tasks' verifiers score the answers."""

from __future__ import annotations

from pathlib import Path
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
    from pointsman.probing.asking import Asked
    from pointsman.probing.probe import Terms
    from pointsman.probing.tasks import ProbeTask

HELP = """Ask every worker every task of a file, and score the answers by its verifiers.

FILE is JSON, one task a line:

  {"id": "1", "prompt": "What is 2 + 2?", "verifier": {"kind": "numeric", "value": 4}}

with `messages` in place of `prompt` for a chat, and `task` and `split` as
labels. The answers go to the log as full-information rows: the cold start of
a router, the repeats that show how much luck is in a score, and the canary
set that notices a provider's silent change.

A run has a name. Under it the same tasks go on where they stopped, and only
what has no answer is asked; under another name all is asked anew.

Examples:
  pointsman sandbox tasks --n 200 > tasks.jsonl
  pointsman probe --tasks tasks.jsonl --repeats 2
  pointsman probe --tasks canary.jsonl --name canary-$(date +%F) --budget 0.50
  pointsman probe --tasks tasks.jsonl --workers small,large --per-minute 60 --job

Exit codes: 0 every answer is there; 1 some are missing; 2 a mistake in what
was given.
"""


def probe_command(
    tasks: Annotated[Path, typer.Option("--tasks", metavar="FILE", help="Tasks, one JSON object a line.")],
    repeats: Annotated[int, typer.Option("--repeats", min=1, max=100, help="Answers of each worker to each.")] = 1,
    workers: Annotated[
        str | None, typer.Option("--workers", metavar="A,B", help="Which ones. Default: all that chat.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Names the run. Default: the file's name.")] = None,
    budget: Budget = None,
    concurrency: Concurrency = 8,
    per_minute: PerMinute = None,
    project: Project = DEFAULT_PROJECT,
    job: AsJob = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    import asyncio

    from pointsman.commands.asking import start_job
    from pointsman.commands.jobs_start import read_budget
    from pointsman.probing.probe import Terms
    from pointsman.probing.reports import asked_figures, asked_lines
    from pointsman.probing.tasks import read_tasks

    settings, read = opened(config)
    known, limit = needed(settings, read), read_budget(budget)
    chosen = [part.strip() for part in (workers or "").split(",") if part.strip()]
    found, run_name = read_tasks(tasks), name or tasks.stem
    terms = Terms(concurrency, rate(per_minute), limit)
    if job:
        params = {"file": _kept(settings, tasks), "name": run_name, "repeats": repeats, "workers": chosen}
        more = {"concurrency": concurrency, "per_minute": terms.per_minute}
        start_job(settings, known, "probe", {**params, **more}, project, limit)
        return
    asked = asyncio.run(_probe(settings, known, found, run_name, repeats, chosen, terms, project))
    show_run(asked_figures(asked), asked_lines(asked), json=json)


def register(app: typer.Typer) -> None:
    """Adds the command `probe`."""
    app.command("probe", help=HELP, rich_help_panel=DATA)(probe_command)


async def _probe(
    settings: Settings,
    config: Config,
    tasks: list[ProbeTask],
    name: str,
    repeats: int,
    workers: list[str],
    terms: Terms,
    project: str,
) -> Asked:
    from pointsman.commands.database import log_database
    from pointsman.identity import ensure_project
    from pointsman.probing.probe import probe
    from pointsman.upstream.direct import Direct

    with log_database(settings, config) as engine, bar("asking") as watch:
        with engine.begin() as connection:
            project_id = ensure_project(connection, project)
        async with Direct(config, settings.secret) as asks:
            return await probe(
                tasks,
                config=config,
                asks=asks,
                engine=engine,
                project_id=project_id,
                name=name,
                repeats=repeats,
                workers=workers,
                terms=terms,
                watch=watch,
            )


def _kept(settings: Settings, tasks: Path) -> str:
    """The tasks where a job finds them, under a name that is their content."""
    from pointsman.hashing import text_hash

    content = tasks.read_text(encoding="utf-8")
    folder = settings.home / "tasks"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{text_hash(content)}.jsonl"
    file.write_text(content, encoding="utf-8")
    return file.name
