"""`pointsman worker`: a dispatcher and a Celery worker for each queue, started, watched and stopped together.

Where no database is configured it uses the home's embedded one, and where no broker is, the home's
embedded one: both are started if they do not run. It runs no job itself.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from sqlalchemy.exc import OperationalError

from pointsman.config import Config, Settings
from pointsman.database.open import database_url
from pointsman.errors import UserError
from pointsman.jobs.broker import MISSING, configured_broker, installed
from pointsman.jobs.embedded_broker import EmbeddedBroker
from pointsman.jobs.health import Presence
from pointsman.processes import Child
from pointsman.words import JobQueue

if TYPE_CHECKING:
    from pointsman.config.model import JobsConfig

STOP_SECONDS = 20.0
LOOK_SECONDS = 0.2
AWAY_SECONDS = 1.0

log = logging.getLogger("pointsman.worker")


@dataclass(frozen=True)
class Work:
    """What one `pointsman worker` does: its queues, each with how many jobs run at once. None: it dispatches alone."""

    queues: dict[JobQueue, int]

    @classmethod
    def of(cls, jobs: JobsConfig, queues: Sequence[JobQueue], concurrency: int | None) -> Work:
        """As the configuration says; `concurrency` wins over it, for each of the queues."""
        configured: dict[JobQueue, int] = {
            "default": jobs.concurrency,
            "probe": jobs.probe_concurrency,
            "train": jobs.train_concurrency,
        }
        return cls({queue: concurrency or configured[queue] for queue in queues})


@dataclass
class Worker:
    """The processes of one worker. Those that run jobs stop first, then the dispatcher, then the broker."""

    settings: Settings
    config: Config
    work: Work
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        if not installed():
            raise UserError(MISSING)
        self.settings.home.mkdir(parents=True, exist_ok=True)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        external = configured_broker(self.settings, self.config) is not None
        broker = None if external else EmbeddedBroker(self.settings.home)
        with ExitStack() as stack:
            if not self._open_database(stack):
                return
            if broker is not None:
                broker.start()
                stack.callback(broker.stop)
            self._keep(broker)

    def _keep(self, broker: EmbeddedBroker | None) -> None:
        """Everything runs until we are told to stop."""
        presence = Presence(self.settings.home, ["dispatcher", *self.work.queues])
        runners = [self._queue_worker(presence.folder, queue, n) for queue, n in self.work.queues.items()]
        dispatcher = _child(presence.folder, "dispatcher", "pointsman.jobs.dispatcher")
        environment = self._environment()
        try:
            while not self.stopping.wait(LOOK_SECONDS):
                if broker is not None:
                    broker.keep()
                for child in [dispatcher, *runners]:
                    child.watch(environment)
        finally:
            _end(runners)
            _end([dispatcher])
            presence.end()

    def _queue_worker(self, folder: Path, queue: JobQueue, concurrency: int) -> Child:
        return _child(folder, queue, "pointsman.jobs.queue_worker", "--queue", queue, "--concurrency", str(concurrency))

    def _open_database(self, stack: ExitStack) -> bool:
        """A migrated database for as long as `stack` lives; one that is away is waited for. False: told to stop."""
        while not self.stopping.is_set():
            try:
                stack.enter_context(database_url(self.settings, self.config))
                return True
            except OperationalError:
                log.warning("Postgres does not answer; jobs wait")
                self.stopping.wait(AWAY_SECONDS)
        return False

    def _environment(self) -> dict[str, str]:
        return {
            **self.settings.environment,
            "POINTSMAN_HOME": str(self.settings.home),
            "POINTSMAN_PORT": str(self.settings.port),
            "POINTSMAN_CONFIG": str(self.settings.config_file),
        }

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping.set()


def _child(folder: Path, name: str, module: str, *arguments: str) -> Child:
    return Child(name, [sys.executable, "-m", module, "--beat", str(folder / name), *arguments])


def _end(children: Sequence[Child]) -> None:
    for child in children:
        child.signal(signal.SIGTERM)
    until = time.monotonic() + STOP_SECONDS
    for child in children:
        child.wait(max(until - time.monotonic(), 0.1))
