"""What commands that act on a running Pointsman share: who acts, on which project, and what serves there now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from pointsman.commands.database import log_database
from pointsman.commands.options import opened

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from pointsman.actions.actor import Actor
    from pointsman.config import Config, Settings

Project = Annotated[str, typer.Option("--project", help="The project.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; kept with the record.", show_default=False)]
Version = Annotated[str, typer.Argument(metavar="VERSION", help="A router version's id, or its first 8 characters.")]
DEFAULT_PROJECT = "default"


@dataclass(frozen=True)
class Place:
    """Where a command acts. `now` is read once."""

    settings: Settings
    config: Config | None
    engine: Engine
    project: str
    actor: Actor
    now: datetime

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """One transaction."""
        from pointsman.commands.database import store_errors

        with store_errors(), self.engine.begin() as connection:
            yield connection

    @property
    def needed(self) -> Config:
        from pointsman.commands.asking import needed

        return needed(self.settings, self.config)

    def cards_hash(self) -> str | None:
        """Of the descriptions that the gateway has from the file; None where no gateway answers."""
        from pointsman.commands.client import GatewayClient

        reply = GatewayClient.of(self.settings, self.config).readiness()
        found = reply.content.get("cards") if reply is not None else None
        return found if isinstance(found, str) else None

    def serving(self) -> str | None:
        """The router version that the gateway says it serves; None where no gateway answers, or for another project."""
        from pointsman.commands.client import GatewayClient, GatewayError
        from pointsman.identity import DEFAULT_PROJECT_ID

        if self.project != DEFAULT_PROJECT_ID:
            return None  # the command line's key belongs to the default project
        try:
            reply = GatewayClient.of(self.settings, self.config).get("/v1/models/pointsman")
        except GatewayError:
            return None
        version = reply.content.get("pointsman", {}).get("version") if reply.status == 200 else None
        return version if isinstance(version, str) else None


@contextmanager
def place(config: Path | None, project: str) -> Iterator[Place]:
    """Opens the log for an action; the project is made where there is none."""
    from pointsman.identity import ensure_project

    settings, read = opened(config)
    with log_database(settings, read) as engine:
        with engine.begin() as connection:
            project_id = ensure_project(connection, project)
        yield Place(settings, read, engine, project_id, operator(), datetime.now(UTC))


def operator() -> Actor:
    """Whoever has the data folder: the account of this machine, as an admin."""
    import os
    import pwd

    from pointsman.actions.actor import Actor

    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = f"uid {os.getuid()}"
    return Actor(name, "admin")
