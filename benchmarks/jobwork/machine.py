"""A real `pointsman worker` with a home of its own, and what is needed to see its processes and to hurt them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import psycopg
import redis
from sqlalchemy import Engine, text
from sqlalchemy.engine import make_url

from pointsman.config import Settings
from pointsman.database.engine import make_engine, psycopg_url
from pointsman.database.schema import migrate
from pointsman.identity import ensure_project
from pointsman.ids import new_id
from pointsman.jobs.embedded_broker import EmbeddedBroker
from pointsman.jobs.health import workers_of
from pointsman.jobs.store import Jobs, Order
from pointsman.jobs.view import JobView

PATIENCE = 90.0

CONFIG = """
[database]
url = "{database}"
[[workers]]
name = "alpha"
description = "d"
model = "m"
base_url = "http://127.0.0.1:9/v1"
[jobs]
lease = 2
visibility_timeout = 2
{jobs}
"""


def until(condition: Callable[[], Any], seconds: float = PATIENCE, what: str = "it") -> Any:
    """The condition's first true value."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {seconds} s in vain for {what}"
        time.sleep(0.05)
    return found


class Home:
    """A data folder with a configuration, and the workers that are started in it."""

    def __init__(self, database: str, jobs: str = "", *, config: str = CONFIG) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="pm-jobs-"))
        self.path.chmod(0o755)
        self.file = self.path / "pointsman.toml"
        self.file.write_text(config.format(database=database, jobs=jobs))
        self.environment = {
            **os.environ,
            "POINTSMAN_HOME": str(self.path),
            "POINTSMAN_CONFIG": str(self.file),
            "POINTSMAN_PORT": "1",
        }
        self.settings = Settings.read(self.environment)
        self.started: list[Running] = []

    def worker(self, *arguments: str, ready: bool = True) -> Running:
        """Starts `pointsman worker` with these arguments."""
        self.started.append(Running(self, arguments))
        if ready:
            self.started[-1].await_ready()
        return self.started[-1]

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Another command in this home."""
        return subprocess.run(
            [sys.executable, "-m", "pointsman.commands", *arguments],
            env=self.environment, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip

    @property
    def broker(self) -> redis.Redis[bytes]:
        """A client of the embedded broker."""
        return redis.Redis(unix_socket_path=str(EmbeddedBroker(self.path).socket))

    def close(self) -> None:
        for running in self.started:
            running.kill()
        broker = EmbeddedBroker(self.path)
        if broker.running():
            broker.keep()  # its owner is gone
            broker.stop()
        shutil.rmtree(self.path, ignore_errors=True)


class Running:
    """One started worker."""

    def __init__(self, home: Home, arguments: tuple[str, ...]) -> None:
        self.home = home
        self.log = home.path / f"worker-{len(home.started)}.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pointsman.commands", "worker", *arguments],
                env=home.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip

    def await_ready(self) -> None:
        until(self.ready, what=f"the worker to be ready: {self.log.read_text()[-2000:]}")

    def ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        found = [worker for worker in workers_of(self.home.path) if worker.pid == self.process.pid]
        return bool(found) and all(part.trouble is None for part in found[0].parts)

    def family(self) -> list[psutil.Process]:
        """The worker and all its descendants but the broker."""
        try:
            parent = psutil.Process(self.process.pid)
            found = [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []
        return [one for one in found if "-server" not in _name(one)]

    def children(self, word: str) -> list[psutil.Process]:
        """Direct children whose command line has a word: `dispatcher`, or a queue's name."""
        direct = psutil.Process(self.process.pid).children()
        return [one for one in direct if word in one.cmdline()[2:] or f"pointsman.jobs.{word}" in one.cmdline()]

    def pool(self, queue: str) -> list[psutil.Process]:
        """The pool's processes of a queue."""
        (parent,) = self.children(queue)
        return [one for one in parent.children() if "pointsman.jobs.child" not in one.cmdline()]

    def kill(self) -> None:
        """kill -9 of all of it but the broker, which is left running."""
        for one in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        self.process.wait()

    def stop(self, seconds: float = 60.0) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


class Board:
    """The jobs of a database, as a test looks at them."""

    def __init__(self, database: str, project_id: str) -> None:
        self.url = database
        self.engine: Engine = make_engine(database, application="worker-tests")
        self.jobs = Jobs(self.engine)
        self.project_id = project_id

    def start(self, priority: int = 0, **params: Any) -> str:
        """Queues a self-test; its id."""
        job = self.jobs.start("self-test", params, project_id=self.project_id, asked_by="test", priority=priority)
        return job.id

    def start_in(self, queue: str, **params: Any) -> str:
        """A self-test in another queue than its own."""
        job_id = new_id()
        self.sql(
            "INSERT INTO job (id, project_id, kind, params, queue, state, created_at)"
            " VALUES (:id, :project, 'self-test', CAST(:params AS jsonb), :queue, 'queued', clock_timestamp())",
            id=job_id, project=self.project_id, params=json.dumps(params), queue=queue,
        )  # fmt: skip
        return job_id

    def start_many(self, count: int, **params: Any) -> list[str]:
        """Queues many equal self-tests at once; their ids."""
        orders = [Order(params)] * count
        return self.jobs.start_many("self-test", orders, project_id=self.project_id, asked_by="test")

    def ended(self, job_id: str, seconds: float = PATIENCE) -> JobView:
        """The job when it has ended."""
        return until(lambda: self._if(job_id, lambda job: job.finished), seconds, f"job {job_id} to end")

    def running(self, job_id: str, steps: int = 1) -> JobView:
        """The job when it runs and has done so many steps."""
        return until(lambda: self._if(job_id, lambda job: (job.done or 0) >= steps), what=f"job {job_id} to run")

    def effects(self, job_id: str) -> int:
        """How often the job had its one effect."""
        said = [line for line in self.jobs.logs(job_id) if line.message == "self-test published"]
        return len(said)

    def sql(self, statement: str, **values: Any) -> Any:
        with self.engine.begin() as connection:
            done = connection.execute(text(statement), values)
            return done.all() if done.returns_rows else None

    def close(self) -> None:
        self.engine.dispose()

    def _if(self, job_id: str, holds: Callable[[JobView], bool]) -> JobView | None:
        job = self.jobs.get(job_id)
        return job if holds(job) else None


def fresh_board(server: str, project_id: str) -> Board:
    """A board on a new database of a server that is given by the URL of another database on it."""
    name = f"jobs_{new_id().replace('-', '')[-16:]}"
    with psycopg.connect(psycopg_url(server), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
    url = make_url(server).set(database=name).render_as_string(hide_password=False)
    migrate(url)
    board = Board(url, project_id)
    with board.engine.begin() as connection:
        ensure_project(connection)
    return board


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""
