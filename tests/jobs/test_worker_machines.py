"""Two machines (process groups with data folders of their own) on one Postgres and one Redis; Postgres restarts."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pointsman.database.embedded import EmbeddedPostgres
from pointsman.identity import DEFAULT_PROJECT_ID
from pointsman.jobs.embedded_broker import find_server


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """A Redis on TCP: Debian's where it is installed, else the wheel's Valkey."""
    program = shutil.which("redis-server") or str(find_server())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="pm-redis-") as folder:
        options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""]
        server = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
        yield f"redis://127.0.0.1:{port}/3"
        server.terminate()
        server.wait()


@pytest.fixture
def machines(make_board: Callable[[], Any], working: Any, broker: str) -> Iterator[tuple[Any, Any, Any]]:
    """A board, and two homes that share its database and the broker, and artifacts as by a shared disk."""
    board = make_board()
    with tempfile.TemporaryDirectory(prefix="pm-shared-") as shared:
        lines = f'broker = "{broker}"\nartifacts = "{shared}"\nconcurrency = 1\n'
        homes = [working.Home(board.url, lines) for _ in range(2)]
        yield board, *homes
        for home in homes:
            home.close()


def test_a_job_started_on_one_machine_runs_on_the_other_and_both_share_one(machines: Any, working: Any) -> None:
    board, here, there = machines
    far = there.worker("--queues", "default")
    started = here.command("jobs", "start", "self-test", "--set", "steps=1", "--set", "chunks=0")
    job = board.ended(started.stdout.strip())
    assert job.state == "done" and int(job.lease_owner.split(":")[1]) in {one.pid for one in far.family()}
    assert not here.path.joinpath("broker").exists() and not there.path.joinpath("broker").exists()

    near = here.worker("--queues", "default")
    shared = board.ended(board.start(steps=0, chunks=60, chunk_seconds=0.1, concurrency=1))
    assert shared.state == "done"
    rows = board.sql("SELECT DISTINCT lease_owner FROM job_chunk WHERE job_id = :id", id=shared.id)
    assert len({row.lease_owner for row in rows}) == 2  # each has one process in this queue

    # One machine is lost, with all that runs on it: the other goes on with its job from the shared files.
    long = board.start(steps=50, seconds=0.05, chunks=0, seed=3)
    running = board.running(long, 3)
    mine = int(running.lease_owner.split(":")[1]) in {one.pid for one in near.family()}
    (near if mine else far).kill()
    assert board.ended(long).state == "done"
    assert board.jobs.get(long).attempt == 2
    assert (far if mine else near).stop() == 0


def test_a_dispatcher_alone_wakes_workers_and_keeps_the_clock(machines: Any, working: Any) -> None:
    board, here, there = machines
    here.file.write_text(
        here.file.read_text() + '[schedules.often]\ncron = "* * * * *"\nkind = "self-test"\nparams = { small = true }\n'
    )
    dispatcher = here.worker("--dispatch-only")
    assert [part.name for part in working.workers_of(here.path)[0].parts] == ["dispatcher"]
    worker = there.worker("--queues", "default")
    worker.children("dispatcher")[0].suspend()  # what moves now is moved by the other
    assert board.ended(board.start(steps=1, seconds=0, small=True)).state == "done"
    due = "UPDATE schedule SET last_due_at = now() - interval '5 minutes' WHERE name = 'often'"
    working.until(lambda: board.sql("SELECT FROM schedule"), what="the schedule to be seen")
    board.sql(due)
    ran = working.until(lambda: _ran(board), what="the schedule's job to be done")
    assert [job.params["small"] for job in ran] == [True] * len(ran)
    assert dispatcher.stop() == 0


def _ran(board: Any) -> list[Any]:
    done = board.jobs.list(project_id=DEFAULT_PROJECT_ID, state="done")
    return [job for job in done if job.asked_by == "schedule often"]


def test_postgres_restarts_under_a_worker(working: Any, broker: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="pm-postgres-"))
    folder.chmod(0o755)
    postgres = EmbeddedPostgres(folder)
    postgres.start()
    board = working.fresh_board(postgres.url, DEFAULT_PROJECT_ID)
    home = working.Home(board.url, f'broker = "{broker.replace("/3", "/4")}"\n')
    try:
        worker = home.worker("--queues", "default")
        running = board.start(steps=80, seconds=0.05, chunks=0)
        board.running(running, 3)
        waiting = [board.start(steps=1, seconds=0, small=True) for _ in range(3)]
        postgres.stop()
        time.sleep(1.0)
        postgres.start()
        assert {board.ended(job_id).state for job_id in [running, *waiting]} == {"done"}
        assert board.effects(running) == 1
        assert board.ended(board.start(steps=1, seconds=0, small=True)).state == "done"
        assert worker.stop() == 0
    finally:
        home.close()
        board.close()
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)
