"""kill -9 of each part of a worker, and of its broker: jobs go on from where they were, and have their effect once."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

LONG: dict[str, Any] = {"steps": 50, "seconds": 0.05, "chunks": 2, "seed": 7}


@pytest.fixture(scope="module")
def board(make_board: Callable[[], Any]) -> Any:
    return make_board()


@pytest.fixture(scope="module")
def home(board: Any, working: Any) -> Iterator[Any]:
    made = working.Home(board.url, "concurrency = 1\n")
    yield made
    made.close()


@pytest.fixture(scope="module")
def worker(home: Any) -> Any:
    """Its default queue runs one job at a time."""
    return home.worker("--queues", "default")


@pytest.fixture(scope="module")
def undisturbed(board: Any, worker: Any) -> str:
    """The hash of the file of `LONG`, run without trouble."""
    job = board.ended(board.start(**LONG | {"seconds": 0}))
    assert job.state == "done"
    return job.result["file"]


def whole(board: Any, job_id: str, file: str) -> Any:
    """The job, ended as if nothing had happened."""
    job = board.ended(job_id)
    assert (job.state, job.result["file"], board.effects(job_id)) == ("done", file, 1), job.reason
    return job


def test_a_killed_pool_process_is_replaced_and_its_job_goes_on(board: Any, worker: Any, undisturbed: str) -> None:
    job_id = board.start(**LONG)
    board.running(job_id, 3)
    (victim,) = worker.pool("default")
    victim.kill()
    killed = time.monotonic()
    quick = board.ended(board.start(steps=1, seconds=0, small=True, priority=10))
    assert quick.state == "done"
    assert time.monotonic() - killed < 10
    job = whole(board, job_id, undisturbed)
    assert job.attempt == 2
    again = [point.step for point in board.jobs.metrics(job_id) if point.attempt == 2]
    assert min(again) >= 2  # it did not begin anew


def test_a_killed_child_costs_seconds(board: Any, worker: Any, undisturbed: str) -> None:
    job_id = board.start(**LONG)
    board.running(job_id, 3)
    (child,) = [one for one in worker.family() if "pointsman.jobs.child" in one.cmdline()]
    child.kill()
    job = whole(board, job_id, undisturbed)
    assert job.attempt == 2


def test_a_killed_celery_process_takes_its_pool_with_it_and_is_started_again(
    board: Any, worker: Any, working: Any, undisturbed: str
) -> None:
    job_id = board.start(**LONG)
    board.running(job_id, 3)
    orphans = [one for one in worker.family() if one.pid in {p.pid for p in worker.pool("default")}]
    worker.children("default")[0].kill()
    working.until(lambda: not any(one.is_running() and one.status() != "zombie" for one in orphans), 10)
    assert whole(board, job_id, undisturbed).attempt == 2


def test_a_killed_dispatcher_is_started_again(board: Any, worker: Any) -> None:
    (victim,) = worker.children("dispatcher")
    victim.kill()
    assert board.ended(board.start(steps=1, seconds=0, small=True)).state == "done"
    assert worker.children("dispatcher")[0].pid != victim.pid


def test_a_flushed_broker_loses_nothing(board: Any, worker: Any, home: Any) -> None:
    blocking = board.start(steps=20, seconds=0.1, chunks=0)
    board.running(blocking)
    waiting = board.start_many(5, steps=1, seconds=0, small=True)
    home.broker.flushall()
    assert {board.ended(job_id).state for job_id in [blocking, *waiting]} == {"done"}


def test_a_killed_broker_is_started_again(board: Any, worker: Any, home: Any, working: Any, undisturbed: str) -> None:
    running = board.start(**LONG)
    board.running(running)
    waiting = board.start_many(5, steps=1, seconds=0, small=True)
    killed = home.broker.info()["process_id"]
    psutil.Process(killed).kill()
    job = whole(board, running, undisturbed)
    assert job.attempt == 1  # what runs needs no broker
    assert {board.ended(job_id).state for job_id in waiting} == {"done"}
    assert home.broker.info()["process_id"] != killed


def test_a_stopped_worker_gives_back_what_it_runs_and_the_next_goes_on(
    board: Any, home: Any, worker: Any, undisturbed: str
) -> None:
    job_id = board.start(**LONG)
    board.running(job_id, 3)
    assert worker.stop() == 0
    given_back = board.jobs.get(job_id)
    assert (given_back.state, given_back.crashes) == ("queued", 0)
    assert not home.path.joinpath("broker", "broker.sock").exists()
    checked = home.command("worker", "--check")
    assert checked.returncode == 1 and "no worker of" in checked.stdout

    again = home.worker("--queues", "default")
    board.running(job_id, given_back.done + 1)
    again.kill()  # all of it at once; only the broker is left behind
    home.worker("--queues", "default")
    job = whole(board, job_id, undisturbed)
    assert job.attempt == 3
    assert home.started[-1].stop() == 0  # the broker of the killed one was taken over, and ended
    assert not home.path.joinpath("broker", "broker.sock").exists()
    assert signal.SIGTERM not in [-running.process.returncode for running in home.started]
