"""The parts of a job: each done once, by whoever is free, and what goes wrong with one ends the job."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, text

from pointsman.database.engine import make_engine
from pointsman.errors import BrokenInvariant, ChunkFailed
from pointsman.jobs.attempt import help_out
from pointsman.jobs.chunks import ATTEMPTS, Chunks, holder
from pointsman.jobs.claiming import claim
from pointsman.jobs.context import JobContext
from pointsman.jobs.ending import crashed
from pointsman.jobs.lease import Claim
from pointsman.jobs.store import Jobs
from pointsman.jobs.view import JobView
from pointsman.jobs.workplace import Workplace

Start = Callable[..., JobView]


@pytest.fixture
def context(place: Workplace, engine: Engine, held: Claim) -> Iterator[JobContext]:
    with JobContext.open(place, engine, held) as opened:
        yield opened


def helper(context: JobContext, engine: Engine) -> Iterator[JobContext]:
    return JobContext.open(context.place, engine, replace(context.held, owner="help:b", fence=-1), helper="help:b")  # type: ignore[return-value]


def lapse(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE job_chunk SET lease_until = clock_timestamp() - interval '1 s'"))


def rows(engine: Engine, columns: str = "number, state, attempts") -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        found = connection.execute(text(f"SELECT {columns} FROM job_chunk ORDER BY stage, number"))
        return [tuple(row) for row in found]


def test_results_come_in_the_order_of_the_items(context: JobContext) -> None:
    def slow_first(item: int) -> dict[str, int]:
        time.sleep(0.05 if item == 0 else 0)
        return {"square": item * item}

    found = list(context.fan_out("chunks", range(20), slow_first, concurrency=4))
    assert found == [{"square": n * n} for n in range(20)]


def test_no_items_are_no_work(context: JobContext) -> None:
    assert list(context.fan_out("chunks", [], lambda item: item)) == []


def test_no_more_are_under_way_than_was_said(context: JobContext) -> None:
    lock, now, most = threading.Lock(), 0, 0

    def work(item: int) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1

    list(context.fan_out("chunks", range(30), work, concurrency=3))
    assert most == 3


def test_progress_is_that_of_all_parts(context: JobContext, jobs: Jobs) -> None:
    list(context.fan_out("chunks", range(10), lambda item: item))
    context._log.flush()
    row = jobs.get(context.job_id)
    assert (row.done, row.total) == (10, 10)


def test_a_part_that_fails_fails_the_job_and_the_others_are_kept(context: JobContext, jobs: Jobs) -> None:
    def work(item: int) -> int:
        if item == 7:
            time.sleep(0.2)
            raise ValueError("no answer")
        return item

    with pytest.raises(ChunkFailed, match="part 7 of stage chunks failed: ValueError: no answer"):
        context.fan_out("chunks", range(8), work, concurrency=4)
    assert context.chunks.counts("chunks") == {"done": 7, "failed": 1}
    assert "Traceback" in "\n".join(line.message for line in jobs.logs(context.job_id))


def test_after_a_retry_only_what_failed_is_done_again(
    place: Workplace, engine: Engine, jobs: Jobs, start: Start, run_here: Callable[[str], str | None]
) -> None:
    job = start(chunks=10, fault="error", fault_at=3 + 5)
    assert run_here(job.id) == "failed"
    with engine.begin() as connection:
        connection.execute(text('UPDATE job SET params = params || \'{"fault": "none"}\''))
    done_before = {number for number, state, _ in rows(engine) if state == "done"}
    jobs.retry(job.id)
    assert run_here(job.id) == "done"
    assert 0 < len(done_before) < 10 and 5 not in done_before
    assert {attempts for _, _, attempts in rows(engine)} == {1}, "those that were done were not begun again"


def test_workers_share_the_parts_and_none_is_done_twice(context: JobContext, engine: Engine, database_url: str) -> None:
    context.chunks.add(context.held, "chunks", range(200))
    engines = [make_engine(database_url) for _ in range(4)]
    done: Counter[int] = Counter()

    def drain(n: int) -> None:
        chunks = Chunks(engines[n], context.job_id, f"help:{n}")
        while batch := chunks.claim(7):
            for chunk in batch:
                done[chunk.number] += 1
            chunks.finish([(chunk, chunk.params * 2) for chunk in batch])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(drain, range(4)))
    for one in engines:
        one.dispose()
    assert done == Counter(range(200))
    assert list(context.chunks.results("chunks")) == [n * 2 for n in range(200)]


def test_a_helper_does_the_same_work(place: Workplace, context: JobContext, engine: Engine) -> None:
    context.chunks.add(context.held, "chunks", range(3))
    with helper(context, engine) as other:
        assert help_out(other) == 3
    assert context.chunks.counts("chunks") == {"done": 3}


def test_a_part_that_fails_at_a_helper_fails_the_job(context: JobContext, engine: Engine) -> None:
    """Although the job's own worker is busy with another part."""
    begun, over = threading.Event(), threading.Event()

    def work(item: int) -> None:
        begun.set()
        assert over.wait(60)

    def fail_elsewhere() -> None:
        assert begun.wait(60)
        chunks = Chunks(engine, context.job_id, "help:b")
        (chunk,) = chunks.claim(1)
        chunks.fail(chunk, "the provider is gone")

    elsewhere = threading.Thread(target=fail_elsewhere)
    elsewhere.start()
    with pytest.raises(ChunkFailed, match="part 1 of stage chunks failed: the provider is gone"):
        context.fan_out("chunks", [0, 1], work, concurrency=1)
    elsewhere.join()
    over.set()


def test_what_a_dead_helper_had_begun_is_done_by_another(context: JobContext, engine: Engine) -> None:
    context.chunks.add(context.held, "chunks", [0, 1])
    dead = Chunks(engine, context.job_id, "help:dead")
    (begun,) = dead.claim(1)
    alive = Chunks(engine, context.job_id, "help:alive")
    assert [chunk.number for chunk in alive.claim(5)] == [1]
    lapse(engine)
    (again,) = [chunk for chunk in alive.claim(5) if chunk.number == 0]
    assert again.attempts == 2
    dead.finish([(begun, "stale")])
    assert rows(engine)[0] == (0, "running", 2), "what comes from a dead helper is not taken"
    alive.finish([(again, "fresh")])
    assert rows(engine, "state, result")[0] == ("done", "fresh")


def test_a_lease_is_kept_and_given_back(context: JobContext, engine: Engine) -> None:
    context.chunks.add(context.held, "chunks", [0, 1])
    mine = context.chunks.claim(2)
    lapse(engine)
    context.chunks.keep(mine[:1])
    assert [chunk.number for chunk in Chunks(engine, context.job_id, "help:b").claim(5)] == [1]
    context.chunks.release(mine)
    assert rows(engine) == [(0, "queued", 0), (1, "running", 2)]


def test_a_new_attempt_takes_back_what_the_old_one_had_begun(
    place: Workplace, context: JobContext, engine: Engine
) -> None:
    context.chunks.add(context.held, "chunks", [0, 1, 2])
    context.chunks.finish([(context.chunks.claim(1)[0], "first")])
    context.chunks.claim(1)
    Chunks(engine, context.job_id, "help:b").claim(1)
    crashed(engine, context.held, "killed")
    again = claim(engine, context.job_id, "second")
    assert again is not None
    Chunks(engine, context.job_id, holder(again.job_id, again.fence)).recall(again, "chunks")
    assert rows(engine, "number, state") == [(0, "done"), (1, "queued"), (2, "running")], "a helper goes on"


def test_a_part_that_kills_its_workers_is_failed(context: JobContext, engine: Engine) -> None:
    context.chunks.add(context.held, "chunks", [0])
    for n in range(ATTEMPTS):
        assert len(Chunks(engine, context.job_id, f"help:{n}").claim(1)) == 1
        lapse(engine)
    assert context.chunks.claim(1) == []
    assert context.chunks.failure("chunks") == (
        0,
        f"was begun {ATTEMPTS} times and never ended: it takes its worker with it",
    )


def test_parts_of_a_job_that_does_not_run_are_not_given_out(context: JobContext, jobs: Jobs, engine: Engine) -> None:
    context.chunks.add(context.held, "chunks", [0, 1])
    other = Chunks(engine, context.job_id, "help:b")
    (begun,) = other.claim(1)
    jobs.cancel(context.job_id)
    assert other.claim(1) == []
    other.finish([(begun, "late")])
    assert rows(engine)[0] == (0, "running", 1), "nor are their results taken"


def test_parts_need_work(place: Workplace, context: JobContext) -> None:
    with pytest.raises(BrokenInvariant, match="self-test jobs name no part, and fan_out was given no work"):
        context.fan_out("chunks", [1])
