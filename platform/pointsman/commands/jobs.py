"""`pointsman jobs`: starting background work, looking at it, ending it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from pointsman.commands.database import log_database
from pointsman.commands.edge import ListsByDefault
from pointsman.commands.jobs_start import START_HELP, kinds_command, start_command
from pointsman.commands.jobs_text import as_json, headline, show_job, show_list
from pointsman.commands.jobs_watch import LOGS_HELP, WATCH_HELP, logs_command, watch_command
from pointsman.commands.options import RUNNING, ConfigFile, Json, opened
from pointsman.commands.output import out, print_json, say

if TYPE_CHECKING:
    from pathlib import Path

    from pointsman.jobs.store import Jobs

HELP = """Start, watch and end background jobs.

A job is a row in Postgres; `pointsman worker` (or `pointsman up`) runs it,
now or when one is next there.

Examples:
  pointsman jobs kinds                               what jobs there are, and their parameters
  pointsman jobs start self-test --set steps=10 --watch
  pointsman jobs                                     the newest
  pointsman jobs show ID
  pointsman jobs cancel ID
  pointsman jobs retry ID                            go on from the last checkpoint
"""
LIST_HELP = """The newest jobs.

Examples:
  pointsman jobs list --state running
  pointsman jobs list --kind self-test --limit 5 --json
"""

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, from `pointsman jobs list`.")]


def list_command(
    kind: Annotated[str | None, typer.Option("--kind", help="Only of this kind.", show_default=False)] = None,
    state: Annotated[str | None, typer.Option("--state", help="Only in this state.", show_default=False)] = None,
    project: Annotated[str | None, typer.Option("--project", help="Only of this project.", show_default=False)] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="ID", help="Older than this one.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 20,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.ids import content_id

    with _jobs(config) as jobs:
        project_id = content_id("project", project) if project is not None else None
        found = jobs.list(project_id=project_id, kind=kind, state=state, before=before, limit=limit)
    if json:
        print_json([as_json(job) for job in found])
    else:
        show_list(found)


def show_command(job_id: JobId, json: Json = False, config: ConfigFile = None) -> None:
    with _jobs(config) as jobs:
        job = jobs.get(job_id)
        artifacts = jobs.artifacts(job_id)
        lines = jobs.logs(job_id)[-10:]
    if json:
        print_json(as_json(job, artifacts))
    else:
        show_job(job, artifacts, lines)


def cancel_command(job_id: JobId, json: Json = False, config: ConfigFile = None) -> None:
    with _jobs(config) as jobs:
        job = jobs.cancel(job_id)
    if json:
        print_json(as_json(job))
    elif job.state == "cancelling":
        say(out(), f"{job.id} is being cancelled; its worker ends it within seconds")
    else:
        say(out(), headline(job))


def retry_command(
    job_id: JobId,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="USD", help="A new budget.", show_default=False)
    ] = None,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.commands.jobs_start import read_budget

    with _jobs(config) as jobs:
        job = jobs.retry(job_id, budget=read_budget(budget))
    if json:
        print_json(as_json(job))
    else:
        say(out(), f"{job.id} is queued again")


def delete_command(job_id: JobId, json: Json = False, config: ConfigFile = None) -> None:
    from pointsman.jobs.cleanup import delete_job
    from pointsman.jobs.workplace import Workplace

    settings, read = opened(config)
    with log_database(settings, read) as engine:
        delete_job(engine, Workplace.read(settings).files(), job_id)
    if json:
        print_json({"id": job_id, "deleted": True})
    else:
        say(out(), f"deleted {job_id}, and what only it had left")


def register(app: typer.Typer) -> None:
    """Adds `jobs kinds, start, list, show, watch, logs, cancel, retry, delete`; `jobs` alone lists."""
    group = typer.Typer(cls=ListsByDefault, help=HELP)
    group.command("kinds", help="What jobs there are; with a name, its parameters.")(kinds_command)
    group.command("start", help=START_HELP)(start_command)
    group.command("list", help=LIST_HELP)(list_command)
    group.command("show", help="One job: state, progress, cost, result, files, last lines.")(show_command)
    group.command("watch", help=WATCH_HELP)(watch_command)
    group.command("logs", help=LOGS_HELP)(logs_command)
    group.command("cancel", help="End a job: at once where it waits, within seconds where it runs.")(cancel_command)
    group.command("retry", help="Queue a failed, cancelled or dead job again; its checkpoints count.")(retry_command)
    group.command("delete", help="Remove a job that has ended, its lines and its files.")(delete_command)
    app.add_typer(group, name="jobs", rich_help_panel=RUNNING)


@contextmanager
def _jobs(config: Path | None) -> Iterator[Jobs]:
    from pointsman.jobs.store import Jobs

    with log_database(*opened(config)) as engine:
        yield Jobs(engine)
