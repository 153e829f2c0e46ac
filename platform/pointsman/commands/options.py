"""Options that several commands share, and how they become settings and configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pointsman.config import Config, Settings

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="The configuration file. Default: $POINTSMAN_CONFIG, else ./pointsman.toml.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value in place of tables.")]

ASKING = "Ask and look"
SETTING_UP = "Set up"
RUNNING = "Run"
DATA = "Data"
"""The panels of `pointsman --help`."""


def opened(config: Path | None) -> tuple[Settings, Config | None]:
    """Settings, and the configuration where its file exists. A file that was named must exist."""
    from pointsman.config import Settings, load_config

    settings = Settings.read(config=config)
    named = config is not None or bool(settings.environment.get("POINTSMAN_CONFIG"))
    if not named and not settings.config_file.exists():
        return settings, None
    return settings, load_config(settings.config_file)
