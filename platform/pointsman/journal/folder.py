"""A journal folder: one per writing process, with its segments, its writer's lock and its reader's cursor.

journal/
  <id>/writer.lock        held (flock) for as long as the writing process lives
  <id>/ship.lock          held by the one shipper that reads the folder
  <id>/00000001.log       segments, mode 0600; all but the newest are complete
  <id>/cursor.json        how far the shipper has come: segment, offset, lines
  .<id>/                  a folder that is being made, or one that is being removed
  rejected.log            rows that Postgres refused for what they are, kept for a person (`rejected`)
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from pointsman.config import Config, Settings

WRITER_LOCK = "writer.lock"
SHIP_LOCK = "ship.lock"
CURSOR = "cursor.json"
HIDDEN_FOR = 60.0  # seconds after which a hidden folder without a writer is what a crash left


class Cursor(msgspec.Struct, frozen=True):
    """Everything before `offset` in `segment`, and all earlier segments, is in Postgres."""

    segment: int = 1
    offset: int = 0
    lines: int = 0


@dataclass(frozen=True)
class Folder:
    """One process's part of the journal."""

    path: Path

    def segment(self, number: int) -> Path:
        return self.path / f"{number:08d}.log"

    def segments(self) -> list[int]:
        """The numbers of the segments that exist, oldest first."""
        return sorted(int(file.stem) for file in self.path.glob("*.log") if file.stem.isdigit())

    def cursor(self) -> Cursor:
        """Where the shipper stands. A cursor that was lost, or whose segment is gone, means the first that is left."""
        try:
            cursor = msgspec.json.decode((self.path / CURSOR).read_bytes(), type=Cursor)
        except (FileNotFoundError, msgspec.MsgspecError):
            return Cursor(segment=(self.segments() or [1])[0])
        if cursor.offset and not self.segment(cursor.segment).exists():
            later = [number for number in self.segments() if number > cursor.segment]
            return Cursor((later or [cursor.segment + 1])[0], 0, cursor.lines)
        return cursor

    def save_cursor(self, cursor: Cursor) -> None:
        """Atomically; losing it only means that rows are sent again."""
        fresh = self.path / f"{CURSOR}.new"
        fresh.write_bytes(msgspec.json.encode(cursor))
        fresh.replace(self.path / CURSOR)

    def drop_shipped(self, cursor: Cursor) -> None:
        """Removes the segments before the cursor's: a crash may have left one."""
        for number in self.segments():
            if number < cursor.segment:
                self.segment(number).unlink(missing_ok=True)

    def waiting_bytes(self) -> int:
        """Bytes that are not in Postgres yet."""
        cursor = self.cursor()
        total = 0
        for number in self.segments():
            if number >= cursor.segment:
                size = _size(self.segment(number))
                total += size - cursor.offset if number == cursor.segment else size
        return max(total, 0)

    def has_writer(self) -> bool:
        """Whether the process that writes here is alive."""
        lock = Lock.take(self.path / WRITER_LOCK)
        if lock is None:
            return True
        lock.release()
        return False

    def remove(self) -> None:
        """Gone for everyone at once, then deleted: a crash in between leaves a hidden folder, never half a one."""
        hidden = self.path.rename(self.path.with_name(f".{self.path.name}"))
        _delete(hidden)


class Lock:
    """An exclusive lock on a file, freed by the kernel when its process dies."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """The lock, or None where another process holds it. `FileNotFoundError` where the folder is gone."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(descriptor), path.stat()):
                raise FileNotFoundError(path)  # another file by now: the lock would be on nothing
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def release(self) -> None:
        os.close(self._descriptor)


def journal_root(settings: Settings, config: Config) -> Path:
    """The journal's folder: `[log] dir`, else under the home."""
    return Path(config.log.dir).expanduser() if config.log.dir else settings.home / "journal"


def new_folder(root: Path, name: str) -> tuple[Folder, Lock]:
    """A folder for this process, locked before anyone can see it."""
    hidden = root / f".{name}"
    hidden.mkdir(mode=0o700)
    lock = Lock.take(hidden / WRITER_LOCK)
    assert lock is not None, "a hidden folder has no other writer"
    return Folder(hidden.rename(root / name)), lock


def folders(root: Path) -> list[Folder]:
    """Every process's folder under the journal's root, oldest first."""
    if not root.is_dir():
        return []
    return [Folder(path) for path in sorted(root.iterdir()) if path.is_dir() and path.name[0] != "."]


def sweep_hidden(root: Path, now: float) -> list[str]:
    """Deletes hidden folders that a crash left; `now` is a POSIX time. They hold nothing that is not in Postgres."""
    swept: list[str] = []
    for path in root.glob(".*") if root.is_dir() else ():
        try:
            if not path.is_dir() or now - path.stat().st_mtime < HIDDEN_FOR:
                continue
            lock = Lock.take(path / WRITER_LOCK)
            if lock is None:
                continue
            _delete(path)
        except FileNotFoundError:
            continue  # another shipper swept it
        lock.release()
        swept.append(path.name)
    return swept


def waiting_bytes(root: Path) -> int:
    """Bytes that wait in the whole journal. A folder that vanishes meanwhile counts as empty."""
    total = 0
    for folder in folders(root):
        try:
            total += folder.waiting_bytes()
        except FileNotFoundError:
            continue
    return total


def _delete(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink(missing_ok=True)
    folder.rmdir()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
