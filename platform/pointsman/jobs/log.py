"""What a job says while it runs: lines, metrics, progress. Buffered a moment, written in one transaction.

Lines and metrics are written even by a worker whose lease is lost, since they tell what it did; the
progress in the job's row is fenced. While Postgres is away all of it waits, and of very many lines
the oldest are dropped.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, insert, update
from sqlalchemy.exc import DBAPIError

from pointsman.database.clean import clean_text
from pointsman.ids import new_id
from pointsman.jobs.lease import Claim, owned
from pointsman.jobs.patience import passing
from pointsman.tables import JobLogRow, JobRow
from pointsman.words import JobLogLevel

EVERY_SECONDS = 0.5
WAITING_LINES = 10_000
LINE_CHARS = 20_000

_jobs = JobRow.__table__  # type: ignore[attr-defined]
_lines = JobLogRow.__table__  # type: ignore[attr-defined]


@dataclass
class Progress:
    """How far the present stage is. The rate is of this attempt: what an earlier one did counts for `done` alone."""

    stage: str | None = None
    done: int | None = None
    total: int | None = None
    first: int = 0
    began: float = 0.0

    def at(self, now: float) -> dict[str, Any]:
        """The columns of the job's row."""
        rate = self._rate(now)
        left = None if self.total is None or self.done is None else max(self.total - self.done, 0)
        eta = left / rate if left is not None and rate else None
        return {"stage": self.stage, "done": self.done, "total": self.total, "rate": rate, "eta_s": eta}

    def _rate(self, now: float) -> float | None:
        elapsed = now - self.began
        if self.done is None or self.done <= self.first or elapsed <= 0:
            return None
        return (self.done - self.first) / elapsed


class JobLog:
    """Says things in the name of one attempt. Safe to use from any thread; never raises for a Postgres that is away."""

    def __init__(self, engine: Engine, held: Claim, *, fenced: bool = True) -> None:
        self._engine = engine
        self._held = held
        self._fenced = fenced
        self._buffer = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: deque[dict[str, Any]] = deque(maxlen=WAITING_LINES)
        self._progress = Progress()
        self._moved = False
        self._flushed_at = 0.0
        self._quiet: int | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Writes what waits every half second, from a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="job-log", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=EVERY_SECONDS * 4)
        self.flush()

    def line(self, message: str, level: JobLogLevel = "info") -> None:
        self._add({"level": level, "message": clean_text(message)[:LINE_CHARS]})

    def metric(self, name: str, step: int, value: float) -> None:
        self._add({"level": "metric", "name": clean_text(name), "step": step, "value": float(value)})

    def stage(self, name: str | None) -> None:
        """What follows belongs to this stage."""
        with self._buffer:
            self._progress = Progress(name)
            self._moved = True

    def progress(self, done: int, total: int | None) -> None:
        with self._buffer:
            now = self._progress
            if now.done is None:
                now.first, now.began = done, time.monotonic()
            now.done, now.total, self._moved = done, total, True
        self._flush_if_due()

    def flush(self) -> None:
        """Writes what waits. While Postgres is away it goes on waiting."""
        if self._quiet == threading.get_ident():
            return
        with self._writing:
            with self._buffer:
                lines, moved = list(self._waiting), self._moved
                columns = self._progress.at(time.monotonic())
                self._waiting.clear()
                self._moved = False
            self._flushed_at = time.monotonic()
            try:
                self._write(lines, columns if moved and self._fenced else None)
            except DBAPIError as error:
                if not passing(error):
                    raise
                self._keep(lines, moved)

    def quiet(self, on: bool) -> None:
        """While this thread holds the job's row locked it must not write to it from another connection."""
        self._quiet = threading.get_ident() if on else None

    def _write(self, lines: list[dict[str, Any]], columns: dict[str, Any] | None) -> None:
        if not lines and columns is None:
            return
        with self._engine.begin() as connection:
            if lines:
                connection.execute(insert(_lines), lines)
            if columns is not None:
                connection.execute(update(_jobs).where(*owned(self._held)).values(columns))

    def _keep(self, lines: list[dict[str, Any]], moved: bool) -> None:
        with self._buffer:
            self._waiting.extendleft(reversed(lines[-(WAITING_LINES - len(self._waiting)) :]))
            self._moved = self._moved or moved

    def _add(self, columns: dict[str, Any]) -> None:
        empty = {"message": None, "name": None, "step": None, "value": None}
        row = {"id": new_id(), "job_id": self._held.job_id, "at": datetime.now(UTC), "attempt": self._held.attempt}
        with self._buffer:
            self._waiting.append({**row, **empty, "stage": self._progress.stage, **columns})
        self._flush_if_due()

    def _flush_if_due(self) -> None:
        """At once after a silence, so that the last words before a crash are there."""
        if time.monotonic() - self._flushed_at > EVERY_SECONDS and not self._writing.locked():
            self.flush()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            self.flush()
