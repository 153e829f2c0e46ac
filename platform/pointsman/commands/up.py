"""`pointsman up`: everything on one machine, for trying it out: database, sandbox, gateway, dashboard, a few requests.

It only starts the other commands as processes and watches them, so nothing here imports the rooms
above. Ctrl-C stops all of it; the data stays in the home.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FIRST_REQUESTS = 12


def register(app: typer.Typer) -> None:
    app.command("up", rich_help_panel="Run")(up_command)


def up_command(
    config: Annotated[Path | None, typer.Option(help="The configuration file; absent: the home's sandbox.")] = None,
    seed: Annotated[int, typer.Option(help="The sandbox's world, where no configuration exists yet.")] = 1,
    requests: Annotated[int, typer.Option(min=0, help="Requests to send at the start.")] = FIRST_REQUESTS,
    exit_after_start: Annotated[bool, typer.Option(help="Stop again as soon as everything has started.")] = False,
) -> None:
    """Start everything on this machine: database, sandbox workers, gateway, dashboard. Ctrl-C stops it.

    Without a pointsman.toml it writes one for the sandbox, a simulation that needs no keys.

    Example: POINTSMAN_PORT=9000 pointsman up
    """
    from pointsman.commands.up_run import up
    from pointsman.config import Settings

    up(Settings.read(config=config), seed=seed, requests=requests, stay=not exit_after_start)
