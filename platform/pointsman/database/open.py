"""A database for the length of a block: the configured one, or the home's embedded server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pointsman.config import Config, Settings
from pointsman.database.embedded import EmbeddedPostgres, embedded


def configured_url(settings: Settings, config: Config | None) -> str:
    """The database's address; nothing is started."""
    if config is not None and config.database.url:
        return config.database.url
    return EmbeddedPostgres(settings.home, pg_bin=settings.environment.get("PG_BIN")).url


@contextmanager
def database_url(settings: Settings, config: Config | None) -> Iterator[str]:
    """The URL of a migrated database. The embedded server is started where it does not run, and then stopped."""
    # It brings Alembic, for which who asks for an address alone need not wait.
    from pointsman.database.schema import migrate

    if config is not None and config.database.url:
        migrate(config.database.url)
        yield config.database.url
        return
    with embedded(settings.home, pg_bin=settings.environment.get("PG_BIN")) as url:
        migrate(url)
        yield url
