"""The shipping half: from every journal folder to Postgres, in COPY batches, idempotently by id.

A folder is read by the one shipper that holds its lock; folders of dead processes are adopted, the
decisions they left open marked `abandoned`, and then removed. While Postgres is away the shipper
waits and tries again; nothing is skipped. A row that Postgres refuses for what it is goes to
`rejected.log` and is counted.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from pointsman.database.copy import copy_rows
from pointsman.ids import time_of
from pointsman.journal.folder import REJECTED, SHIP_LOCK, Cursor, Folder, Lock, folders
from pointsman.journal.lines import Batch, OpenDecision, read_lines

BATCH_LINES = 500
READ_BYTES = 8 * 1024 * 1024
ORDER = ("episode", "request", "decision", "call", "outcome", "feedback")

log = logging.getLogger("pointsman.shipper")

Row = dict[str, Any]


@dataclass
class _Source:
    """A folder being shipped: its lock, and the decisions that have begun there and not ended."""

    folder: Folder
    lock: Lock
    cursor: Cursor
    open: dict[str, OpenDecision] = field(default_factory=dict)


class Shipper:
    """Carries journal folders under `root` to the database that `connect` opens.

    `connect` gives a psycopg connection or raises `psycopg.OperationalError`; `now` stamps abandoned
    outcomes. `shipped`, `rejected` and `damaged` count rows and lines.
    """

    def __init__(
        self,
        root: Path,
        connect: Callable[[], psycopg.Connection[Any]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.root = root
        self.shipped = 0
        self.rejected = 0
        self.damaged = 0
        self._connect = connect
        self._now = now
        self._connection: psycopg.Connection[Any] | None = None
        self._sources: dict[Path, _Source] = {}

    def ship(self) -> int:
        """Ships what waits in every folder, one batch each; returns the lines moved.

        Raises `psycopg.OperationalError` while Postgres is away; call again later.
        """
        moved = 0
        for folder in folders(self.root):
            source = self._source(folder)
            if source is not None:
                moved += self._ship_source(source)
        return moved

    def drain(self) -> None:
        """Ships until nothing waits."""
        while self.ship():
            pass

    def connection(self) -> psycopg.Connection[Any]:
        """The shipper's own connection, opened when needed."""
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        for source in self._sources.values():
            source.lock.release()
        self._sources.clear()

    def _source(self, folder: Folder) -> _Source | None:
        known = self._sources.get(folder.path)
        if known is not None:
            return known
        try:
            lock = Lock.take(folder.path / SHIP_LOCK)
        except FileNotFoundError:
            return None
        if lock is None:
            return None
        source = _Source(folder, lock, folder.cursor())
        self._replay_open(source)
        self._sources[folder.path] = source
        return source

    def _replay_open(self, source: _Source) -> None:
        """What was open at the cursor, from the part of its segment that is shipped already."""
        cursor = source.cursor
        if not cursor.offset:
            return
        with source.folder.segment(cursor.segment).open("rb") as file:
            self._note(source, read_lines(file.read(cursor.offset), limit=1 << 60))

    def _ship_source(self, source: _Source) -> int:
        writer_alive = source.folder.has_writer()  # asked before reading: what comes later is seen later
        batch = self._read(source)
        if batch.lines:
            if batch.rows:
                self._store(batch.rows)
            self.damaged += batch.damaged
            self._note(source, batch)
            cursor = source.cursor
            source.cursor = Cursor(cursor.segment, batch.end, cursor.lines + batch.lines)
            source.folder.save_cursor(source.cursor)
            return batch.lines
        if self._advance(source):
            return 1
        if not writer_alive:
            self._finish(source)
        return 0

    def _read(self, source: _Source) -> Batch:
        cursor = source.cursor
        try:
            with source.folder.segment(cursor.segment).open("rb") as file:
                file.seek(cursor.offset)
                data = file.read(READ_BYTES)
                if data and b"\n" not in data:
                    data += file.read()  # a line longer than one read
        except FileNotFoundError:
            return Batch(end=cursor.offset)
        return read_lines(data, start=cursor.offset, limit=BATCH_LINES)

    @staticmethod
    def _note(source: _Source, batch: Batch) -> None:
        source.open.update({entry[0]: entry for entry in batch.opened})
        for decision in batch.closed:
            source.open.pop(decision, None)

    def _advance(self, source: _Source) -> bool:
        """On to the next segment, when there is one: then this one is complete and wholly shipped."""
        cursor = source.cursor
        later = [number for number in source.folder.segments() if number > cursor.segment]
        if not later:
            return False
        if self._read(source).lines:
            return True  # lines came between the last read and the rotation
        source.cursor = Cursor(later[0], 0, cursor.lines)
        source.folder.save_cursor(source.cursor)
        source.folder.segment(cursor.segment).unlink(missing_ok=True)
        return True

    def _finish(self, source: _Source) -> None:
        """A dead process's folder, wholly shipped: what it left open is abandoned, the folder goes."""
        if source.open:
            log.warning("%d decisions were abandoned by a process that died", len(source.open))
            self._store([("outcome", _abandoned(entry, self._now())) for entry in source.open.values()])
        source.folder.remove()
        source.lock.release()
        del self._sources[source.folder.path]

    def _store(self, rows: list[tuple[str, Row]]) -> None:
        """All rows in one transaction; where Postgres refuses a value, halves, down to the row at fault."""
        connection = self.connection()
        try:
            with connection.transaction():
                for table in _tables(rows):
                    copy_rows(connection, table, [_decoded(row) for name, row in rows if name == table])
        except (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError) as error:
            if len(rows) == 1:
                self._reject(rows[0], error)
                return
            self._store(rows[: len(rows) // 2])
            self._store(rows[len(rows) // 2 :])
            return
        self.shipped += len(rows)

    def _reject(self, row: tuple[str, Row], error: psycopg.Error) -> None:
        self.rejected += 1
        log.error("Postgres refused a row of %s (%s); it is kept in %s", row[0], error.sqlstate, REJECTED)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self.root / REJECTED, flags, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(msgspec.json.encode({"table": row[0], "sqlstate": error.sqlstate, "row": row[1]}) + b"\n")


def _tables(rows: list[tuple[str, Row]]) -> list[str]:
    """The tables of some rows, those of the log in reading order, versions before them."""
    names = {name for name, _ in rows}
    return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else -1)


def _decoded(row: Row) -> Row:
    """A row whose values are raw JSON, as COPY wants it: objects and lists stay JSON, the rest is plain."""
    return {column: _plain(value) for column, value in row.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, msgspec.Raw):
        return value
    raw = bytes(value)
    if raw[:1] in (b"{", b"["):
        return raw
    return msgspec.json.decode(raw)


def _abandoned(entry: OpenDecision, now: datetime) -> Row:
    decision, project, episode = entry
    return {
        "id": decision,
        "project_id": project,
        "decision_id": decision,
        "episode_id": episode,
        "origin": "traffic",
        "status": "abandoned",
        "reason": "the gateway process died before the answer ended",
        "latency_ms": max((now - time_of(decision)).total_seconds() * 1000, 0.0),
        "ended_at": now.isoformat(),
    }
