"""The log's database for the length of a command, its failures turned into `StoreError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pointsman.errors import ConfigError, StoreError, UserError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from pointsman.config import Config, Settings


@contextmanager
def store_errors() -> Iterator[None]:
    """Failures of the database within the block as errors that a person can act on."""
    from sqlalchemy.exc import ArgumentError, OperationalError

    try:
        yield
    except ArgumentError:
        raise ConfigError(["database.url: expected postgresql://user:password@host:port/database"]) from None
    except OperationalError as error:
        raise StoreError(f"the database does not answer: {str(error.orig).strip()}") from None


@contextmanager
def log_database(settings: Settings, config: Config | None) -> Iterator[Engine]:
    """An engine on the migrated database of the log; the embedded server must have been used before."""
    from pointsman.database.engine import make_engine
    from pointsman.database.open import database_url

    configured = config is not None and config.database.url
    if not configured and not (settings.home / "postgres" / "PG_VERSION").exists():
        raise UserError(f"there is no log in {settings.home} yet: start with `pointsman up`, or set POINTSMAN_HOME")
    with store_errors(), database_url(settings, config) as url:
        engine = make_engine(url, application="pointsman-command")
        try:
            yield engine
        finally:
            engine.dispose()
