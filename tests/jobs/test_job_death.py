"""Whose fault the end of a job's process was, and what it costs a job that was not at fault: nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from pointsman.jobs.death import death, memory_kills
from pointsman.jobs.runner import Runner
from pointsman.jobs.store import Jobs
from pointsman.jobs.view import JobView
from pointsman.jobs.workplace import Workplace

Start = Callable[..., JobView]


@pytest.mark.parametrize(
    ("code", "before", "after", "words", "own"),
    [
        (17, 0, 0, "its process exited with code 17 and without a word on the job's end", True),
        (0, 0, 0, "its process exited with code 0 and without a word on the job's end", True),
        (-6, 0, 0, "its process was ended by SIGABRT", True),
        (-11, 0, 0, "its process was ended by SIGSEGV", True),
        (-9, 3, 4, "its process was ended by SIGKILL (out of memory)", True),
        (-9, None, None, "its process was ended by SIGKILL (out of memory, or kill -9)", True),
        (-9, 3, 3, "its process was killed from outside by SIGKILL", False),
        (-15, 3, 3, "its process was killed from outside by SIGTERM", False),
    ],
)
def test_whose_fault_it_was(code: int, before: int | None, after: int | None, words: str, own: bool) -> None:
    found = death(code, before, after)
    assert (found.words, found.own) == (words, own)


def test_the_kernels_count_of_kills(tmp_path: Path) -> None:
    file = tmp_path / "vmstat"
    assert memory_kills(file) is None
    file.write_text("nr_free_pages 1\n")
    assert memory_kills(file) is None
    file.write_text("nr_free_pages 1\noom_kill 7\n")
    assert memory_kills(file) == 7


def test_a_process_that_cannot_start_costs_the_job_nothing_and_the_worker_a_rest(
    place: Workplace, jobs: Jobs, start: Start, tmp_path: Path
) -> None:
    """As from a package of which half was replaced: this machine is at fault, and another one runs the job."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "msgspec.py").write_text("raise ImportError('half a package')")
    environment = dict(place.settings.environment)
    environment["PYTHONPATH"] = f"{tmp_path / 'broken'}:{environment['PYTHONPATH']}"
    broken = Runner(replace(place, settings=replace(place.settings, environment=environment)), "broken")
    job = start()
    rests = Rests()
    for _ in range(3):
        assert broken.run(job.id, rests) == "queued"
    broken.close()
    assert rests.taken == [1.0, 2.0, 4.0]
    row = jobs.get(job.id)
    assert (row.crashes, row.losses, row.attempt) == (0, 0, 3)
    assert row.reason == "before the job began: its process exited with code 1 and without a word on the job's end"
    assert any("half a package" in line.message for line in jobs.logs(job.id))
    well = Runner(place, "well")
    assert well.run(job.id) == "done"
    well.close()


def test_a_small_job_that_takes_its_worker_with_it_ends_dead_in_a_process_of_its_own(
    runner: Runner, jobs: Jobs, engine: Engine, start: Start
) -> None:
    guilty = start(small=True, fault="abort")
    with engine.begin() as connection:  # its worker fell silent twice under it
        connection.execute(text("UPDATE job SET losses = 2"))
    innocent = start(small=True)
    found = [one for _ in range(4) for one in runner.run_next(("default",))]
    assert [(one.job_id, one.state) for one in found] == [
        (guilty.id, "queued"), (guilty.id, "queued"), (guilty.id, "dead"), (innocent.id, "done")
    ]  # fmt: skip
    row = jobs.get(guilty.id)
    assert (row.crashes, row.losses) == (3, 2)
    assert row.reason == "crashed 3 times, the last time: its process was ended by SIGABRT"
    errors = [line for line in jobs.logs(guilty.id) if line.level == "error"]
    assert [line.attempt for line in errors] == [1, 2, 3]


class Rests(threading.Event):
    """In place of the event that stops a worker: nobody stops it, and its rests take no time."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[float] = []

    def is_set(self) -> bool:
        return False

    def wait(self, timeout: float | None = None) -> bool:
        self.taken.append(timeout or 0.0)
        return False
