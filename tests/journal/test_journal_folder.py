"""Folders, locks and cursors, through every crash that leaves half of something."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pointsman.journal.folder import (
    HIDDEN_FOR,
    WRITER_LOCK,
    Cursor,
    Folder,
    Lock,
    folders,
    new_folder,
    sweep_hidden,
    waiting_bytes,
)
from pointsman.journal.rejected import REJECTED, expire, keep_line, keep_row

HOLDER = """
import sys, time
from pathlib import Path
from pointsman.journal.folder import Lock
assert Lock.take(Path(sys.argv[1])) is not None
print("held", flush=True)
time.sleep(60)
"""


def test_a_lock_is_held_once_and_freed_by_kill_9(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(file)], stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    assert Lock.take(file) is None
    holder.kill()
    holder.wait()
    holder.stdout.close()
    lock = Lock.take(file)
    assert lock is not None
    assert Lock.take(file) is None
    lock.release()


def test_a_lock_on_a_file_that_was_removed_is_no_lock(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Lock.take(tmp_path / "gone" / "lock")


def test_a_new_folder_is_locked_before_it_is_seen(tmp_path: Path) -> None:
    folder, lock = new_folder(tmp_path, "a")
    assert folders(tmp_path) == [folder] and folder.has_writer()
    assert folder.path.stat().st_mode & 0o077 == 0
    lock.release()
    assert not folder.has_writer()


def test_a_cursor_survives_and_a_broken_one_means_from_the_start(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.cursor() == Cursor(1, 0, 0)
    for number in (3, 4):
        folder.segment(number).write_bytes(b"xxxx")
    assert folder.cursor() == Cursor(3, 0, 0)
    folder.save_cursor(Cursor(4, 2, 9))
    assert folder.cursor() == Cursor(4, 2, 9)
    assert folder.waiting_bytes() == 2
    for broken in (b"", b"{", b'{"segment":"x"}', b"\0\0\0"):
        (tmp_path / "cursor.json").write_bytes(broken)
        assert folder.cursor() == Cursor(3, 0, 0)


def test_a_cursor_whose_segment_is_gone_moves_to_the_next(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.save_cursor(Cursor(2, 50, 7))
    assert folder.cursor() == Cursor(3, 0, 7)
    folder.segment(5).write_bytes(b"")
    assert folder.cursor() == Cursor(5, 0, 7)


def test_shipped_segments_that_a_crash_left_are_dropped(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for number in (1, 2, 3):
        folder.segment(number).write_bytes(b"x")
    folder.drop_shipped(Cursor(2, 1, 1))
    assert folder.segments() == [2, 3]


def test_waiting_bytes_are_those_of_all_folders(tmp_path: Path) -> None:
    assert waiting_bytes(tmp_path / "absent") == 0
    for name in ("a", "b"):
        folder, lock = new_folder(tmp_path, name)
        folder.segment(1).write_bytes(b"x" * 10)
        lock.release()
    Folder(tmp_path / "a").save_cursor(Cursor(1, 4, 1))
    assert waiting_bytes(tmp_path) == 16


def test_removal_hides_the_folder_first(tmp_path: Path) -> None:
    folder, lock = new_folder(tmp_path, "a")
    folder.segment(1).write_bytes(b"x")
    lock.release()
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_hidden_folders_are_swept_once_they_are_old_and_nobodys(tmp_path: Path) -> None:
    later = time.time() + HIDDEN_FOR + 1
    for name in (".made", ".alive", ".removed"):
        (tmp_path / name).mkdir()
    (tmp_path / ".removed" / "00000001.log").write_bytes(b"x")
    (tmp_path / ".removed" / "cursor.json").write_bytes(b"x")
    (tmp_path / ".file").write_bytes(b"")
    folder, own = new_folder(tmp_path, "seen")
    alive = Lock.take(tmp_path / ".alive" / WRITER_LOCK)
    assert alive is not None
    assert sweep_hidden(tmp_path, time.time()) == []
    assert sorted(sweep_hidden(tmp_path, later)) == [".made", ".removed"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [".alive", ".file", "seen"]
    alive.release()
    assert sweep_hidden(tmp_path, later) == [".alive"]
    assert sweep_hidden(tmp_path / "absent", later) == []
    own.release()
    assert folder.path.is_dir()


def test_rejected_rows_are_kept_privately_until_retention(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    old, new = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    assert expire(tmp_path, new) == 0
    keep_row(tmp_path, old, "call", {"id": 1}, "22003", "NumericValueOutOfRange")
    keep_line(tmp_path, new, b"dead\xffbeef")
    file = tmp_path / REJECTED
    assert file.stat().st_mode & 0o777 == 0o600
    assert expire(tmp_path, datetime(2026, 3, 1, tzinfo=UTC)) == 1
    assert file.stat().st_mode & 0o777 == 0o600
    kept = file.read_text()
    assert '"reason":"damaged line"' in kept and "dead\xffbeef" in kept and "22003" not in kept
    keep_line(tmp_path, new, b"more")
    assert len(file.read_text().splitlines()) == 2
    assert os.listdir(tmp_path) == [REJECTED]
