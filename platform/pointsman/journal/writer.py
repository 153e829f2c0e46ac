"""The writing half of the journal: append now, sync in groups, wait for the sync before the first byte.

One event loop, one writer. `append` writes at once (a few microseconds) and starts a sync unless one
runs; syncs happen in a thread, each covering all that was appended before it began, so the wait
overlaps the call to the worker.

After a sync that failed, the kernel may forget what it could not write and call the next sync a
success. So lines are kept here until they are on disk, and what a failed sync covered is written again,
to a new segment; rows are known by their ids, so twice is once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from pathlib import Path

from pointsman.errors import StoreError
from pointsman.ids import new_id
from pointsman.journal.folder import new_folder, waiting_bytes
from pointsman.journal.lines import OpenDecision, Payload, TableRow, encode_line
from pointsman.journal.syncing import Sync, SyncThread, sync_all, sync_folder, write_all

SEGMENT_BYTES = 64 * 1024 * 1024
SEGMENT_SECONDS = 86_400.0  # a quiet process must not keep text beyond its retention

SIBLINGS = 4
GROUP_SECONDS = 0.002
"""With more decisions open than `SIBLINGS`, a sync waits so long for others to join it (a commit delay)."""
LAZY_SECONDS = 0.05
"""A line that nobody waits for is on disk after so long, or with the next line that somebody waits for."""

log = logging.getLogger("pointsman.journal")


class Journal:
    """This process's journal folder. Not thread-safe: use it from one event loop.

    `lost` counts rows that could not be written after the client was answered (disk full, I/O
    error): a metric that must stay 0.
    """

    def __init__(
        self,
        root: Path,
        *,
        max_bytes: int,
        segment_bytes: int = SEGMENT_BYTES,
        sync: Sync = os.fdatasync,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.root = root
        self.max_bytes = max_bytes
        self.segment_bytes = segment_bytes
        self.lost = 0
        self.waiting = 0
        self._sync = sync
        self._clock = clock
        self._open: dict[str, OpenDecision] = {}
        self._thread = SyncThread("journal")
        self._syncing = False
        self._timer: asyncio.TimerHandle | None = None  # of a sync that will start
        self._closed = False
        self._torn = False  # the segment ends in half a line that could not be taken back
        self._suspect = False  # a sync failed, and what it covered has not been written again
        self._lines = 0  # lines in files, headers and repeats included
        self._appended = 0  # lines appended so far, by count
        self._covered = 0  # lines that the newest started sync covers
        self._synced = 0  # lines that are on disk
        self._wanted = 0  # the newest line that somebody waits for, or will
        self._unsynced: deque[bytes] = deque()  # lines that may not be, oldest first
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []  # by line
        self._retired: list[int] = []  # full segments' descriptors, closed by the next sync
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder, self._lock = new_folder(root, new_id())
        sync_folder(root)
        self._number = 0
        self._descriptor = -1
        self._size = 0
        self._born = 0.0
        self._named = False  # the newest segment's name is not on disk yet
        self._next_segment()

    def check_room(self) -> None:
        """Raises `StoreError` when the journal is at its limit: new work must be refused."""
        if self.waiting >= self.max_bytes:
            raise StoreError(
                f"the decision journal holds {self.waiting:,} bytes that Postgres has not taken "
                f"(limit {self.max_bytes:,}); bring Postgres back or raise [log] max_bytes"
            )

    def measure(self) -> int:
        """Reads from disk how many bytes wait in the whole journal; called once a second, in the event loop."""
        self.waiting = waiting_bytes(self.root)
        if self._size and self._clock() - self._born >= SEGMENT_SECONDS:
            self._rotate()
        if self._suspect and not self._closed:
            with suppress(StoreError):
                self._mend()
                self._start_sync()
        return self.waiting

    @property
    def waiting_lines(self) -> int:
        """Lines of this process that are not in Postgres yet."""
        return max(self._lines - self.folder.cursor().lines, 0)

    def append(self, rows: Sequence[TableRow], *, opens: OpenDecision | None = None, closes: str | None = None) -> int:
        """Appends one line, to be on disk soon; returns its ticket for `synced`.

        A line that closes a decision is lazy: nobody waits for an outcome. Raises `StoreError` when
        the disk does not take it.
        """
        if self._closed:
            raise StoreError("the journal is closed")
        line = encode_line(Payload(list(rows), opens, closes))
        self._mend()
        self._write(line)
        self._appended += 1
        self._unsynced.append(line)
        if opens:
            self._open[opens[0]] = opens
        if closes:
            self._open.pop(closes, None)
        if self._size >= self.segment_bytes:
            self._rotate()
        if closes:
            self._sync_later(LAZY_SECONDS)
        else:
            self._wanted = self._appended
            self._sync_later(GROUP_SECONDS if len(self._open) > SIBLINGS else 0.0)
        return self._appended

    def append_or_count(self, rows: Sequence[TableRow], *, closes: str | None = None) -> None:
        """`append` for what comes after the answer, when nobody can be refused: a failure counts as lost."""
        try:
            self.append(rows, closes=closes)
        except StoreError as error:
            self.lost += len(rows)
            log.error("%d rows are lost: %s", len(rows), error)

    async def synced(self, ticket: int | None = None) -> None:
        """Returns once the ticket's line (absent: all so far) is on disk; raises `StoreError` if it cannot be."""
        line = self._appended if ticket is None else ticket
        if self._synced >= line:
            return
        if self._closed:
            raise StoreError("the journal is closed")
        if not self._syncing:
            self._mend()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        insort(self._waiters, (line, waiter), key=itemgetter(0))
        self._wanted = max(self._wanted, line)
        if ticket is None:
            self._sync_later(0.0)
        else:
            self._sync_later(GROUP_SECONDS if len(self._open) > SIBLINGS else 0.0)
        await waiter

    def close(self) -> None:
        """Syncs what is left and lets go of the folder; the shipper takes it from there."""
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._thread.close()
        error: Exception | None = None
        try:
            self._mend()
            sync_all(self._sync, self._take_retired(), self._descriptor, self.folder.path)
        except (OSError, StoreError) as failure:
            error = failure
            self.lost += len(self._unsynced)
            log.error("%d lines may not be on disk: %s", len(self._unsynced), error)
        self._answer_waiters(self._appended, error)
        os.close(self._descriptor)
        self._lock.release()

    def _write(self, line: bytes) -> None:
        """The whole line or none of it."""
        if self._torn:
            self._next_segment()
        try:
            write_all(self._descriptor, line)
        except OSError as error:
            try:
                os.ftruncate(self._descriptor, self._size)
            except OSError:
                self._torn = True
            raise StoreError(f"the journal cannot be written: {error.strerror}") from error
        self._size += len(line)
        self.waiting += len(line)
        self._lines += 1

    def _sync_later(self, seconds: float) -> None:
        """A sync within `seconds`. One that runs is waited for: at its end the next one starts if it is wanted."""
        if self._syncing or self._closed:
            return
        if not seconds:
            self._start_sync()
            return
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._start_sync)

    def _start_sync(self) -> None:
        """Syncs all that has been written, and wakes those whose lines it covers."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._syncing or self._closed:
            return
        self._syncing = True
        self._covered = self._appended
        folder = self.folder.path if self._named else None
        self._named = False
        work = partial(sync_all, self._sync, self._take_retired(), self._descriptor, folder)
        self._thread.submit(work, self._after_sync)

    def _after_sync(self, error: Exception | None) -> None:
        if self._closed:
            return  # `close` has synced since, and answered those who waited
        self._syncing = False
        if error is None:
            for _ in range(self._covered - self._synced):
                self._unsynced.popleft()
            self._synced = self._covered
        else:
            log.error("the journal could not be synced: %s", error)
            self._suspect = True
        self._answer_waiters(self._covered, error)
        if error is None and self._wanted > self._covered:
            self._sync_later(GROUP_SECONDS if len(self._open) > SIBLINGS else 0.0)
        elif error is None and self._appended > self._covered:
            self._sync_later(LAZY_SECONDS)

    def _answer_waiters(self, covered: int, error: BaseException | None) -> None:
        while self._waiters and self._waiters[0][0] <= covered:
            _, waiter = self._waiters.pop(0)
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(StoreError(f"the journal cannot be synced: {error}"))

    def _mend(self) -> None:
        """After a failed sync: what may not be on disk is written again, to a new segment."""
        if not self._suspect:
            return
        self._next_segment()
        for old in self._take_retired():
            os.close(old)
        for line in self._unsynced:
            self._write(line)
        self._suspect = False

    def _rotate(self) -> None:
        with suppress(StoreError):  # a full disk: the old segment takes what it still can
            self._next_segment()

    def _next_segment(self) -> None:
        """A new segment, which a reader sees only once it is begun: to a reader, the one before is then complete."""
        self._number += 1
        hidden = self.folder.path / f"{self._number:08d}.new"
        header = encode_line(Payload(open=list(self._open.values()))) if self._open else b""
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(hidden, flags, 0o600)
            try:
                write_all(descriptor, header)
                hidden.rename(self.folder.segment(self._number))
            except OSError:
                os.close(descriptor)
                hidden.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise StoreError(f"the journal cannot begin a segment: {error.strerror}") from error
        if self._descriptor >= 0:
            self._retired.append(self._descriptor)
        self._descriptor, self._size, self._born = descriptor, len(header), self._clock()
        self._torn, self._named = False, True
        self._lines += bool(header)

    def _take_retired(self) -> list[int]:
        retired, self._retired = self._retired, []
        return retired
