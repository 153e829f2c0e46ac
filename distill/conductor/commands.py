"""`pointsman conductor`: fetch a trained conductor, serve it, have it plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pointsman.commands.asking import DEFAULT_PROJECT, Project
from pointsman.commands.options import ConfigFile, opened
from pointsman.commands.output import notes, say
from pointsman.errors import UserError

PANEL = "Learn"
HELP = """A learned conductor: a small language model that writes workflows.

Trained by jobs, each on what the one before left (`pointsman jobs kinds NAME`
says what each takes):
  pointsman jobs start conductor_data --set source=sandbox
  pointsman jobs start conductor_sft --set data=JOB --set base=tiny
  pointsman jobs start conductor_grpo --set start=JOB

Then:
  pointsman conductor fetch JOB my-conductor
  pointsman conductor serve my-conductor --port 8795
and in pointsman.toml a section [conductor] with its address.
"""
Folder = Annotated[Path, typer.Argument(help="The conductor's folder.")]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    group = typer.Typer(help=HELP, no_args_is_help=True)
    group.command("fetch")(fetch_command)
    group.command("serve")(serve_command)
    app.add_typer(group, name="conductor", rich_help_panel=PANEL)


def fetch_command(
    job: Annotated[str, typer.Argument(help="A conductor_sft or conductor_grpo job: its id, or how it begins.")],
    folder: Folder,
    project: Project = DEFAULT_PROJECT,
    config: ConfigFile = None,
) -> None:
    """Write the conductor that a job trained to a folder, its files checked by their hashes."""
    from distill.conductor.storing import fetch_folder, job_of
    from pointsman.commands.database import log_database
    from pointsman.identity import ensure_project
    from pointsman.jobs.files import artifact_store

    settings, read = opened(config)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: expected a new or empty folder")
    with log_database(settings, read) as engine:
        with engine.begin() as connection:
            owner = ensure_project(connection, project)
        found = job_of(engine, owner, job, "conductor_sft", "conductor_grpo")
        files = artifact_store(settings, read.jobs.artifacts if read is not None else None)
        fetch_folder(engine, files, found, folder)
    say(notes(), f"{folder}: the conductor of job {found}", "dim")


def serve_command(
    folder: Folder,
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="On loopback.")] = 8795,
    constrained: Annotated[bool, typer.Option("--constrained", help="Write nothing that is no plan.")] = False,
) -> None:
    """Serve a conductor by OpenAI's API on this machine, until Ctrl-C.

    Example: pointsman conductor serve my-conductor --port 8795
    """
    import uvicorn

    from distill.conductor.server import Planner, app

    planner = Planner(folder, constrained=constrained)
    say(notes(), f"{planner.name} at http://127.0.0.1:{port}/v1", "dim")
    uvicorn.run(app(planner), host="127.0.0.1", port=port, log_level="warning")
