"""Who may run a job: one at a time, the most urgent first, and what a stale worker writes changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from pointsman.database.engine import make_engine
from pointsman.errors import JobCancelled, LeaseLost
from pointsman.ids import new_id
from pointsman.jobs.claiming import claim, claim_next
from pointsman.jobs.context import JobContext
from pointsman.jobs.ending import End, crashed, expire_leases, finish, finish_many, killed, release, release_many
from pointsman.jobs.lease import Claim, begin, recover, renew
from pointsman.jobs.store import Jobs, Order
from pointsman.jobs.view import JobView
from pointsman.jobs.workplace import Workplace

Start = Callable[..., JobView]


def later(seconds: float = 60) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def test_of_many_workers_one_gets_the_job(start: Start, jobs: Jobs, database_url: str) -> None:
    job = start()
    engine = make_engine(database_url, pool_size=8)
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda n: claim(engine, job.id, f"w{n}"), range(8)))
    engine.dispose()
    won = [one for one in claims if one is not None]
    assert len(won) == 1
    row = jobs.get(job.id)
    assert (row.state, row.attempt, row.fence, row.lease_owner) == ("running", 1, 1, won[0].owner)


def test_a_message_that_comes_twice_runs_once(start: Start, engine: Engine) -> None:
    job = start()
    held = claim(engine, job.id, "w")
    assert held is not None
    assert claim(engine, job.id, "w") is None, "while it runs, even for the same worker"
    finish(engine, End(held, "done"))
    assert claim(engine, job.id, "w") is None, "and after it has ended"


def test_the_urgent_come_first_and_then_the_oldest(start: Start, engine: Engine) -> None:
    first, second, urgent = start(), start(), start(priority=10)
    order = [claim_next(engine, ("default",), "w")[0].job_id for _ in range(3)]
    assert order == [urgent.id, first.id, second.id]
    assert claim_next(engine, ("default",), "w") == []


def test_a_queue_gives_its_own_jobs_alone(start: Start, engine: Engine) -> None:
    job = start()
    assert claim_next(engine, ("train", "probe"), "w") == []
    assert claim_next(engine, ("probe", "default"), "w")[0].job_id == job.id


def test_small_jobs_are_claimed_together(jobs: Jobs, start: Start, engine: Engine) -> None:
    small = [start(small=True).id for _ in range(3)]
    large = start().id
    small.append(start(small=True).id)
    assert [one.job_id for one in claim_next(engine, ("default",), "w", small_together=10)] == small
    assert [one.job_id for one in claim_next(engine, ("default",), "w", small_together=10)] == [large]


def test_a_small_job_that_was_in_a_crash_runs_alone(start: Start, engine: Engine) -> None:
    made = [start(small=True).id for _ in range(3)]
    for held in claim_next(engine, ("default",), "w", small_together=2):
        crashed(engine, held, "the worker died")
    batches = [claim_next(engine, ("default",), "w", small_together=10) for _ in range(3)]
    assert [[one.job_id for one in batch] for batch in batches] == [[made[0]], [made[1]], [made[2]]]


def test_two_workers_never_get_the_same_small_job(jobs: Jobs, database_url: str) -> None:
    made = jobs.start_many(
        "self-test", [Order({"small": True}) for _ in range(200)], project_id=new_id(), asked_by="me"
    )
    engine = make_engine(database_url, pool_size=4)

    def drain(n: int) -> list[str]:
        got: list[str] = []
        while batch := claim_next(engine, ("default",), f"w{n}", small_together=7):
            got += [one.job_id for one in batch]
        return got

    with ThreadPoolExecutor(4) as pool:
        claimed = [job_id for got in pool.map(drain, range(4)) for job_id in got]
    engine.dispose()
    assert sorted(claimed) == sorted(made)


def test_a_heartbeat_prolongs_the_lease_and_brings_the_state(held: Claim, jobs: Jobs, engine: Engine) -> None:
    before = jobs.get(held.job_id)
    assert renew(engine, held) == "running"
    after = jobs.get(held.job_id)
    assert before.lease_until and after.lease_until and after.lease_until > before.lease_until
    jobs.cancel(held.job_id)
    assert renew(engine, held) == "cancelling"
    finish(engine, End(held, "cancelled"))
    assert renew(engine, held) is None


def test_a_worker_that_fell_silent_loses_its_job(held: Claim, jobs: Jobs, engine: Engine) -> None:
    begin(engine, held)
    assert expire_leases(engine) == []
    assert [(one.job_id, one.state) for one in expire_leases(engine, later())] == [(held.job_id, "queued")]
    row = jobs.get(held.job_id)
    assert (row.losses, row.reason, row.lease_owner, row.sent_at) == (1, "its worker fell silent", None, None)
    assert renew(engine, held) is None
    second = claim(engine, held.job_id, "second")
    assert second is not None and (second.fence, second.attempt) == (2, 2)


def test_three_crashes_make_a_job_dead_with_the_reason(start: Start, jobs: Jobs, engine: Engine) -> None:
    job = start()
    states = []
    for _ in range(3):
        held = claim(engine, job.id, "w")
        assert held is not None
        states.append(crashed(engine, held, "its process was ended by SIGABRT"))
    assert states == ["queued", "queued", "dead"]
    row = jobs.get(job.id)
    assert row.reason == "crashed 3 times, the last time: its process was ended by SIGABRT"
    assert row.ended_at is not None and claim(engine, job.id, "w") is None


def test_a_loss_counts_only_where_the_jobs_own_code_was_reached(start: Start, jobs: Jobs, engine: Engine) -> None:
    job = start()
    for _ in range(12):
        assert claim(engine, job.id, "w") is not None
        assert [one.state for one in expire_leases(engine, later())] == ["queued"]
    assert (jobs.get(job.id).crashes, jobs.get(job.id).losses) == (0, 0)
    states = []
    for _ in range(10):
        held = claim(engine, job.id, "w")
        assert held is not None
        begin(engine, held)
        states += [one.state for one in expire_leases(engine, later())]
    assert states == ["queued"] * 9 + ["dead"]
    assert jobs.get(job.id).reason == "ended from outside 10 times, the last time: its worker fell silent"


def test_losses_and_crashes_are_not_added_up(start: Start, jobs: Jobs, engine: Engine) -> None:
    job = start()
    states = []
    for end in [killed] * 8 + [crashed] * 3:
        held = claim(engine, job.id, "w")
        assert held is not None
        begin(engine, held)
        states.append(end(engine, held, "said"))
    assert states == ["queued"] * 10 + ["dead"]
    row = jobs.get(job.id)
    assert (row.crashes, row.losses, row.reason) == (3, 8, "crashed 3 times, the last time: said")


def test_a_small_job_is_isolated_step_by_step(start: Start, jobs: Jobs, engine: Engine) -> None:
    """Whose fault it is cannot be seen inside a worker: first it runs alone there, then in a process of its own."""
    guilty = start(small=True)
    start(small=True)
    together = claim_next(engine, ["default"], "w", small_together=9)
    assert [one.inside for one in together] == [True, True]
    expire_leases(engine, later())
    (alone,) = claim_next(engine, ["default"], "w", small_together=9)
    assert (alone.job_id, alone.inside, alone.losses) == (guilty.id, True, 1)
    expire_leases(engine, later())
    (apart,) = claim_next(engine, ["default"], "w", small_together=9)
    assert (apart.job_id, apart.inside, apart.losses) == (guilty.id, False, 2)


def test_a_stale_child_does_not_begin(engine: Engine, held: Claim) -> None:
    with pytest.raises(LeaseLost, match="fence 1 of first is no longer valid"):
        begin(engine, stale(engine, held))


def test_crashes_count_in_a_row_only(place: Workplace, start: Start, jobs: Jobs, engine: Engine) -> None:
    """A long job outlives any number of restarts of its machine, as long as it gets on between them."""
    job = start()
    for step in range(5):
        held = claim(engine, job.id, "w")
        assert held is not None
        with JobContext.open(place, engine, held) as context:
            context.checkpoint.set("step", step)
        assert (crashed if step % 2 else killed)(engine, held, "x") == "queued"
    assert (jobs.get(job.id).crashes, jobs.get(job.id).losses) == (0, 1)


def test_what_is_to_be_cancelled_and_crashes_is_cancelled(held: Claim, jobs: Jobs, engine: Engine) -> None:
    jobs.cancel(held.job_id)
    assert [one.state for one in expire_leases(engine, later())] == ["cancelled"]
    assert jobs.get(held.job_id).ended_at is not None


def test_what_is_given_back_was_no_crash(held: Claim, jobs: Jobs, engine: Engine) -> None:
    assert release(engine, held, "its worker was stopped") == "queued"
    assert (jobs.get(held.job_id).crashes, jobs.get(held.job_id).reason) == (0, "its worker was stopped")
    assert release(engine, held, "again") is None


def test_an_expired_lease_is_seen_when_its_job_is_asked_for(
    held: Claim, engine: Engine, until: Callable[..., Any]
) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE job SET lease_until = clock_timestamp() - interval '1 s'"))
    second = until(lambda: claim(engine, held.job_id, "second"))
    assert (second.fence, second.crashes) == (2, 0)


def test_just_after_postgres_started_no_lease_has_expired(held: Claim, engine: Engine) -> None:
    """While it was away no worker could renew one."""
    with engine.begin() as connection:
        started = connection.execute(text("SELECT pg_postmaster_start_time()")).scalar_one()
        connection.execute(text("UPDATE job SET lease_until = :then"), {"then": started - timedelta(seconds=60)})
    assert expire_leases(engine, started + timedelta(seconds=4)) == []
    assert [one.job_id for one in expire_leases(engine, started + timedelta(seconds=6))] == [held.job_id]


def stale(engine: Engine, held: Claim) -> Claim:
    """The claim of a worker that was away too long: another runs the job now."""
    expire_leases(engine, later())
    assert claim(engine, held.job_id, "second") is not None
    return held


def write(connection: Connection) -> str:
    connection.execute(text("INSERT INTO rate_bucket (name, \"left\", refilled_at) VALUES ('effect', 1, now())"))
    return "written"


def effects(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM rate_bucket WHERE name = 'effect'")).scalar_one())


@pytest.mark.parametrize(
    "act",
    [
        lambda context: context.publish("effect", write),
        lambda context: context.checkpoint.set("a", 1),
        lambda context: context.artifacts.put_bytes("a.json", b"{}"),
        lambda context: context.chunks.add(context.held, "chunks", [1, 2]),
    ],
    ids=["publish", "checkpoint", "artifact", "parts"],
)
def test_a_stale_worker_changes_nothing(
    place: Workplace, engine: Engine, jobs: Jobs, held: Claim, act: Callable[[JobContext], Any]
) -> None:
    context = JobContext(place, engine, stale(engine, held))
    before = jobs.get(held.job_id)
    with pytest.raises(LeaseLost, match=f"job {held.job_id}: fence 1 of first is no longer valid"):
        act(context)
    assert jobs.get(held.job_id) == before
    assert effects(engine) == 0
    assert jobs.artifacts(held.job_id) == [] and list(place.files().found()) == []
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM job_chunk")).scalar_one() == 0


def test_a_stale_worker_ends_nothing(engine: Engine, jobs: Jobs, held: Claim) -> None:
    old = stale(engine, held)
    before = jobs.get(held.job_id)
    assert finish(engine, End(old, "done", None, {"a": 1})) is None
    assert release(engine, old, "x") is None
    assert crashed(engine, old, "x") is None
    finish_many(engine, [End(old, "done")])
    release_many(engine, [old], "x")
    assert jobs.get(held.job_id) == before


def test_a_stale_workers_progress_is_not_shown(place: Workplace, engine: Engine, jobs: Jobs, held: Claim) -> None:
    old = stale(engine, held)
    with JobContext.open(place, engine, old) as context:
        context.progress(99, 100)
        context.log("I am still here")
    assert jobs.get(held.job_id).done is None
    assert [line.message for line in jobs.logs(held.job_id)] == ["I am still here"], "what it did can be read"


@pytest.mark.parametrize(
    "act",
    [
        lambda context: context.publish("effect", write),
        lambda context: context.checkpoint.set("a", 1),
        lambda context: context.artifacts.put_bytes("a.json", b"{}"),
    ],
    ids=["publish", "checkpoint", "artifact"],
)
def test_a_cancelled_job_publishes_nothing(
    place: Workplace, engine: Engine, jobs: Jobs, held: Claim, act: Callable[[JobContext], Any]
) -> None:
    jobs.cancel(held.job_id)
    with pytest.raises(JobCancelled, match=f"job {held.job_id} was cancelled"):
        act(JobContext(place, engine, held))
    assert effects(engine) == 0 and jobs.get(held.job_id).effects == {}
    assert list(place.files().found()) == []


def test_a_child_recovers_its_workers_claim(held: Claim, engine: Engine) -> None:
    assert recover(engine, held.job_id, held.owner, held.fence) == held
    with pytest.raises(LeaseLost, match="is no more"):
        recover(engine, new_id(), "w", 1)
