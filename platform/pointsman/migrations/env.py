"""Alembic's entry: runs the migrations on the URL that `pointsman.database.schema` hands over."""

from __future__ import annotations

from typing import Any

from alembic import context
from sqlalchemy import create_engine, pool

from pointsman.tables import METADATA, PARTITIONED


def include_object(item: Any, name: str | None, kind: str, reflected: bool, compare_to: Any) -> bool:
    """Partitions are made by date, not by model: autogenerate looks at their parents only."""
    if kind == "table" and reflected and name:
        return not any(name.startswith(f"{table}_") for table in PARTITIONED)
    return True


def run() -> None:
    url = context.config.attributes["url"]
    engine = create_engine(url, poolclass=pool.NullPool, hide_parameters=True)
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=METADATA,
            include_object=include_object,
            compare_type=True,
            compare_server_default=False,
        )
        with context.begin_transaction():
            context.run_migrations()
    engine.dispose()


run()
