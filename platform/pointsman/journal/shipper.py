"""The shipping half: from every journal folder to Postgres, in COPY batches, idempotently by id.

A folder is read by the one shipper that holds its lock; folders of dead processes are adopted, the
decisions they left open marked `abandoned`, and then removed. While Postgres is away the shipper
waits and tries again; nothing is skipped. A row that Postgres refuses for what it is goes to
`rejected.log` and is counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from pointsman.database.copy import UnknownColumn, copy_rows
from pointsman.ids import time_of
from pointsman.journal.folder import SHIP_LOCK, Cursor, Folder, Lock, folders
from pointsman.journal.lines import Batch, OpenDecision, read_lines
from pointsman.journal.rejected import REJECTED, keep_line, keep_row

BATCH_LINES = 500
READ_BYTES = 8 * 1024 * 1024
ORDER = ("episode", "request", "decision", "call", "outcome", "feedback")
# Classes of SQLSTATE that speak of a value, not of the server's state or of the schema: cardinality,
# data, integrity, check option, a limit (an index row too long, JSON too deep), what is not supported.
ROWS_FAULT = ("21", "22", "23", "44", "54", "0A")

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
        self._complained: set[Path] = set()

    def ship(self) -> int:
        """Ships what waits in every folder, one batch each; returns the lines moved.

        Raises `psycopg.Error` while Postgres is away or cannot take rows; call again later.
        """
        moved = 0
        for folder in folders(self.root):
            source = self._source(folder)
            if source is None:
                continue
            try:
                moved += self._ship_source(source)
            except FileNotFoundError:
                self._forget(source)  # a person removed the folder
            except OSError as error:
                self._complain(folder, error)  # the others' rows need not wait for this disk
            except psycopg.Error:
                self._disconnect()  # what state it is in is not known
                raise
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
        self._disconnect()
        for source in list(self._sources.values()):
            self._forget(source)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _source(self, folder: Folder) -> _Source | None:
        """The folder as a source; None while another shipper has it, or where it cannot be read."""
        known = self._sources.get(folder.path)
        if known is not None:
            return known
        try:
            lock = Lock.take(folder.path / SHIP_LOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._complain(folder, error)
            return None
        if lock is None:
            return None
        source = _Source(folder, lock, folder.cursor())
        folder.drop_shipped(source.cursor)
        self._replay_open(source)
        self._sources[folder.path] = source
        return source

    def _complain(self, folder: Folder, error: OSError) -> None:
        if folder.path not in self._complained:
            log.error("%s cannot be shipped now: %s", folder.path.name, error.strerror)
            self._complained.add(folder.path)

    def _forget(self, source: _Source) -> None:
        source.lock.release()
        del self._sources[source.folder.path]

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
            self._store(batch.rows)
            self._keep_damaged(batch)
            self._note(source, batch)
            cursor = source.cursor
            self._move(source, Cursor(cursor.segment, batch.end, cursor.lines + batch.lines))
            return batch.lines
        if self._advance(source):
            return 1
        if not writer_alive:
            self._finish(source)
        return 0

    def _move(self, source: _Source, cursor: Cursor) -> None:
        """The rows are in Postgres. A full disk must not hold this up: it is what frees the disk."""
        source.cursor = cursor
        try:
            source.folder.save_cursor(cursor)
        except FileNotFoundError:
            raise
        except OSError as error:
            log.warning("a cursor could not be saved (%s); rows may be sent again, to no effect", error.strerror)

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
        self._move(source, Cursor(later[0], 0, cursor.lines))
        source.folder.segment(cursor.segment).unlink(missing_ok=True)
        return True

    def _finish(self, source: _Source) -> None:
        """A dead process's folder, wholly shipped: what it left open is abandoned, the folder goes."""
        if source.open:
            self._store([("outcome", _abandoned(entry, self._now())) for entry in source.open.values()])
            log.warning("%d decisions were abandoned by a process that ended", len(source.open))
        source.folder.remove()
        self._forget(source)

    def _store(self, rows: list[tuple[str, Row]]) -> None:
        """All rows in one transaction; where Postgres refuses a value, halves, down to the row at fault."""
        if not rows:
            return
        try:
            with self.connection().transaction():
                for table in _tables(rows):
                    copy_rows(self.connection(), table, [row for name, row in rows if name == table])
        except (psycopg.Error, UnknownColumn) as error:
            if not _divides(error, len(rows)):
                raise
            if len(rows) == 1:
                self._reject(rows[0], error)
                return
            self._store(rows[: len(rows) // 2])
            self._store(rows[len(rows) // 2 :])
            return
        self.shipped += len(rows)

    def _reject(self, row: tuple[str, Row], error: psycopg.Error | UnknownColumn) -> None:
        self.rejected += 1
        sqlstate = error.sqlstate if isinstance(error, psycopg.Error) else None
        log.error("a row of %s is refused (%s %s); it is kept in %s", row[0], _kind(error), sqlstate, REJECTED)
        keep_row(self.root, self._now(), row[0], row[1], sqlstate, _kind(error))

    def _keep_damaged(self, batch: Batch) -> None:
        for line in batch.damaged:
            self.damaged += 1
            log.error("a line of the journal is damaged; it is kept in %s", REJECTED)
            keep_line(self.root, self._now(), line)


def _divides(error: psycopg.Error | UnknownColumn, rows: int) -> bool:
    """Whether fewer rows at once may do: one of them is at fault, or together they take too long."""
    if isinstance(error, UnknownColumn):
        return True
    if error.sqlstate is None:  # found before sending; a lost connection has no SQLSTATE either
        return isinstance(error, psycopg.DataError | psycopg.ProgrammingError)
    if error.sqlstate == psycopg.errors.QueryCanceled.sqlstate:
        return rows > 1
    return error.sqlstate[:2] in ROWS_FAULT


def _kind(error: Exception) -> str:
    return type(error).__name__


def _tables(rows: list[tuple[str, Row]]) -> list[str]:
    """The tables of some rows, those of the log in reading order, versions before them."""
    names = {name for name, _ in rows}
    return sorted(names, key=lambda name: (ORDER.index(name) if name in ORDER else -1, name))


def _abandoned(entry: OpenDecision, now: datetime) -> Row:
    decision, project, episode = entry
    return {
        "id": decision,
        "project_id": project,
        "decision_id": decision,
        "episode_id": episode,
        "origin": "traffic",
        "status": "abandoned",
        "reason": "the gateway process ended before the answer did",
        "latency_ms": max((now - time_of(decision)).total_seconds() * 1000, 0.0),
        "ended_at": now.isoformat(),
    }
