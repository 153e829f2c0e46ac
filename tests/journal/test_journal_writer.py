"""The writer: what is promised as synced was synced, a full or failing disk refuses, and nothing promised is lost."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pointsman.errors import StoreError
from pointsman.journal import Journal
from pointsman.journal.folder import Folder, folders
from pointsman.journal.lines import Batch, read_lines
from pointsman.journal.writer import SEGMENT_SECONDS

ROOM = 10_000_000


class Disk:
    """A sync that waits to be let through, notes how much of the file it covered, and fails when told to."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.sizes: list[int] = []
        self.fail = 0

    def __call__(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        assert self.go.wait(5)
        if self.fail:
            self.fail -= 1
            raise OSError(errno.EIO, "input/output error")
        os.fdatasync(descriptor)
        self.sizes.append(size)


def row(number: int, size: int = 0) -> list[tuple[str, dict[str, Any]]]:
    return [("feedback", {"id": number, "comment": "x" * size})]


def opening(number: int) -> tuple[str, str, None]:
    return (f"d{number}", "p", None)


def read(folder: Folder, segment: int) -> Batch:
    return read_lines(folder.segment(segment).read_bytes(), limit=1 << 30)


def ids(folder: Folder) -> list[int]:
    """The ids of all rows, in the order a reader meets them."""
    return [int(bytes(r["id"])) for n in folder.segments() for _, r in read(folder, n).rows]


@contextmanager
def disk_full_at(size: int) -> Iterator[None]:
    """No file may grow past `size`: the kernel then answers a write as a full disk does, in part or with an error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def no_more_files() -> Iterator[None]:
    """This process may open no further file."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.open("/dev/null", os.O_RDONLY)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_synced_waits_for_exactly_what_was_appended_before(tmp_path: Path) -> None:
    disk = Disk()
    journal = Journal(tmp_path, max_bytes=ROOM, sync=disk)
    journal.append(row(0))
    await journal.synced()
    disk.go.clear()
    journal.append(row(1))  # a sync starts, and hangs
    await asyncio.sleep(0.02)
    journal.append(row(2))  # not covered by it
    both = asyncio.ensure_future(journal.synced())
    await asyncio.sleep(0.02)
    assert not both.done()
    size = (journal.folder.segment(1)).stat().st_size
    disk.go.set()
    await asyncio.wait_for(both, 5)
    assert disk.sizes[-1] >= size  # the sync that released the waiter covered both lines
    assert len(disk.sizes) == 3
    journal.close()


async def test_one_sync_serves_all_that_wait(tmp_path: Path) -> None:
    disk = Disk()
    journal = Journal(tmp_path, max_bytes=ROOM, sync=disk)
    disk.go.clear()
    journal.append(row(0))
    waits = []
    for number in range(1, 101):
        journal.append(row(number))
        waits.append(asyncio.ensure_future(journal.synced()))
    await asyncio.sleep(0)
    disk.go.set()
    await asyncio.wait_for(asyncio.gather(*waits), 5)
    assert len(disk.sizes) == 2  # the one that hung, and one for the hundred
    assert ids(journal.folder) == list(range(101))
    journal.close()


async def test_a_waiter_that_was_cancelled_harms_nobody(tmp_path: Path) -> None:
    disk = Disk()
    journal = Journal(tmp_path, max_bytes=ROOM, sync=disk)
    disk.go.clear()
    journal.append(row(0))
    gone, stays = asyncio.ensure_future(journal.synced()), asyncio.ensure_future(journal.synced())
    await asyncio.sleep(0)
    gone.cancel()
    disk.go.set()
    await asyncio.wait_for(stays, 5)
    journal.close()


async def test_a_new_segment_begins_with_what_is_open(tmp_path: Path) -> None:
    journal = Journal(tmp_path, max_bytes=ROOM, segment_bytes=2_000)
    journal.append(row(0), opens=opening(0))
    journal.append(row(1), opens=opening(1))
    journal.append([], closes="d0")
    journal.append(row(2, 2_000), opens=opening(2))  # fills the segment
    journal.append(row(3))
    await journal.synced()
    assert journal.folder.segments() == [1, 2]
    second = read(journal.folder, 2)
    assert second.opened == [opening(1), opening(2)]
    assert ids(journal.folder) == [0, 1, 2, 3]
    assert all(os.stat(journal.folder.segment(n)).st_mode & 0o777 == 0o600 for n in (1, 2))
    assert not list(journal.folder.path.glob("*.new"))
    journal.close()


async def test_a_quiet_segment_ends_after_a_day(tmp_path: Path) -> None:
    now = [0.0]
    journal = Journal(tmp_path, max_bytes=ROOM, clock=lambda: now[0])
    now[0] = SEGMENT_SECONDS * 2
    journal.measure()
    assert journal.folder.segments() == [1]  # an empty one has nothing to forget
    journal.append(row(0))
    journal.measure()
    assert journal.folder.segments() == [1, 2]
    await journal.synced()
    journal.close()


async def test_at_its_limit_the_journal_refuses(tmp_path: Path) -> None:
    journal = Journal(tmp_path, max_bytes=1_000)
    journal.check_room()
    journal.append(row(0, 1_200))
    with pytest.raises(StoreError, match=r"holds 1,\d\d\d bytes that Postgres has not taken \(limit 1,000\)"):
        journal.check_room()
    await journal.synced()
    cursor = journal.folder.cursor()
    journal.folder.save_cursor(type(cursor)(1, journal.folder.segment(1).stat().st_size, 1))
    assert journal.measure() == 0
    assert journal.waiting_lines == 0
    journal.check_room()
    journal.close()


async def test_a_full_disk_refuses_the_line_and_keeps_those_before(tmp_path: Path) -> None:
    journal = Journal(tmp_path, max_bytes=ROOM)
    journal.append(row(0))
    await journal.synced()
    size = journal.folder.segment(1).stat().st_size
    with disk_full_at(size + 50):
        for _ in range(3):
            with pytest.raises(StoreError, match="the journal cannot be written: File too large"):
                journal.append(row(1, 500), opens=opening(1))
        journal.append_or_count(row(2, 500))
        assert journal.lost == 1
        assert journal.folder.segment(1).stat().st_size == size  # no half line is left
    journal.append(row(3))
    await journal.synced()
    assert ids(journal.folder) == [0, 3]
    assert not read(journal.folder, 1).damaged
    journal.close()


async def test_where_no_new_segment_can_be_had_the_old_one_goes_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path, max_bytes=ROOM, segment_bytes=300)
    journal.append(row(0), opens=opening(0))
    await journal.synced()
    with no_more_files():
        for number in range(1, 6):
            journal.append(row(number, 100))
    assert journal.folder.segments() == [1]
    assert ids(journal.folder) == [0, 1, 2, 3, 4, 5]
    journal.append(row(6))  # and this one ends it
    journal.append(row(7))
    await journal.synced()
    assert journal.folder.segments()[0] == 1 and len(journal.folder.segments()) == 2
    assert ids(journal.folder) == list(range(8))
    assert not list(journal.folder.path.glob("*.new"))
    journal.close()


async def test_a_failed_sync_refuses_its_waiters_and_its_lines_are_written_again(tmp_path: Path) -> None:
    disk = Disk()
    journal = Journal(tmp_path, max_bytes=ROOM, sync=disk)
    journal.append(row(0))
    await journal.synced()
    disk.fail, before = 1, len(disk.sizes)
    disk.go.clear()
    journal.append(row(1), opens=opening(1))
    waiter = asyncio.ensure_future(journal.synced())
    await asyncio.sleep(0)
    disk.go.set()
    with pytest.raises(StoreError, match=r"cannot be synced: .*input/output error"):
        await waiter
    # Someone whose call took longer asks only now: the kernel may say yes to lines it has thrown away.
    await journal.synced()
    assert journal.folder.segments() == [1, 2]
    assert ids(journal.folder) == [0, 1, 1]  # again, in a segment whose sync did succeed
    assert read(journal.folder, 2).opened[0] == opening(1)
    assert len(disk.sizes) == before + 1
    assert journal.lost == 0
    journal.close()


async def test_a_failed_sync_without_waiters_is_made_good_by_the_next_measure(tmp_path: Path) -> None:
    disk = Disk()
    journal = Journal(tmp_path, max_bytes=ROOM, sync=disk)
    disk.fail = 1
    journal.append(row(0))
    while disk.fail:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.02)
    journal.measure()
    await journal.synced()
    assert ids(journal.folder) == [0, 0]
    journal.close()


async def test_close_syncs_what_is_left_and_frees_the_folder(tmp_path: Path) -> None:
    disk = Disk()
    journal = Journal(tmp_path, max_bytes=ROOM, sync=disk)
    journal.append(row(0))
    journal.append(row(1))
    waiter = asyncio.ensure_future(journal.synced())
    await asyncio.sleep(0)
    assert journal.folder.has_writer()
    journal.close()
    journal.close()
    await waiter
    assert disk.sizes[-1] == journal.folder.segment(1).stat().st_size
    assert not journal.folder.has_writer()
    with pytest.raises(StoreError, match="the journal is closed"):
        journal.append(row(2))
    journal.append_or_count(row(2))
    assert journal.lost == 1
    assert [f.path for f in folders(tmp_path)] == [journal.folder.path]
    assert ids(journal.folder) == [0, 1]


async def test_close_on_a_failing_disk_counts_what_may_be_lost(tmp_path: Path) -> None:
    disk = Disk()
    journal = Journal(tmp_path, max_bytes=ROOM, sync=disk)
    disk.fail = 10
    journal.append(row(0))
    waiter = asyncio.ensure_future(journal.synced())
    await asyncio.sleep(0)
    journal.close()
    with pytest.raises(StoreError, match="cannot be synced"):
        await waiter
    assert journal.lost == 1
