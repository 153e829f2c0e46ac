"""`pointsman migrate`: the database's schema to the newest revision, or only: is it there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from pointsman.commands.edge import FAILED
from pointsman.commands.options import SETTING_UP, ConfigFile, Json, opened
from pointsman.commands.output import out, print_json, say
from pointsman.errors import StoreError

if TYPE_CHECKING:
    from pointsman.config import Config, Settings

HELP = """Bring the database to the newest schema.

The database is \\[database] url of the configuration, else the embedded
one of the data folder. `up` and `serve` migrate by themselves; this is
for those who do it before a release, and for CI.

Examples:
  pointsman migrate
  pointsman migrate --check      change nothing; exit 1 if it is not current
"""


@dataclass(frozen=True)
class Migration:
    """The revisions before and after, None for a database without a schema, and the package's newest."""

    before: str | None
    after: str | None
    head: str

    @property
    def current(self) -> bool:
        return self.after == self.head


def migrate_command(
    check: Annotated[bool, typer.Option("--check", help="Only say whether it is current.")] = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    settings, read = opened(config)
    done = migration(settings, read, change=not check)
    if json:
        print_json({**asdict(done), "current": done.current})
    else:
        _show(done, check)
    if not done.current:
        raise typer.Exit(FAILED)


def register(app: typer.Typer) -> None:
    """Adds the command `migrate`."""
    app.command("migrate", help=HELP, rich_help_panel=SETTING_UP)(migrate_command)


def migration(settings: Settings, config: Config | None, *, change: bool) -> Migration:
    """Reads the revision, migrates where `change` is true, reads it again."""
    from pointsman.commands.database import store_errors
    from pointsman.database.schema import head_revision, migrate

    with store_errors(), _address(settings, config, start=change) as url:
        before = revision(url)
        if change:
            migrate(url)
        return Migration(before, revision(url) if change else before, head_revision())


def revision(url: str) -> str | None:
    """The revision of the database at `url`."""
    from pointsman.database.engine import make_engine
    from pointsman.database.schema import current_revision

    engine = make_engine(url, application="pointsman-migrate")
    try:
        return current_revision(engine)
    finally:
        engine.dispose()


@contextmanager
def _address(settings: Settings, config: Config | None, *, start: bool) -> Iterator[str]:
    """The database's URL. To look at an embedded one that never ran is no reason to create it."""
    from pointsman.database.embedded import embedded

    if config is not None and config.database.url:
        yield config.database.url
        return
    if not start and not (settings.home / "postgres" / "PG_VERSION").exists():
        raise StoreError(f"there is no database in {settings.home} yet; `pointsman migrate` makes it")
    with embedded(settings.home, pg_bin=settings.environment.get("PG_BIN")) as url:
        yield url


def _show(done: Migration, check: bool) -> None:
    console = out()
    if not done.current:
        say(console, f"at {done.before or 'no revision'}, the newest is {done.head}: run `pointsman migrate`", "red")
    elif check or done.before == done.after:
        say(console, f"at {done.after}, the newest revision")
    else:
        say(console, f"{done.before or 'empty'} → {done.after}")
