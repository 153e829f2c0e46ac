"""What the harness adds to the command line: `pointsman serve`, `pointsman audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    from harness import commands_audit

    app.command("serve", rich_help_panel="Run")(serve_command)
    commands_audit.register(app)


def serve_command(
    config: Annotated[Path | None, typer.Option(help="The configuration file.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Gateway processes; absent: the file's.")] = None,
) -> None:
    """Serve: gateway processes and the shipper, until Ctrl-C.

    Without a database url in the configuration it starts the embedded PostgreSQL too. Reload with `pointsman reload`.

    Example: pointsman serve --workers 2
    """
    from harness.gateway.serve import serve
    from pointsman.config import Settings
    from pointsman.logs import configure_logging

    configure_logging()
    serve(Settings.read(config=config), workers=workers)
