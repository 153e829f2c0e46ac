"""What the dashboard adds to the command line: `pointsman dashboard`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("dashboard", rich_help_panel="Run")(dashboard_command)


def dashboard_command(
    config: Annotated[Path | None, typer.Option(help="The configuration file.")] = None,
) -> None:
    """Serve the dashboard. It listens beyond loopback only with a password or OIDC.

    Example: pointsman dashboard
    """
    from dashboard.launch import command, environment
    from pointsman.config import Settings, load_config

    settings = Settings.read(config=config)
    arguments = command(settings, load_config(settings.config_file))
    os.execvpe(arguments[0], arguments, environment(settings))
