"""`rejected.log`: what could not go to Postgres for what it is, kept whole for a person to look at.

A JSON object a line: the row that Postgres refused, with the SQLSTATE, or the damaged line of the
journal (as Latin-1, so that every byte is there). Mode 0600, and under the same retention as the rest.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import msgspec

REJECTED = "rejected.log"


class _At(msgspec.Struct):
    at: datetime


class _Entry(msgspec.Struct):
    table: str | None = None


class Tally:
    """How many rows and damaged lines are kept; the file is read again only when it has changed."""

    def __init__(self, root: Path) -> None:
        self._file = root / REJECTED
        self._known: tuple[int, int, int] | None = None
        self.rows = 0
        self.lines = 0

    def read(self) -> None:
        """Counts anew. `OSError` where the file is there and cannot be read."""
        try:
            stat = self._file.stat()
        except FileNotFoundError:
            self._known, self.rows, self.lines = None, 0, 0
            return
        known = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if known == self._known:
            return
        rows = entries = 0
        with self._file.open("rb") as file:
            for line in file:
                entries += 1
                rows += _is_row(line)
        self._known, self.rows, self.lines = known, rows, entries - rows


def keep_row(root: Path, at: datetime, table: str, row: dict[str, Any], sqlstate: str | None, reason: str) -> None:
    """Keeps a refused row. `reason` is the kind of error, never its text, which may quote the row."""
    _append(root, {"at": at, "table": table, "sqlstate": sqlstate, "reason": reason, "row": row})


def keep_line(root: Path, at: datetime, line: bytes) -> None:
    """Keeps a damaged line."""
    _append(root, {"at": at, "reason": "damaged line", "line": line.decode("latin-1")})


def expire(root: Path, cutoff: datetime) -> int:
    """Drops what is older than `cutoff`; returns how many entries went."""
    file = root / REJECTED
    if not file.exists():
        return 0
    with _opened(file):
        lines = file.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if (at := _when(line)) is None or at >= cutoff]
        if len(kept) < len(lines):
            fresh = file.with_name(f"{REJECTED}.new")
            fresh.touch(mode=0o600)
            fresh.write_bytes(b"".join(kept))
            fresh.replace(file)
    return len(lines) - len(kept)


def _append(root: Path, entry: dict[str, Any]) -> None:
    with _opened(root / REJECTED) as handle:
        handle.write(msgspec.json.encode(entry) + b"\n")


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    """The file, locked against other shippers; opened again where one replaced it meanwhile."""
    while True:
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "ab", buffering=0) as handle:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if file.exists() and os.path.samestat(os.fstat(descriptor), file.stat()):
                yield handle
                return


def _is_row(line: bytes) -> bool:
    try:
        return msgspec.json.decode(line, type=_Entry).table is not None
    except msgspec.MsgspecError:
        return False


def _when(line: bytes) -> datetime | None:
    try:
        return msgspec.json.decode(line, type=_At).at
    except msgspec.MsgspecError:
        return None
