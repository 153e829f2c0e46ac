"""Fixtures for jobs: a database without any, a place to run them in, and jobs run without a child."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, delete

from benchmarks.jobwork import machine
from pointsman.config import Settings
from pointsman.identity import DEFAULT_PROJECT_ID
from pointsman.jobs.attempt import attempt
from pointsman.jobs.claiming import claim
from pointsman.jobs.context import JobContext
from pointsman.jobs.ending import finish
from pointsman.jobs.lease import Claim
from pointsman.jobs.runner import Runner
from pointsman.jobs.store import Jobs
from pointsman.jobs.view import JobView
from pointsman.jobs.workplace import Workplace, new_owner
from pointsman.tables import ArtifactRow, IdempotencyRow, JobRow, RateBucketRow, RouterVersionRow, ScheduleRow

PROJECT = DEFAULT_PROJECT_ID


def until(holds: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The first true value of `holds`, asked again and again."""
    end = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)
    return value


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., Any]:
    return until


@pytest.fixture
def no_jobs(database_url: str, engine: Engine) -> str:
    """The URL of a database without jobs. Deleted row by row: to truncate all tables takes ten times as long."""
    with engine.begin() as connection:
        for table in (JobRow, ArtifactRow, RateBucketRow, ScheduleRow, IdempotencyRow, RouterVersionRow):
            connection.execute(delete(table))
    return database_url


@pytest.fixture
def place(no_jobs: str, tmp_path: Path) -> Workplace:
    """A workplace without a configuration file, on a database without jobs."""
    environment = {"PATH": os.environ["PATH"], "POINTSMAN_HOME": str(tmp_path / "home"), "PYTHONPATH": _path()}
    return Workplace.read(Settings.read(environment, cwd=tmp_path), database_url=no_jobs)


@pytest.fixture
def jobs(engine: Engine, no_jobs: str) -> Jobs:
    return Jobs(engine)


@pytest.fixture
def runner(place: Workplace) -> Iterator[Runner]:
    made = Runner(place, new_owner())
    yield made
    made.close()


@pytest.fixture
def start(jobs: Jobs) -> Callable[..., JobView]:
    """`start(steps=3)` queues a self-test that takes no time unless it is told to; options of `Jobs.start` too."""

    def begin(*, budget: Any = None, dedupe_key: str | None = None, priority: int = 0, **params: Any) -> JobView:
        quick = {"steps": 3, "seconds": 0, "chunks": 3, **params}
        return jobs.start(
            "self-test",
            quick,
            project_id=PROJECT,
            asked_by="test",
            budget=budget,
            dedupe_key=dedupe_key,
            priority=priority,
        )

    return begin


@pytest.fixture
def held(engine: Engine, start: Callable[..., JobView]) -> Claim:
    """A self-test that was claimed by a worker called `first`."""
    claimed = claim(engine, start().id, "first")
    assert claimed is not None
    return claimed


@pytest.fixture
def run_here(place: Workplace, engine: Engine) -> Callable[[str], str | None]:
    """Runs a job without a child; the state it then has."""

    def run(job_id: str) -> str | None:
        claimed = claim(engine, job_id, new_owner())
        assert claimed is not None
        with JobContext.open(place, engine, claimed) as context:
            end = attempt(context)
        return finish(engine, end)

    return run


@pytest.fixture(scope="session")
def working() -> Any:
    """Real workers in homes of their own."""
    return machine


@pytest.fixture(scope="module")
def make_board(database_url: str, working: Any) -> Iterator[Callable[[], Any]]:
    """`make_board()`: a new, migrated database on the run's server, and its jobs."""
    made: list[Any] = []

    def make() -> Any:
        made.append(working.fresh_board(database_url, PROJECT))
        return made[-1]

    yield make
    for board in made:
        board.close()


def _path() -> str:
    """Where the packages are, for children that are started from another folder."""
    return os.pathsep.join(entry for entry in sys.path if entry)
