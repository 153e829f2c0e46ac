"""A job's child process, seen from the worker: started, kept alive by heartbeats, cancelled, buried.

The child does the work and writes how it ended; the worker says each second that the job is still ours,
which it can even while native code keeps the child's interpreter busy. Cancelling is asked for, then
SIGTERM, then SIGKILL, so that it takes three seconds at most. A child that dies without a word has
crashed. While Postgres is away the child goes on until the lease would have run out.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Literal

import msgspec
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from pointsman.ids import new_id
from pointsman.jobs import ending, lease
from pointsman.jobs.child import CANCEL, Hello
from pointsman.jobs.death import Death, death, memory_kills
from pointsman.jobs.ending import End
from pointsman.jobs.kinds import kind_of
from pointsman.jobs.lease import Claim
from pointsman.jobs.log import JobLog
from pointsman.jobs.patience import passing, patiently
from pointsman.jobs.store import Jobs
from pointsman.jobs.view import FINISHED
from pointsman.jobs.workplace import Workplace
from pointsman.words import JobState

HEARTBEAT = 1.0
TICK = 0.1
ASKED = 1.5
"""Seconds that a child may take to end by itself once it was asked to; half of one more after SIGTERM."""
TERMINATED = 0.5
LONGEST_REST = 10.0
"""Seconds that a worker rests at most after processes that did not get as far as their jobs."""
LOCK_NOT_AVAILABLE = "55P03"
NO_FENCE = -1
TAIL_BYTES = 4_000
"""Of what a child printed, so much is kept when it crashed."""

log = logging.getLogger("pointsman.jobs")

Ending = Literal["ended", "cancelled", "stopped", "lost"]


class Supervisor:
    """Runs claimed jobs in children, one after the other in the thread that asks."""

    def __init__(self, place: Workplace, engine: Engine) -> None:
        self._place = place
        self._engine = engine
        self._rest = 0.0

    def run(self, held: Claim, stop: threading.Event | None = None) -> JobState | None:
        """Runs the job to its end, or until `stop`; the state it then has, None where another worker has it."""
        folder = self._place.make_folder(held)
        try:
            child = Child(self._place, self._hello("run", held), folder)
            try:
                how = self._watch(child, held, stop)
            finally:
                child.end()
            state = patiently(lambda: self._settle(held, how, child))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if self._rest:
            (stop or threading.Event()).wait(self._rest)
        return state

    def help(self, job_id: str, owner: str, stop: threading.Event | None = None) -> bool:
        """Works on the open parts of a job that runs elsewhere, until none are free. False where it shares none."""
        held = replace(lease.recover(self._engine, job_id, owner, NO_FENCE), owner=f"help:{owner}:{new_id()}")
        if not kind_of(held.kind).shared:
            return False
        folder = self._place.settings.home / "jobs" / f"help-{new_id()}"
        folder.mkdir(parents=True, mode=0o700)
        try:
            child = Child(self._place, self._hello("help", held), folder)
            try:
                self._look_on(child, job_id, stop)
            finally:
                child.end()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return True

    def _hello(self, mode: Literal["run", "help"], held: Claim) -> Hello:
        place = self._place
        return Hello(mode, os.getpid(), place.database_url, place.lease_s, held.job_id, held.owner, held.fence)

    def _watch(self, child: Child, held: Claim, stop: threading.Event | None) -> Ending:
        """Heartbeats until the child has ended, or must."""
        heard = time.monotonic()
        beat_at = heard + HEARTBEAT
        end_at: float | None = None
        while not child.ended(TICK):
            now = time.monotonic()
            if end_at is not None and now >= end_at:
                return "cancelled"
            if stop is not None and stop.is_set():
                return "stopped"
            if now < beat_at:
                continue
            beat_at = now + HEARTBEAT
            state = self._beat(held)
            if state == "lost" or (state == "away" and now - heard > self._place.lease_s):
                return "lost"
            if state != "away":
                heard = now
            if state == "cancelling" and end_at is None:
                child.ask_to_cancel()
                end_at = now + ASKED
        return "ended"

    def _beat(self, held: Claim) -> Literal["running", "cancelling", "away", "lost"]:
        try:
            state = lease.renew(self._engine, held, self._place.lease_s)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == LOCK_NOT_AVAILABLE:
                return "running"
            if not passing(error):
                raise
            return "away"
        return state if state in ("running", "cancelling") else "lost"

    def _look_on(self, child: Child, job_id: str, stop: threading.Event | None) -> None:
        """Until a helper has ended, its job no longer runs, or `stop`."""
        jobs = Jobs(self._engine)
        look_at = time.monotonic() + HEARTBEAT
        while not child.ended(TICK) and not (stop is not None and stop.is_set()):
            if time.monotonic() < look_at:
                continue
            look_at = time.monotonic() + HEARTBEAT
            job = patiently(lambda: jobs.find(job_id))
            if job is None or job.state != "running":
                return

    def _settle(self, held: Claim, how: Ending, child: Child) -> JobState | None:
        """Writes what the child could not write itself."""
        standing = lease.standing(self._engine, held)
        if standing is None or standing.begun:
            self._rest = 0.0
        if standing is not None and standing.state in FINISHED:
            return standing.state
        if how == "cancelled":
            return ending.finish(self._engine, End(held, "cancelled", "cancelled"))
        if how in ("stopped", "lost"):
            return ending.release(self._engine, held, "its worker was stopped, or cut off from the database")
        death = child.death()
        self._say(held, death.words, child.tail())
        if standing is not None and not standing.begun:
            return self._not_begun(held, death)
        end = ending.crashed if death.own else ending.killed
        return end(self._engine, held, death.words)

    def _not_begun(self, held: Claim, death: Death) -> JobState | None:
        """The machine's fault, not the job's: another one may have it at once, and this one claims none for a while."""
        state = ending.release(self._engine, held, f"before the job began: {death.words}")
        if state is not None and death.own:
            self._rest = min(max(2 * self._rest, HEARTBEAT), LONGEST_REST)
        return state

    def _say(self, held: Claim, cause: str, tail: str) -> None:
        log.warning("job %s: %s", held.job_id, cause)
        words = JobLog(self._engine, held)
        words.line("\n".join(filter(None, (cause, tail))), "error")
        words.close()


class Child:
    """The process, in a session of its own, so that what it starts can be ended with it."""

    def __init__(self, place: Workplace, hello: Hello, folder: Path) -> None:
        self._output = folder / "output.log"
        self._kills_before = memory_kills()
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pointsman.jobs.child"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(place.environment()),
                start_new_session=True,
            )
        self._say(msgspec.json.encode(hello))

    def ended(self, within: float) -> bool:
        """Whether it has ended, after at most so many seconds."""
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ask_to_cancel(self) -> None:
        self._say(CANCEL)

    def end(self) -> None:
        """Ends it and what it started: SIGTERM, then SIGKILL."""
        self._signal(signal.SIGTERM)
        if not self.ended(TERMINATED):
            self._signal(signal.SIGKILL)
            self._process.wait()
        else:
            self._signal(signal.SIGKILL)
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def death(self) -> Death:
        """How it died."""
        return death(self._process.returncode, self._kills_before, memory_kills())

    def tail(self) -> str:
        """The last of what it printed."""
        with suppress(OSError), self._output.open("rb") as output:
            output.seek(0, os.SEEK_END)
            output.seek(max(output.tell() - TAIL_BYTES, 0))
            return output.read().decode("utf-8", "replace").strip()
        return ""

    def _say(self, line: bytes) -> None:
        stdin: IO[bytes] | None = self._process.stdin
        if stdin is not None:
            with suppress(BrokenPipeError):
                stdin.write(line + b"\n")
                stdin.flush()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
