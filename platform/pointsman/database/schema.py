"""Bringing a database's schema to the newest revision, with Alembic, from the package's own migrations.

Alembic is imported where a schema is changed: a gateway only asks which revision there is, and stays smaller by 8 MB.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine, text

from pointsman.database.engine import make_engine, normalised_url
from pointsman.database.partitions import ensure_partitions
from pointsman.errors import UserError
from pointsman.tables import PARTITIONED

if TYPE_CHECKING:
    from alembic.config import Config as AlembicConfig

MIGRATIONS = Path(__file__).parent.parent / "migrations"
MIGRATION_LOCK = 0x706F696E74  # an advisory lock, so that two starting processes migrate once


def alembic_config(url: str) -> AlembicConfig:
    """Alembic's configuration for `url`, without a file."""
    from alembic.config import Config as AlembicConfig

    config = AlembicConfig()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["url"] = normalised_url(url)
    return config


def head_revision() -> str:
    """The newest revision the package carries: their files are named by number, in one chain."""
    return max(file.stem for file in (MIGRATIONS / "versions").glob("[0-9]*.py")).partition("_")[0]


def current_revision(engine: Engine) -> str | None:
    """The revision the database is at, None for an empty one."""
    with engine.connect() as connection:
        if connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
            return None
        revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return revision


def migrate(url: str, revision: str = "head", *, now: datetime | None = None) -> None:
    """Upgrades the schema and makes the coming months' partitions. Safe to run at any time, from anywhere.

    Raises `UserError` where a newer version has been at the database already.
    """
    from alembic import command
    from alembic.util import CommandError

    engine = make_engine(url, application="pointsman-migrate")
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
            connection.commit()
            try:
                command.upgrade(alembic_config(url), revision)
            except CommandError as error:
                raise UserError(f"the database cannot be brought to {revision}: {error}") from error
            if revision == "head":
                for table in PARTITIONED:
                    ensure_partitions(connection, now or datetime.now(UTC), tables=(table,))
                    connection.commit()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
            connection.commit()
    finally:
        engine.dispose()
