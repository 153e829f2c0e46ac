"""What anybody may do with jobs: start them once, find them, cancel them, try them again."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import psycopg
import pytest
from sqlalchemy import Engine, text

from pointsman.database.engine import make_engine, psycopg_url
from pointsman.errors import UserError
from pointsman.ids import new_id
from pointsman.jobs.claiming import claim
from pointsman.jobs.ending import End, finish
from pointsman.jobs.store import Jobs, Order, same_work
from pointsman.jobs.view import JobView

Start = Callable[..., JobView]
PROJECT = new_id()
OTHER = new_id()


def begin(jobs: Jobs, project_id: str = PROJECT, **options: object) -> JobView:
    return jobs.start("self-test", {"small": True}, project_id=project_id, asked_by="me", **options)  # type: ignore[arg-type]


def end(engine: Engine, job_id: str, state: str) -> None:
    held = claim(engine, job_id, "w")
    assert held is not None
    assert finish(engine, End(held, state, "because")) == state  # type: ignore[arg-type]


def test_a_job_starts_with_all_that_was_asked(jobs: Jobs) -> None:
    job = jobs.start(
        "self-test", {"steps": 7}, project_id=PROJECT, asked_by="key pm_1", budget=Decimal("1.5"), priority=9
    )
    assert (job.state, job.kind, job.queue, job.priority, job.small) == ("queued", "self-test", "default", 9, False)
    assert (job.budget, job.cost, job.asked_by, job.attempt, job.fence) == (Decimal("1.5"), 0, "key pm_1", 0, 0)
    assert job.params["steps"] == 7 and job.params["chunks"] == 20, "defaults are kept too"
    assert jobs.get(job.id) == job


def test_what_is_wrong_starts_nothing(jobs: Jobs) -> None:
    with pytest.raises(UserError, match="no job kind 'x'"):
        jobs.start("x", {}, project_id=PROJECT, asked_by=None)
    with pytest.raises(UserError, match=r"params\.steps: expected a whole number"):
        jobs.start("self-test", {"steps": "3"}, project_id=PROJECT, asked_by=None)
    with pytest.raises(UserError, match="budget: expected USD from 0"):
        begin(jobs, budget=Decimal(-1))
    with pytest.raises(UserError, match="priority: expected a whole number from -1000 to 1000, got 5000"):
        begin(jobs, priority=5000)
    assert jobs.list() == []


def test_ten_that_click_at_once_start_one_job(jobs: Jobs, database_url: str) -> None:
    engine = make_engine(database_url, pool_size=10)
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda _: begin(Jobs(engine), dedupe_key="labels"), range(10)))
    engine.dispose()
    assert len({job.id for job in found}) == 1
    assert len(jobs.list()) == 1


def test_a_dedupe_key_is_free_again_when_its_job_has_ended(jobs: Jobs, engine: Engine) -> None:
    first = begin(jobs, dedupe_key="labels")
    assert begin(jobs, OTHER, dedupe_key="labels").id != first.id, "it is the project's own"
    end(engine, first.id, "done")
    assert begin(jobs, dedupe_key="labels").id != first.id


def test_equal_work_has_an_equal_key() -> None:
    assert same_work("self-test", {"steps": 20}) == same_work("self-test", {})
    assert same_work("self-test", {"steps": 21}) != same_work("self-test", {})
    assert same_work("retention", {}) != same_work("self-test", {})


def test_many_start_together_and_duplicates_collapse(jobs: Jobs) -> None:
    orders = [Order({"small": True, "seed": n}, f"seed {n % 40}") for n in range(50)]
    made = jobs.start_many("self-test", orders, project_id=PROJECT, asked_by="me")
    assert len(made) == len(set(made)) == 40
    assert sorted(job.id for job in jobs.list(limit=100)) == sorted(made)
    assert {job.small for job in jobs.list(limit=100)} == {True}


def test_starting_and_cancelling_are_announced(jobs: Jobs, database_url: str) -> None:
    with psycopg.connect(psycopg_url(database_url), autocommit=True) as listener:
        listener.execute("LISTEN pointsman_jobs")
        job = begin(jobs)
        jobs.start_many("self-test", [Order({"small": True})], project_id=PROJECT, asked_by=None)
        jobs.cancel(job.id)
        heard = [note.payload for note in listener.notifies(timeout=20, stop_after=3)]
    assert heard == [job.id, "*", job.id]


def test_a_job_is_found_in_its_own_project_alone(jobs: Jobs) -> None:
    job = begin(jobs)
    assert jobs.find(job.id, project_id=PROJECT) == job
    assert jobs.find(job.id, project_id=OTHER) is None
    assert jobs.find("' OR 1=1") is None
    with pytest.raises(UserError, match=f"no job '{job.id}'; `pointsman jobs list` shows"):
        jobs.get(job.id, project_id=OTHER)
    assert [one.id for one in jobs.list(project_id=PROJECT)] == [job.id]
    assert jobs.list(project_id=OTHER) == []


def test_lists_are_filtered_and_paged(jobs: Jobs, engine: Engine) -> None:
    made = [begin(jobs).id for _ in range(5)]
    end(engine, made[0], "failed")
    assert [job.id for job in jobs.list(limit=2)] == [made[4], made[3]]
    assert [job.id for job in jobs.list(limit=2, before=made[3])] == [made[2], made[1]]
    assert [job.id for job in jobs.list(state="failed")] == [made[0]]
    assert jobs.list(kind="retention") == []
    assert jobs.counts() == {"queued": 4, "failed": 1}
    with pytest.raises(UserError, match=r"state: expected one of queued, running, .*, got 'lost'"):
        jobs.list(state="lost")
    with pytest.raises(UserError, match="before: expected the id of a job"):
        jobs.list(before="x")


def test_a_waiting_job_is_cancelled_at_once(jobs: Jobs, engine: Engine) -> None:
    job = jobs.cancel(begin(jobs).id)
    assert (job.state, job.reason) == ("cancelled", "cancelled")
    assert job.ended_at is not None
    assert claim(engine, job.id, "w") is None


def test_a_running_job_is_to_be_cancelled_by_its_worker(jobs: Jobs, engine: Engine) -> None:
    job = begin(jobs)
    held = claim(engine, job.id, "w")
    assert held is not None
    assert jobs.cancel(job.id).state == "cancelling"
    assert finish(engine, End(held, "failed", "something else")) == "cancelled"


def test_what_was_done_before_the_cancelling_was_noticed_is_done(jobs: Jobs, engine: Engine) -> None:
    job = begin(jobs)
    held = claim(engine, job.id, "w")
    assert held is not None
    jobs.cancel(job.id)
    assert finish(engine, End(held, "done", None, {"n": 1})) == "done"
    assert jobs.get(job.id).result == {"n": 1}


def test_a_finished_job_stays_as_it_is_when_cancelled(jobs: Jobs, engine: Engine) -> None:
    job = begin(jobs)
    end(engine, job.id, "failed")
    assert jobs.cancel(job.id).state == "failed"


def test_jobs_that_a_job_started_are_cancelled_with_it(jobs: Jobs) -> None:
    parent = begin(jobs)
    child = begin(jobs, parent_id=parent.id)
    grandchild = begin(jobs, parent_id=child.id)
    other = begin(jobs)
    jobs.cancel(parent.id)
    assert [jobs.get(one.id).state for one in (child, grandchild, other)] == ["cancelled", "cancelled", "queued"]
    assert [job.id for job in jobs.list(parent_id=parent.id)] == [child.id]


@pytest.mark.parametrize("state", ["failed", "cancelled", "dead"])
def test_what_did_not_work_is_tried_again_with_what_it_had(jobs: Jobs, engine: Engine, state: str) -> None:
    job = begin(jobs, budget=Decimal(1))
    with engine.begin() as connection:
        connection.execute(text("UPDATE job SET checkpoint = '{\"at\": 5}', crashes = 2, cost = 0.75"))
    end(engine, job.id, state)
    again = jobs.retry(job.id, budget=Decimal(3))
    assert (again.state, again.reason, again.crashes, again.ended_at) == ("queued", None, 0, None)
    assert (again.checkpoint, again.cost, again.budget) == ({"at": 5}, Decimal("0.75"), Decimal(3))


def test_only_what_did_not_work_is_tried_again(jobs: Jobs, engine: Engine) -> None:
    job = begin(jobs)
    with pytest.raises(UserError, match=f"job {job.id} is queued; only a failed, cancelled or dead job can be tried"):
        jobs.retry(job.id)
    end(engine, job.id, "done")
    with pytest.raises(UserError, match="is done; only"):
        jobs.retry(job.id)
    with pytest.raises(UserError, match="no job"):
        jobs.retry(new_id())


def test_a_job_is_not_tried_again_beside_its_twin(jobs: Jobs, engine: Engine) -> None:
    first = begin(jobs, dedupe_key="k")
    end(engine, first.id, "failed")
    second = begin(jobs, dedupe_key="k")
    with pytest.raises(UserError, match=f"job {second.id} does the same and is queued"):
        jobs.retry(first.id)
