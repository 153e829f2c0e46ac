"""The writing half of the journal: append now, sync in groups, wait for the sync before the first byte.

One event loop, one writer. `append` writes at once (a few microseconds) and starts a sync unless one
runs; syncs happen in a thread, each covering all that was appended before it began, so the wait
overlaps the call to the worker.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pointsman.errors import StoreError
from pointsman.ids import new_id
from pointsman.journal.folder import new_folder, waiting_bytes
from pointsman.journal.lines import OpenDecision, Payload, TableRow, encode_line

SEGMENT_BYTES = 64 * 1024 * 1024


class Journal:
    """This process's journal folder. Not thread-safe: use it from one event loop.

    `lost` counts rows that could not be written after the client was answered (disk full, I/O
    error): a metric that must stay 0.
    """

    def __init__(self, root: Path, *, max_bytes: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.root = root
        self.max_bytes = max_bytes
        self.segment_bytes = segment_bytes
        self.lost = 0
        self.waiting = 0
        self._open: dict[str, OpenDecision] = {}
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._syncing = False
        self._appended = 0  # lines written so far, by count
        self._covered = 0  # lines that the newest started sync covers
        self._synced = 0  # lines that are on disk
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._retired: list[int] = []  # full segments' descriptors, closed by the next sync
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder, self._lock = new_folder(root, new_id())
        self._number = 0
        self._descriptor = -1
        self._size = 0
        self._next_segment()

    def check_room(self) -> None:
        """Raises `StoreError` when the journal is at its limit: new work must be refused."""
        if self.waiting >= self.max_bytes:
            raise StoreError(
                f"the decision journal holds {self.waiting:,} bytes that Postgres has not taken "
                f"(limit {self.max_bytes:,}); bring Postgres back or raise [log] max_bytes"
            )

    def measure(self) -> int:
        """Reads from disk how many bytes wait in the whole journal; called once a second."""
        self.waiting = waiting_bytes(self.root)
        return self.waiting

    @property
    def waiting_lines(self) -> int:
        """Lines of this process that are not in Postgres yet."""
        return max(self._appended - self.folder.cursor().lines, 0)

    def append(self, rows: Sequence[TableRow], *, opens: OpenDecision | None = None, closes: str | None = None) -> None:
        """Appends one line and starts a sync. Raises `StoreError` when the disk does not take it."""
        self._write(encode_line(Payload(list(rows), opens, closes)))
        if opens:
            self._open[opens[0]] = opens
        if closes:
            self._open.pop(closes, None)
        if self._size >= self.segment_bytes:
            self._next_segment()
        if not self._syncing:
            self._start_sync()

    def append_or_count(self, rows: Sequence[TableRow], *, closes: str | None = None) -> None:
        """`append` for what comes after the answer, when nobody can be refused: a failure counts as lost."""
        try:
            self.append(rows, closes=closes)
        except StoreError:
            self.lost += len(rows)

    async def synced(self) -> None:
        """Returns once everything appended so far is on disk; raises `StoreError` if it cannot be."""
        if self._synced >= self._appended:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((self._appended, waiter))
        if not self._syncing:
            self._start_sync()
        await waiter

    def close(self) -> None:
        """Syncs what is left and lets go of the folder; the shipper takes it from there."""
        self._executor.shutdown(wait=True)
        _sync(self._descriptor, self._retired)
        os.close(self._descriptor)
        self._lock.release()

    def _write(self, line: bytes) -> None:
        try:
            written = os.write(self._descriptor, line)
            if written != len(line):
                os.ftruncate(self._descriptor, self._size)
                raise StoreError("the journal's disk is full")
        except OSError as error:
            raise StoreError(f"the journal cannot be written: {error.strerror}") from error
        self._size += len(line)
        self.waiting += len(line)
        self._appended += 1

    def _start_sync(self) -> None:
        """Syncs all that has been written, and wakes those whose lines it covers."""
        loop = asyncio.get_running_loop()
        self._syncing = True
        self._covered = self._appended
        retired, self._retired = self._retired, []
        work = loop.run_in_executor(self._executor, _sync, self._descriptor, retired)
        work.add_done_callback(self._after_sync)

    def _after_sync(self, work: asyncio.Future[None]) -> None:
        self._syncing = False
        error = work.exception()
        if error is None:
            self._synced = self._covered
        while self._waiters and self._waiters[0][0] <= self._covered:
            _, waiter = self._waiters.popleft()
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(StoreError(f"the journal cannot be synced: {error}"))
        if self._appended > self._covered and error is None:
            self._start_sync()

    def _next_segment(self) -> None:
        if self._descriptor >= 0:
            self._retired.append(self._descriptor)
        self._number += 1
        self._size = 0
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(self.folder.segment(self._number), flags, 0o600)
        _sync_folder(self.folder.path)
        if self._open:
            self._write(encode_line(Payload(open=list(self._open.values()))))


def _sync(descriptor: int, retired: list[int]) -> None:
    for old in retired:
        os.fdatasync(old)
        os.close(old)
    os.fdatasync(descriptor)


def _sync_folder(path: Path) -> None:
    """Makes a new file's name durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)
