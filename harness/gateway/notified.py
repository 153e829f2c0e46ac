"""Listens to PostgreSQL's notifications in the serving event loop; whatever is missed is read at the next refresh."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
from psycopg import sql

from pointsman.database.engine import psycopg_url

AWAY_SECONDS = 2.0


async def listen(database_url: str, channel: str, heard: Callable[[], Awaitable[None]]) -> None:
    """Calls `heard` after each notification, for ever; while Postgres is away it waits."""
    while True:
        try:
            connection = await psycopg.AsyncConnection.connect(
                psycopg_url(database_url), autocommit=True, connect_timeout=3, application_name="pointsman-gateway"
            )
            async with connection:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                async for _ in connection.notifies():
                    await heard()
        except (psycopg.Error, OSError):
            pass
        await asyncio.sleep(AWAY_SECONDS)
