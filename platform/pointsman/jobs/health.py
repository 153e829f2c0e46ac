"""Whether the workers of a home live: each of their processes says so in a file every second, and what troubles it.

`pointsman worker --check` reads them, for a container's health check and for people. A worker's folder
is locked for as long as its process lives, so one that was killed leaves nothing that looks alive.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

FOLDER = "workers"
LOCK = "lock"
BEAT_SECONDS = 1.0
SILENT_SECONDS = 20.0


@dataclass(frozen=True)
class Part:
    """One process of a worker: how long ago it said that it lives, and its trouble if it has one."""

    name: str
    silent_s: float
    trouble: str | None

    @property
    def alive(self) -> bool:
        return self.silent_s < SILENT_SECONDS


@dataclass(frozen=True)
class Health:
    """One running worker. What troubles it from outside, such as an absent broker, does not make it unwell."""

    pid: int
    parts: tuple[Part, ...]

    @property
    def well(self) -> bool:
        return bool(self.parts) and all(part.alive for part in self.parts)


class Beat:
    """One process's word that it lives, in a file of its worker's folder."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._said: str | None = None

    def say(self, trouble: str | None = None) -> None:
        text = trouble or ""
        if text == self._said:
            os.utime(self.file)
            return
        self.file.write_text(text, encoding="utf-8")
        self._said = text


class Presence:
    """This process is a worker of the home, made of parts of these names, until `end`."""

    def __init__(self, home: Path, names: Sequence[str]) -> None:
        above = home / FOLDER
        for dead in [folder for folder in _folders(above) if not _locked(folder)]:
            shutil.rmtree(dead, ignore_errors=True)
        self.folder = above / str(os.getpid())
        self.folder.mkdir(parents=True, mode=0o700)
        self._lock: IO[str] = (self.folder / LOCK).open("a+")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        for name in names:
            Beat(self.folder / name).say("it is starting")

    def end(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


def workers_of(home: Path, now: float | None = None) -> list[Health]:
    """Every running worker of this home, and what its processes say."""
    moment = time.time() if now is None else now
    found = [folder for folder in _folders(home / FOLDER) if _locked(folder)]
    return [Health(int(folder.name), tuple(_parts(folder, moment))) for folder in found]


def _folders(above: Path) -> list[Path]:
    if not above.is_dir():
        return []
    return sorted(folder for folder in above.iterdir() if folder.is_dir() and folder.name.isdigit())


def _locked(folder: Path) -> bool:
    try:
        with (folder / LOCK).open("a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _parts(folder: Path, now: float) -> Iterator[Part]:
    for file in sorted(folder.iterdir()):
        if file.name != LOCK:
            trouble = file.read_text(encoding="utf-8", errors="replace").strip()
            yield Part(file.name, max(now - file.stat().st_mtime, 0.0), trouble or None)
