"""Memory in Postgres, for all gateways: rows of `memory_item`, bounded per episode, swept when they expire.

While Postgres is away nothing is lost that this process may still need: what could not be written is held here, and
reads fall back on it. A run that waits for tools is always held here too, so that its client finds it at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, delete, func, insert, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.types import Text

from harness.engine.memory import Bounds, Item, LocalMemory, expires_at, within
from harness.engine.request import plain
from pointsman.tables import METADATA
from pointsman.words import MemoryKind

ITEM = METADATA.tables["memory_item"]
HELD_EPISODES = 500
READ_SECONDS = 1.0
WRITE_SECONDS = 3.0
"""An answer does not wait longer for memory than this."""

log = logging.getLogger("pointsman.engine")


class PostgresMemory:
    """One per process. `redact` goes over what is kept, but for a waiting run, which has to go on as it was."""

    def __init__(
        self,
        engine: Engine,
        bounds: Bounds | None = None,
        *,
        redact: Callable[[Any], Any] = lambda value: value,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._engine = engine
        self._bounds = bounds or Bounds()
        self._redact = redact
        self._now = now
        self._held = LocalMemory(self._bounds, episodes=HELD_EPISODES)

    async def recall(self, project_id: str, episode_id: str, kinds: Sequence[MemoryKind]) -> list[Item]:
        held = await self._held.recall(project_id, episode_id, kinds)
        try:
            async with asyncio.timeout(READ_SECONDS):
                stored = await asyncio.to_thread(self._read, project_id, episode_id, kinds)
        except (SQLAlchemyError, TimeoutError) as error:
            log.warning("memory cannot be read (%s); this process's own is used", type(error).__name__)
            return held
        known = {item.id for item in stored}
        return sorted([*stored, *(item for item in held if item.id not in known)], key=lambda item: item.id)

    async def keep(self, items: Sequence[Item]) -> None:
        """Never raises: an answer is not lost for want of memory."""
        clean = [self._cleaned(item) for item in items]
        await self._held.keep([item for item in clean if item.kind == "state"])
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await asyncio.to_thread(self._write, clean)
        except (SQLAlchemyError, TimeoutError) as error:
            log.warning("memory cannot be written (%s); it is held in this process", type(error).__name__)
            await self._held.keep([item for item in clean if item.kind != "state"])

    async def waiting(self, project_id: str, tool_call_ids: Sequence[str]) -> Item | None:
        if (held := await self._held.waiting(project_id, tool_call_ids)) is not None:
            return held
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await asyncio.to_thread(self._find, project_id, tool_call_ids)
        except (SQLAlchemyError, TimeoutError) as error:
            log.warning("no waiting run can be looked for (%s)", type(error).__name__)
            return None

    async def forget(self, project_id: str, ids: Sequence[str]) -> None:
        await self._held.forget(project_id, ids)
        try:
            await asyncio.to_thread(self._drop, project_id, ids)
        except SQLAlchemyError as error:
            log.warning("memory cannot be dropped (%s); it ends when it expires", type(error).__name__)

    def _cleaned(self, item: Item) -> Item:
        content = plain(item.content if item.kind == "state" else self._redact(item.content))
        values = {name: getattr(item, name) for name in item.__struct_fields__}
        return Item(**{**values, "content": content})

    def _read(self, project_id: str, episode_id: str, kinds: Sequence[MemoryKind]) -> list[Item]:
        query = (
            select(ITEM)
            .where(
                ITEM.c.project_id == UUID(project_id),
                ITEM.c.episode_id == UUID(episode_id),
                ITEM.c.kind.in_(kinds),
                ITEM.c.expires_at > self._now(),
            )
            .order_by(ITEM.c.id)
        )
        with self._engine.connect() as connection:
            return [_item(row) for row in connection.execute(query).mappings()]

    def _find(self, project_id: str, tool_call_ids: Sequence[str]) -> Item | None:
        query = (
            select(ITEM)
            .where(
                ITEM.c.kind == "state",
                ITEM.c.tool_call_ids.op("&&")(sql_cast(list(tool_call_ids), ARRAY(Text))),
                ITEM.c.project_id == UUID(project_id),
                ITEM.c.expires_at > self._now(),
            )
            .order_by(ITEM.c.id.desc())
            .limit(1)
        )
        with self._engine.connect() as connection:
            row = connection.execute(query).mappings().first()
        return _item(row) if row is not None else None

    def _write(self, items: Sequence[Item]) -> None:
        with self._engine.begin() as connection:
            for project, episode in dict.fromkeys((item.project_id, item.episode_id) for item in items):
                # One writer per episode at a time, so that the bounds hold whatever runs beside this.
                connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"{project}/{episode}", 0))))
            connection.execute(insert(ITEM), [_row(item, self._bounds) for item in items])
            for project, episode in dict.fromkeys((item.project_id, item.episode_id) for item in items):
                self._bound(connection, project, episode)

    def _bound(self, connection: Connection, project_id: str, episode_id: str) -> None:
        """Drops what is beyond the bounds, decided from sizes alone."""
        columns = (ITEM.c.id, ITEM.c.kind, ITEM.c.size, ITEM.c.created_at)
        mine = (ITEM.c.project_id == UUID(project_id)) & (ITEM.c.episode_id == UUID(episode_id))
        rows = connection.execute(select(*columns).where(mine).order_by(ITEM.c.id)).all()
        held = [_Sized(str(row.id), row.kind, row.size, row.created_at) for row in rows]
        stays = {item.id for item in within(held, self._bounds, self._now())}
        if gone := [UUID(item.id) for item in held if item.id not in stays]:
            connection.execute(delete(ITEM).where(ITEM.c.id.in_(gone)))

    def _drop(self, project_id: str, ids: Sequence[str]) -> None:
        with self._engine.begin() as connection:
            mine = ITEM.c.project_id == UUID(project_id)
            connection.execute(delete(ITEM).where(mine, ITEM.c.id.in_([UUID(identity) for identity in ids])))


def sweep(engine: Engine, now: datetime | None = None) -> int:
    """Deletes what has expired; returns how many items that were."""
    with engine.begin() as connection:
        result = connection.execute(delete(ITEM).where(ITEM.c.expires_at <= (now or datetime.now(UTC))))
    return int(result.rowcount)


@dataclass(frozen=True)
class _Sized:
    """An item of which only the size is known."""

    id: str
    kind: MemoryKind
    size: int
    created_at: datetime


def _item(row: Mapping[Any, Any]) -> Item:
    return Item(
        id=str(row["id"]),
        project_id=str(row["project_id"]),
        episode_id=str(row["episode_id"]),
        kind=row["kind"],
        content=row["content"],
        created_at=row["created_at"],
        workflow=row["workflow"],
        worker=row["worker"],
        tool_call_ids=tuple(row["tool_call_ids"]),
    )


def _row(item: Item, bounds: Bounds) -> dict[str, Any]:
    return {
        "id": UUID(item.id),
        "project_id": UUID(item.project_id),
        "episode_id": UUID(item.episode_id),
        "kind": item.kind,
        "workflow": item.workflow,
        "worker": item.worker,
        "tool_call_ids": list(item.tool_call_ids),
        "content": item.content,
        "size": item.size,
        "created_at": item.created_at,
        "expires_at": expires_at(item, bounds),
    }
