"""`pointsman jobs watch` and `logs`: a job followed to its end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from pointsman.commands.database import log_database
from pointsman.commands.edge import FAILED
from pointsman.commands.jobs_text import as_json, headline, show_line
from pointsman.commands.options import ConfigFile, Json, opened
from pointsman.commands.output import notes, out, print_json, say

if TYPE_CHECKING:
    from pointsman.jobs.store import Jobs

WATCH_HELP = """Follow a job to its end.

Ctrl-C stops looking; the job goes on.

Exit codes: 0 it is done, or was skipped; 1 it ended otherwise.
"""
LOGS_HELP = """What a job said, oldest first; with --follow, until it ends."""
LOOK_SECONDS = 0.5
WAIT_NOTICE_SECONDS = 5.0

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, from `pointsman jobs list`.")]


def watch_command(job_id: JobId, json: Json = False, config: ConfigFile = None) -> None:
    from pointsman.jobs.store import Jobs

    with log_database(*opened(config)) as engine:
        watch_job(Jobs(engine), job_id, as_json_value=json)


def logs_command(
    job_id: JobId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until the job ends.")] = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from dataclasses import asdict

    from pointsman.jobs.store import Jobs

    with log_database(*opened(config)) as engine:
        jobs = Jobs(engine)
        jobs.get(job_id)
        if json:
            print_json([asdict(line) for line in jobs.logs(job_id)])
        else:
            _follow(jobs, job_id, once=not follow)


def watch_job(jobs: Jobs, job_id: str, *, as_json_value: bool) -> None:
    """A line at each change, the job itself at its end as JSON where that is asked for."""
    job = jobs.get(job_id)
    began, said, noticed = time.monotonic(), "", False
    while True:
        if (line := headline(job)) != said and not as_json_value:
            say(out(), line)
            said = line
        if job.finished:
            break
        if job.state == "queued" and not noticed and time.monotonic() - began > WAIT_NOTICE_SECONDS:
            say(notes(), "it waits: is a worker running? `pointsman worker` starts one", "yellow")
            noticed = True
        time.sleep(LOOK_SECONDS)
        job = jobs.get(job_id)
    if as_json_value:
        print_json(as_json(job, jobs.artifacts(job_id)))
    if job.state not in ("done", "skipped"):
        raise typer.Exit(FAILED)


def _follow(jobs: Jobs, job_id: str, *, once: bool) -> None:
    after: str | None = None
    while True:
        ended = jobs.get(job_id).finished  # asked first, so that nothing said before its end is missed
        lines = jobs.logs(job_id, after)
        for line in lines:
            show_line(line)
            after = line.id
        if not lines and (once or ended):
            return
        if not lines:
            time.sleep(LOOK_SECONDS)
