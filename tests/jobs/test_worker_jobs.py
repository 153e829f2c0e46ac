"""Jobs under a real `pointsman worker` with its embedded broker: once, in order, and ended as they should be.

Leases last 2 s and messages become visible again after 2, far below the longest job here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def board(make_board: Callable[[], Any]) -> Any:
    return make_board()


@pytest.fixture(scope="module")
def early(board: Any) -> list[str]:
    """Jobs that waited before there was a worker, for longer than a message would."""
    return [board.start(steps=1, seconds=0, chunks=0) for _ in range(6)]


@pytest.fixture(scope="module")
def worker(board: Any, working: Any, early: list[str]) -> Iterator[Any]:
    home = working.Home(board.url)
    yield home.worker()
    home.close()


def test_what_waited_before_there_was_a_worker_runs_once(board: Any, worker: Any, early: list[str]) -> None:
    jobs = [board.ended(job_id) for job_id in early]
    assert {(job.state, job.attempt) for job in jobs} == {("done", 1)}
    assert [board.effects(job.id) for job in jobs] == [1] * 6


def test_a_job_longer_than_the_visibility_timeout_and_the_lease_runs_once(board: Any, worker: Any) -> None:
    job = board.ended(board.start(steps=10, seconds=0.5, chunks=0))
    assert (job.state, job.attempt, job.crashes, job.fence) == ("done", 1, 0, 1)
    assert board.effects(job.id) == 1


def test_a_part_that_fails_fails_its_job_within_seconds(board: Any, worker: Any) -> None:
    began = time.monotonic()
    job_id = board.start(steps=0, chunks=200, chunk_seconds=0.2, fault="error", fault_at=3)
    board.ended(job_id)
    job = board.jobs.get(job_id)
    assert job.state == "failed" and "it was told to fail at 3" in job.reason
    assert (job.ended_at - job.started_at).total_seconds() < 10
    assert time.monotonic() - began < 60


def test_a_child_that_aborts_is_tried_again_and_then_dead(board: Any, worker: Any) -> None:
    job = board.ended(board.start(steps=2, seconds=0, fault="abort", fault_at=1))
    assert (job.state, job.crashes, job.attempt) == ("dead", 3, 3)
    assert "crashed 3 times" in job.reason and "SIGABRT" in job.reason
    after = board.ended(board.start(steps=1, seconds=0, chunks=0))
    assert after.state == "done"


def test_an_urgent_job_overtakes_a_long_queue(board: Any, worker: Any) -> None:
    slow = board.start_many(1_000, steps=1, seconds=0.005, small=True)
    urgent = board.ended(board.start(steps=1, seconds=0, small=True, priority=100))
    board.ended(slow[-1])
    (row,) = board.sql("SELECT count(*) AS n FROM job WHERE id = ANY(:ids) AND started_at > :at",
                       ids=slow, at=urgent.started_at)  # fmt: skip
    assert row.n > 0, "it was among the last to start"
    assert (urgent.started_at - urgent.created_at).total_seconds() < 5


def test_a_training_job_keeps_no_probe_waiting(board: Any, worker: Any) -> None:
    training = board.start_in("train", steps=200, seconds=0.2, chunks=0)
    waiting = board.start_in("train", steps=1, seconds=0, chunks=0)
    board.running(training)
    probe = board.ended(board.start_in("probe", steps=1, seconds=0, chunks=0))
    assert probe.state == "done"
    assert board.jobs.get(waiting).state == "queued"  # one at a time in that queue
    assert board.jobs.cancel(training).state == "cancelling"
    cancelled = board.ended(training)
    assert cancelled.state == "cancelled" and board.effects(training) == 0
    assert board.ended(waiting).state == "done"


def test_cancelling_reaches_native_code(board: Any, worker: Any) -> None:
    job_id = board.start(steps=3, seconds=60, load="hash", chunks=0)
    job = _when(lambda: (found := board.jobs.get(job_id)).state == "running" and found)
    board.jobs.cancel(job.id)
    asked = time.monotonic()
    assert board.ended(job_id).state == "cancelled"
    assert time.monotonic() - asked < 5


def test_an_idle_process_helps_with_the_parts_of_a_job(board: Any, worker: Any) -> None:
    job = board.ended(board.start(steps=0, chunks=60, chunk_seconds=0.1, concurrency=1))
    assert job.state == "done"
    rows = board.sql("SELECT DISTINCT split_part(lease_owner, ':', 1) AS who FROM job_chunk WHERE job_id = :id",
                     id=job.id)  # fmt: skip
    assert {row.who for row in rows} == {"job", "help"}


def test_health_and_doctor_say_how_it_is(board: Any, worker: Any) -> None:
    board.sql("UPDATE job SET state = 'dead' WHERE id = :id", id=board.ended(board.start(steps=0, small=True)).id)
    checked = worker.home.command("worker", "--check")
    assert checked.returncode == 0, checked.stdout
    lines = [line.strip() for line in checked.stdout.splitlines()]
    assert lines[0] == f"worker {worker.process.pid}: alive"
    assert lines[1:] == ["default: well", "dispatcher: well", "probe: well", "train: well"]
    doctor = worker.home.command("doctor", "--timeout", "0.2").stdout
    (said,) = [line for line in doctor.splitlines() if line[5:].startswith("jobs ")]
    assert said.startswith("warn") and " dead" in said


def _when(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found
