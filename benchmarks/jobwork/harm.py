"""What is done to workers, broker and Postgres while jobs run: each harm is one function of what runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import psutil

from benchmarks.jobwork.machine import Home, Running
from benchmarks.jobwork.scene import Scene

AWAY_SECONDS = 1.0
QUEUES = ("default", "probe", "train")


@dataclass
class Ground:
    """Where the rounds are: one home, its present worker, and the draws."""

    at: Scene
    home: Home
    rng: Random
    worker: Running = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A worker, the first or the next."""
        self.worker = self.home.worker("--queues", ",".join(QUEUES))


def whole_worker(ground: Ground) -> None:
    """kill -9 of everything that a worker is, but the broker; another one is started."""
    ground.worker.kill()
    ground.begin()


def pool_process(ground: Ground) -> None:
    """kill -9 of a process of Celery's pool, and with it of the job that it runs."""
    _kill(ground.rng.choice(ground.worker.pool("default")))


def celery_process(ground: Ground) -> None:
    """kill -9 of the parent of a pool."""
    for one in ground.worker.children(ground.rng.choice(QUEUES))[:1]:
        _kill(one)


def job_process(ground: Ground) -> None:
    """kill -9 of a job's own process, where one runs."""
    running = [one for one in ground.worker.family() if "pointsman.jobs.child" in _words(one)]
    if running:
        _kill(ground.rng.choice(running))


def dispatcher(ground: Ground) -> None:
    """kill -9 of the dispatcher, which is the beat."""
    for one in ground.worker.children("dispatcher"):
        _kill(one)


def broker_restart(ground: Ground) -> None:
    """kill -9 of the broker. The embedded one is started again by its worker, the others by us."""
    if ground.at.server is None:
        _kill(psutil.Process(int(ground.home.broker.info()["process_id"])))
        return
    ground.at.server.kill()
    time.sleep(AWAY_SECONDS)
    ground.at.server.start()


def broker_flush(ground: Ground) -> None:
    """Every message is lost."""
    if ground.at.server is None:
        ground.home.broker.flushall()
    else:
        ground.at.server.flush()


def postgres_restart(ground: Ground) -> None:
    """Postgres is away for a moment; every connection breaks."""
    ground.at.postgres.stop()
    time.sleep(AWAY_SECONDS)
    ground.at.postgres.start()


HARMS: dict[str, Callable[[Ground], None]] = {
    "worker": whole_worker,
    "pool process": pool_process,
    "broker restart": broker_restart,
    "postgres restart": postgres_restart,
    "dispatcher": dispatcher,
    "broker flush": broker_flush,
    "job process": job_process,
    "celery process": celery_process,
}


def _kill(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()


def _words(process: psutil.Process) -> list[str]:
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []
