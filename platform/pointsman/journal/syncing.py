"""Putting files on disk: whole writes, syncs of files and folders, and the thread that a journal's syncs run in.

The thread does what an executor would, without a future, its locks and its callbacks for every sync.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

Work = Callable[[], None]
Done = Callable[[Exception | None], None]
Sync = Callable[[int], None]


class SyncThread:
    """Runs one piece of work after the other; `done` is then called in the event loop, with what went wrong."""

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[tuple[Work, Done, asyncio.AbstractEventLoop] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Work, done: Done) -> None:
        self._queue.put((work, done, asyncio.get_running_loop()))

    def close(self) -> None:
        """Returns when all that was submitted has run."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, done, loop = item
            error: Exception | None = None
            try:
                work()
            except Exception as failure:  # noqa: BLE001 - the edge of a thread: who waits is told, whatever it was
                error = failure
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(done, error)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes every byte, or raises `OSError`."""
    written = os.write(descriptor, data)
    while written < len(data):
        part = os.write(descriptor, memoryview(data)[written:])
        if not part:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written += part


def sync_all(sync: Sync, retired: list[int], descriptor: int, folder: Path | None) -> None:
    """Everything of these on disk, or the first error; full segments are closed in any case."""
    errors: list[OSError] = []
    for old in retired:
        try:
            sync(old)
        except OSError as error:
            errors.append(error)
        finally:
            os.close(old)
    if errors:
        raise errors[0]
    sync(descriptor)
    if folder is not None:
        sync_folder(folder)


def sync_folder(path: Path) -> None:
    """Makes new files' names durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
