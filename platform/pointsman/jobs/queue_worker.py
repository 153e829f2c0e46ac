"""A Celery worker for one queue: `python -m pointsman.jobs.queue_worker --queue train --concurrency 1 --beat FILE`.

Each of its pool's processes has a `Seat`: for a wake-up it runs what waits in Postgres, most urgent
first, until nothing does. Told to stop, it gives running jobs back unharmed, and ends.
"""

from __future__ import annotations

import argparse
import gc
import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
import warnings
from multiprocessing.synchronize import Event as SharedEvent
from pathlib import Path
from typing import Any

from celery import Celery, signals
from celery.exceptions import SecurityWarning
from celery.worker import state
from sqlalchemy.exc import SQLAlchemyError

from pointsman.config import Settings, load_config
from pointsman.jobs.broker import Wire, broker_url, queue_name
from pointsman.jobs.celery_app import add_tasks, make_app
from pointsman.jobs.health import BEAT_SECONDS, Beat
from pointsman.jobs.helping import until_work_waits
from pointsman.jobs.runner import Runner
from pointsman.jobs.watching import Watch
from pointsman.jobs.workplace import Workplace, new_owner
from pointsman.logs import configure_logging
from pointsman.processes import when_parent_ends
from pointsman.words import JobQueue, members

STILL_SECONDS = 5.0

log = logging.getLogger("pointsman.worker")


class Seat:
    """What one process of the pool works with. Opened after the fork, since connections do not survive one."""

    def __init__(self, settings: Settings, queue: JobQueue, stopping: SharedEvent) -> None:
        self._settings = settings
        self._queue = queue
        self._stopping = stopping
        self._stop = threading.Event()
        self._runner: Runner | None = None

    def open(self) -> None:
        self._runner = Runner(Workplace.read(self._settings), new_owner())
        threading.Thread(target=self._await_stop, daemon=True).start()

    def turn(self) -> None:
        """Runs jobs until none waits. While Postgres is away the wake-up is let go: another will come."""
        assert self._runner is not None
        try:
            while not self._stop.is_set() and self._runner.run_next((self._queue,), self._stop):
                pass
        except SQLAlchemyError as error:
            log.warning("Postgres does not answer (%s)", type(error).__name__)

    def help(self, job_id: str) -> None:
        """Works on parts of another worker's job, until there are none or a whole job waits."""
        assert self._runner is not None
        try:
            with until_work_waits(self._runner.engine, self._queue, self._stop) as stop:
                self._runner.help(job_id, stop)
        except SQLAlchemyError as error:
            log.warning("Postgres does not answer (%s)", type(error).__name__)

    def _await_stop(self) -> None:
        self._stopping.wait()
        self._stop.set()


class Pulse:
    """Says that this process lives, and whether Celery's loop turns: it stands still while the broker is away."""

    def __init__(self, beat: Beat) -> None:
        self._beat = beat
        self._turned_at: float | None = None

    def follow(self, timer: Any) -> None:
        """From now on Celery's timer shows that the loop turns. Called again after each reconnection."""
        if self._turned_at is None:
            timer.call_repeatedly(BEAT_SECONDS, self._turned)
        self._turned()

    def run(self) -> None:
        while True:
            self._beat.say(self._trouble())
            time.sleep(BEAT_SECONDS)

    def _turned(self) -> None:
        self._turned_at = time.monotonic()

    def _trouble(self) -> str | None:
        if self._turned_at is None:
            return "it is starting, or the broker does not answer"
        silent = time.monotonic() - self._turned_at
        return None if silent < STILL_SECONDS else "the broker does not answer"


def serve(settings: Settings, queue: JobQueue, concurrency: int, beat: Beat) -> int:
    """Works until told to stop; the exit code."""
    config = load_config(settings.config_file)
    configure_logging(form=config.log.format)
    for name in ("celery.worker.strategy", "celery.app.trace"):  # a line for each wake-up
        logging.getLogger(name).setLevel(logging.WARNING)
    stopping: SharedEvent = multiprocessing.get_context("fork").Event()
    seat = Seat(settings, queue, stopping)
    app = make_app(broker_url(settings, config), visibility_timeout=config.jobs.visibility_timeout)
    add_tasks(app, seat.turn, seat.help)
    pulse = Pulse(beat)
    watch = Watch(Wire(app), queue, concurrency, state.active_requests)
    # Celery holds receivers weakly: these live as long as this call.
    receivers = [
        (signals.worker_process_init, lambda **_: seat.open()),
        (signals.worker_shutting_down, lambda **_: stopping.set()),
        (signals.worker_ready, lambda sender, **_: pulse.follow(sender.timer)),
        (signals.worker_ready, lambda sender, **_: watch.follow(sender)),
        (signals.task_received, lambda **_: watch.received()),
    ]
    for moment, receiver in receivers:
        moment.connect(receiver)
    threading.Thread(target=pulse.run, daemon=True).start()
    threading.Thread(target=watch.run, daemon=True).start()
    return _run(app, queue, concurrency)


def _run(app: Celery, queue: JobQueue, concurrency: int) -> int:
    # As root Celery warns of pickle, which is not accepted here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    worker: Any = app.Worker(
        hostname=f"{queue}@{socket.gethostname()}",
        queues=[queue_name(queue)],
        concurrency=concurrency,
        pool="prefork",
        optimization="fair",
        loglevel=logging.INFO,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
    gc.collect()
    gc.freeze()  # what is loaded stays shared with the pool's processes
    worker.start()
    return int(worker.exitcode or 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queue", choices=members(JobQueue), required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--beat", type=Path, required=True, help="the file in which it says that it lives")
    arguments = parser.parse_args()
    os.umask(0o077)
    when_parent_ends(lambda: os.kill(os.getpid(), signal.SIGTERM))
    raise SystemExit(serve(Settings.read(), arguments.queue, arguments.concurrency, Beat(arguments.beat)))


if __name__ == "__main__":
    main()
