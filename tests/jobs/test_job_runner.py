"""Jobs in their processes: killed, stopped, cancelled in native code, helped, and always the same result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text

from pointsman.jobs.ending import expire_leases
from pointsman.jobs.runner import Ran, Runner
from pointsman.jobs.self_test import EFFECT
from pointsman.jobs.store import Jobs, Order
from pointsman.jobs.view import JobView
from pointsman.jobs.workplace import Workplace, new_owner

Start = Callable[..., JobView]
RunHere = Callable[[str], str | None]
Until = Callable[..., Any]

WORKER = """
import sys
from pointsman.config import Settings
from pointsman.jobs.runner import Runner
from pointsman.jobs.workplace import Workplace, new_owner
runner = Runner(Workplace.read(Settings.read(), database_url=sys.argv[1]), new_owner())
runner.run(sys.argv[2])
"""


def children(pid: int) -> list[int]:
    """The processes that a process started and that live."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def child_of(pid: int, until: Until) -> int:
    """The job's process under a worker. (A test's own process may have others: PostgreSQL's.)"""

    def jobs() -> list[int]:
        return [one for one in children(pid) if b"pointsman.jobs.child" in Path(f"/proc/{one}/cmdline").read_bytes()]

    return int(until(jobs)[0])


def stepped(jobs: Jobs, job_id: str, least: int) -> bool:
    return bool((jobs.get(job_id).checkpoint.get("steps") or [0])[0] >= least)


def published(jobs: Jobs, job_id: str) -> int:
    return sum(line.message == EFFECT for line in jobs.logs(job_id))


def leavings(place: Workplace) -> list[str]:
    """What attempts left in the home, and half written artifacts."""
    home = place.settings.home
    return [str(path) for pattern in ("jobs/*", "artifacts/unfinished/*") for path in home.glob(pattern)]


def test_a_job_runs_in_a_process_of_its_own(runner: Runner, place: Workplace, jobs: Jobs, start: Start) -> None:
    job = start()
    assert runner.run_next(("train",)) == []
    assert runner.run_next(("default",)) == [Ran(job.id, "done")]
    row = jobs.get(job.id)
    assert (row.state, row.attempt, row.stages_done) == ("done", 1, ["steps", "chunks", "publish"])
    assert row.result is not None and row.result["file"] == jobs.artifacts(job.id)[0].hash
    assert published(jobs, job.id) == 1 and leavings(place) == []
    assert runner.run(job.id) is None, "a second message for it changes nothing"


def test_a_killed_child_is_resumed_with_the_same_result(
    runner: Runner, place: Workplace, jobs: Jobs, start: Start, run_here: RunHere, until: Until
) -> None:
    undisturbed = start(steps=8)
    run_here(undisturbed.id)
    job = start(steps=8, seconds=0.1)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.run, job.id)
        until(lambda: stepped(jobs, job.id, 2))
        os.kill(child_of(os.getpid(), until), signal.SIGKILL)
        assert running.result() == "queued"
    row = jobs.get(job.id)
    assert (row.crashes, row.losses) in ((0, 1), (1, 0)) and "SIGKILL" in (row.reason or "")
    begun = row.checkpoint["steps"][0]
    assert begun >= 2
    assert runner.run(job.id) == "done"
    assert jobs.artifacts(job.id)[0].hash == jobs.artifacts(undisturbed.id)[0].hash
    assert published(jobs, job.id) == 1 and leavings(place) == []
    steps = [(point.step, point.attempt) for point in jobs.metrics(job.id, "step")]
    assert [step for step, attempt in steps if attempt == 2] == list(range(begun, 8)), "no kept step was taken again"


def test_a_killed_worker_takes_its_child_with_it_and_another_goes_on(
    runner: Runner, place: Workplace, engine: Engine, jobs: Jobs, start: Start, run_here: RunHere, until: Until
) -> None:
    undisturbed = start(steps=8, chunks=12)
    run_here(undisturbed.id)
    job = start(steps=8, seconds=0.1, chunks=12)
    command = [sys.executable, "-c", WORKER, place.database_url, job.id]
    worker = subprocess.Popen(command, env=dict(place.environment()))
    until(lambda: stepped(jobs, job.id, 2))
    child = child_of(worker.pid, until)
    worker.kill()
    worker.wait()
    until(lambda: not alive(child), seconds=5)
    assert runner.run(job.id) is None, "its lease is not over"
    expire_leases(engine, datetime.now(UTC) + timedelta(seconds=60))
    assert runner.run(job.id) == "done"
    row = jobs.get(job.id)
    assert row.attempt == 2
    assert jobs.artifacts(job.id)[0].hash == jobs.artifacts(undisturbed.id)[0].hash
    assert published(jobs, job.id) == 1 and leavings(place) == []


def test_a_child_that_leaves_without_a_word_has_crashed(runner: Runner, jobs: Jobs, start: Start) -> None:
    job = start(fault="exit", fault_at=1)
    assert runner.run(job.id) == "queued"
    assert jobs.get(job.id).reason == "its process exited with code 17 and without a word on the job's end"


def test_a_kind_that_this_machine_does_not_know_waits_for_one_that_does(
    runner: Runner, jobs: Jobs, start: Start, engine: Engine
) -> None:
    """As while versions are replaced one by one."""
    job = start()
    with engine.begin() as connection:
        connection.execute(text("UPDATE job SET kind = 'nosuch'"))
    assert runner.run(job.id) == "queued"
    error = next(line.message for line in jobs.logs(job.id) if line.level == "error")
    assert "exited with code 1" in error and "no job kind 'nosuch'" in error
    assert (jobs.get(job.id).crashes, jobs.get(job.id).losses) == (0, 0)


def test_cancelling_takes_less_than_five_seconds_in_native_code(
    runner: Runner, place: Workplace, jobs: Jobs, start: Start, until: Until
) -> None:
    made = [start(steps=2, seconds=120, load=load) for load in ("sleep", "hash")]
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(runner.run, job.id) for job in made]
        until(lambda: all(jobs.get(job.id).stage == "steps" for job in made))
        began = time.monotonic()
        assert [jobs.cancel(job.id).state for job in made] == ["cancelling", "cancelling"]
        until(lambda: all(jobs.get(job.id).finished for job in made))
        assert time.monotonic() - began < 5
        assert [one.result() for one in running] == ["cancelled", "cancelled"]
    for job in made:
        row = jobs.get(job.id)
        assert (row.state, row.reason, row.result) == ("cancelled", "cancelled", None)
        assert jobs.artifacts(job.id) == [] and published(jobs, job.id) == 0
    assert leavings(place) == []


def test_a_worker_that_is_stopped_gives_its_job_back(
    runner: Runner, place: Workplace, jobs: Jobs, start: Start, until: Until
) -> None:
    job = start(steps=100, seconds=0.1)
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.run_next, ("default",), stop)
        until(lambda: stepped(jobs, job.id, 1))
        stop.set()
        assert running.result() == [Ran(job.id, "queued")]
    row = jobs.get(job.id)
    assert (row.state, row.crashes) == ("queued", 0)
    assert row.checkpoint["steps"][0] >= 1 and leavings(place) == []


def test_a_worker_that_lost_its_job_lets_go(
    runner: Runner, jobs: Jobs, engine: Engine, start: Start, until: Until
) -> None:
    job = start(steps=1_000, seconds=0.05)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.run, job.id)
        until(lambda: stepped(jobs, job.id, 1))
        with engine.begin() as connection:
            connection.execute(text("UPDATE job SET fence = fence + 1, lease_owner = 'another'"))
        assert running.result() is None
    assert children(os.getpid()) == [] or not any(
        b"jobs.child" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(os.getpid())
    )
    assert jobs.get(job.id).lease_owner == "another"


def test_a_job_outlives_its_connections(
    runner: Runner, engine: Engine, jobs: Jobs, start: Start, run_here: RunHere, until: Until
) -> None:
    """As when Postgres restarts, or a firewall forgets."""
    undisturbed = start(steps=20)
    run_here(undisturbed.id)
    job = start(steps=20, seconds=0.1)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.run, job.id)
        until(lambda: stepped(jobs, job.id, 1))
        while not running.done():
            with engine.begin() as connection:
                connection.execute(
                    text(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE application_name IN ('pointsman-job', 'pointsman-worker')"
                    )
                )
            time.sleep(0.3)
        assert running.result() == "done"
    assert jobs.get(job.id).attempt == 1
    assert jobs.artifacts(job.id)[0].hash == jobs.artifacts(undisturbed.id)[0].hash
    assert published(jobs, job.id) == 1


def test_another_worker_helps_with_the_parts(
    runner: Runner, place: Workplace, engine: Engine, jobs: Jobs, start: Start, run_here: RunHere, until: Until
) -> None:
    undisturbed = start(steps=0, chunks=80)
    run_here(undisturbed.id)
    job = start(steps=0, chunks=80, chunk_seconds=0.25, concurrency=1)
    other = Runner(place, new_owner())
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(runner.run, job.id)
        until(lambda: jobs.get(job.id).state == "running")
        until(lambda: parts(engine, job.id))
        helping = pool.submit(other.help, job.id)
        assert running.result() == "done"
        assert helping.result() is True
    other.close()
    found = parts(engine, job.id)
    assert len(found) == 80 and {attempts for _, attempts in found} == {1}, "each part was begun once"
    assert {owner.split(":")[0] for owner, _ in found} == {"job", "help"}
    assert jobs.artifacts(job.id)[0].hash == jobs.artifacts(undisturbed.id)[0].hash
    assert leavings(place) == []


def parts(engine: Engine, job_id: str) -> list[tuple[str, int]]:
    with engine.connect() as connection:
        statement = text("SELECT coalesce(lease_owner, ''), attempts FROM job_chunk WHERE job_id = :id")
        return [(row[0], row[1]) for row in connection.execute(statement, {"id": job_id})]


def test_small_jobs_run_in_the_worker_many_at_a_time(runner: Runner, jobs: Jobs) -> None:
    orders = [Order({"small": True, "steps": 1, "seconds": 0, "seed": n}) for n in range(150)]
    made = jobs.start_many("self-test", orders, project_id=_project(), asked_by="me")
    ran: list[Ran] = []
    while some := runner.run_next(("default",)):
        ran += some
    assert sorted(one.job_id for one in ran if one.state == "done") == sorted(made)
    assert jobs.counts() == {"done": 150}
    row = jobs.get(made[0])
    assert row.result is not None and len(row.result["digest"]) == 64 and row.attempt == 1


def test_a_small_job_that_fails_fails_alone(runner: Runner, jobs: Jobs, start: Start) -> None:
    good, bad, skipped = start(small=True), start(small=True, fault="error"), start(small=True, fault="skip")
    assert [one.state for one in runner.run_next(("default",))] == ["done", "failed", "skipped"]
    assert jobs.get(bad.id).reason == "ValueError: it was told to fail at 0"
    assert (jobs.get(good.id).state, jobs.get(skipped.id).reason) == ("done", "it was told to skip")


def test_something_urgent_does_not_wait_for_a_batch(runner: Runner, jobs: Jobs, start: Start) -> None:
    for _ in range(20):
        start(small=True, steps=1, seconds=0.3)
    first = runner.run_next(("default",))
    assert 0 < len(first) < 20, "the rest of the batch was given back after a second"
    urgent = start(small=True, steps=0, priority=10)
    assert runner.run_next(("default",))[0].job_id == urgent.id
    assert {job.crashes for job in jobs.list()} == {0}


def test_a_stopped_worker_gives_small_jobs_back(runner: Runner, jobs: Jobs, start: Start) -> None:
    for _ in range(3):
        start(small=True)
    stop = threading.Event()
    stop.set()
    assert runner.run_next(("default",), stop) == []
    assert jobs.counts() == {"queued": 3}


def _project() -> str:
    from pointsman.identity import DEFAULT_PROJECT_ID

    return DEFAULT_PROJECT_ID
