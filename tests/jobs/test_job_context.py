"""What a runner is given: stages, checkpoints, effects that happen once, progress, money, rates."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from pointsman.errors import BrokenInvariant, BudgetSpent, JobCancelled, UserError
from pointsman.jobs import rates
from pointsman.jobs.attempt import attempt
from pointsman.jobs.claiming import claim
from pointsman.jobs.context import JobContext
from pointsman.jobs.ending import crashed
from pointsman.jobs.lease import Claim
from pointsman.jobs.log import Progress
from pointsman.jobs.money import Money
from pointsman.jobs.store import Jobs
from pointsman.jobs.view import JobView
from pointsman.jobs.workplace import Workplace

Start = Callable[..., JobView]


@pytest.fixture
def context(place: Workplace, engine: Engine, held: Claim) -> Iterator[JobContext]:
    with JobContext.open(place, engine, held) as opened:
        yield opened


def next_attempt(place: Workplace, engine: Engine, context: JobContext) -> JobContext:
    """The context of the attempt after a crash."""
    context._log.flush()
    crashed(engine, context.held, "killed")
    again = claim(engine, context.job_id, "second")
    assert again is not None
    return JobContext(place, engine, again)


def messages(jobs: Jobs, job_id: str) -> list[str]:
    return [line.message for line in jobs.logs(job_id)]


def test_a_stage_is_done_once(place: Workplace, engine: Engine, jobs: Jobs, context: JobContext) -> None:
    with context.stage("steps") as stage:
        assert stage.todo
    with pytest.raises(ZeroDivisionError), context.stage("chunks"):
        _ = 1 / 0
    assert jobs.get(context.job_id).stages_done == ["steps"]
    with JobContext.open(place, engine, next_attempt(place, engine, context).held) as again:
        with again.stage("steps") as stage:
            assert not stage.todo
        with again.stage("chunks") as stage:
            assert stage.todo
    assert jobs.get(context.job_id).stages_done == ["steps", "chunks"]
    assert messages(jobs, context.job_id) == [
        "stage steps: begins",
        "stage chunks: begins",
        "stage steps: done by an earlier attempt",
        "stage chunks: begins",
    ]


def test_a_stage_that_its_kind_does_not_have_is_our_fault(context: JobContext) -> None:
    with (
        pytest.raises(BrokenInvariant, match="self-test jobs have no stage 'x', only steps, chunks, publish"),
        context.stage("x"),
    ):
        pass


def test_a_checkpoint_is_there_for_the_next_attempt(place: Workplace, engine: Engine, context: JobContext) -> None:
    assert context.checkpoint.get("step") is None
    context.checkpoint.set("step", {"n": 3, "text": "a\x00b", "loss": float("nan")})
    context.checkpoint.set("other", [1, 2])
    again = next_attempt(place, engine, context)
    assert again.checkpoint.get("step") == {"n": 3, "text": "a\ufffdb", "loss": None}
    assert again.checkpoint.get("other") == [1, 2]


def test_a_large_checkpoint_is_refused_with_what_to_do(context: JobContext) -> None:
    with pytest.raises(BrokenInvariant, match=r"checkpoint weights: .* put it into an artifact"):
        context.checkpoint.set("weights", "x" * 1_000_001)


def add(connection: Connection) -> int:
    connection.execute(text("INSERT INTO rate_bucket VALUES ('n', 0, now()) ON CONFLICT DO NOTHING"))
    changed = text('UPDATE rate_bucket SET "left" = "left" + 1 WHERE name = \'n\' RETURNING "left"')
    return int(connection.execute(changed).scalar_one())


def count(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT \"left\" FROM rate_bucket WHERE name = 'n'")).scalar() or 0)


def test_an_effect_happens_once_in_the_jobs_life(place: Workplace, engine: Engine, context: JobContext) -> None:
    assert context.publish("promote", add) == 1
    assert context.publish("promote", add) == 1, "its value is remembered"
    again = next_attempt(place, engine, context)
    assert again.publish("promote", add) == 1
    assert again.publish("other", add) == 2
    assert count(engine) == 2


def test_an_effect_that_fails_leaves_nothing(engine: Engine, jobs: Jobs, context: JobContext) -> None:
    def half(connection: Connection) -> None:
        add(connection)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        context.publish("promote", half)
    assert count(engine) == 0 and jobs.get(context.job_id).effects == {}


def test_threads_publish_an_effect_once(engine: Engine, context: JobContext) -> None:
    with ThreadPoolExecutor(4) as pool:
        values = list(pool.map(lambda _: context.publish("promote", add), range(8)))
    assert values == [1] * 8 and count(engine) == 1


def test_an_effect_may_say_something(jobs: Jobs, context: JobContext) -> None:
    """The job's row is locked meanwhile: what is said about it waits until the effect is there."""

    def effect(connection: Connection) -> None:
        context.progress(1, 2)
        for n in range(3):
            context.log(f"line {n}")

    context.publish("talk", effect)
    context._log.flush()
    assert messages(jobs, context.job_id) == ["line 0", "line 1", "line 2"]
    assert jobs.get(context.job_id).done == 1


def test_what_is_said_can_be_read_while_the_job_runs(
    jobs: Jobs, context: JobContext, until: Callable[..., Any]
) -> None:
    context.log("begun")
    context.log("nul \x00 and a lone \ud800 surrogate", "warning")
    for step, value in enumerate([3.0, 2.0, 1.5]):
        context.metric("loss", step, value)
    until(lambda: len(jobs.metrics(context.job_id)) == 3 and len(jobs.logs(context.job_id)) == 2)
    first, second = jobs.logs(context.job_id)
    assert (first.message, first.level, first.attempt) == ("begun", "info", 1)
    assert (second.message, second.level) == ("nul \ufffd and a lone \ufffd surrogate", "warning")
    assert [line.id for line in jobs.logs(context.job_id, after=first.id)] == [second.id]
    assert [(point.step, point.value) for point in jobs.metrics(context.job_id, "loss")] == [(0, 3), (1, 2), (2, 1.5)]


def test_a_step_taken_again_replaces_its_point(
    place: Workplace, engine: Engine, jobs: Jobs, context: JobContext
) -> None:
    context.metric("loss", 0, 3.0)
    context.metric("loss", 1, 2.0)
    with JobContext.open(place, engine, next_attempt(place, engine, context).held) as again:
        again.metric("loss", 1, 1.9)
    points = jobs.metrics(context.job_id)
    assert [(point.step, point.value, point.attempt) for point in points] == [(0, 3.0, 1), (1, 1.9, 2)]


def test_progress_shows_in_the_row(jobs: Jobs, context: JobContext, until: Callable[..., Any]) -> None:
    with context.stage("steps"):
        context.progress(0, 10)
        time.sleep(0.01)
        context.progress(5, 10)
        row = until(lambda: (now := jobs.get(context.job_id)).done == 5 and now)
    assert (row.stage, row.total) == ("steps", 10)
    assert row.rate > 0 and row.eta_s == pytest.approx(5 / row.rate)


def test_rate_and_time_left_are_of_this_attempt() -> None:
    progress = Progress("steps", done=60, total=100, first=40, began=1_000.0)
    told = progress.at(1_010.0)
    assert (told["rate"], told["eta_s"]) == (2.0, 20.0)
    assert Progress("steps", done=40, total=100, first=40, began=0).at(10)["eta_s"] is None
    assert Progress("steps", done=5, first=0, began=0).at(10)["eta_s"] is None, "the total is not known"


def test_cancelling_is_seen_at_each_check(place: Workplace, engine: Engine, held: Claim) -> None:
    cancel = threading.Event()
    context = JobContext(place, engine, held, cancel=cancel)
    context.check()
    assert not context.cancelled()
    threading.Timer(0.05, cancel.set).start()
    with pytest.raises(JobCancelled):
        context.pause(60)
    with pytest.raises(JobCancelled):
        context.check()


def test_an_absent_configuration_is_named(context: JobContext) -> None:
    with pytest.raises(UserError, match=r"pointsman.toml: no such file, and this job needs it; see `pointsman init`"):
        _ = context.config


def test_money_is_added_up_and_ends_the_job(place: Workplace, engine: Engine, jobs: Jobs, start: Start) -> None:
    job = start(budget=Decimal("0.05"))
    held = claim(engine, job.id, "w")
    assert held is not None
    context = JobContext(place, engine, held)
    assert context.spend(Decimal("0.03")) == Decimal("0.03")
    with pytest.raises(BudgetSpent, match=r"the budget of \$0.05 is spent: \$0.06 so far"):
        context.spend(Decimal("0.03"))
    assert jobs.get(job.id).cost == Decimal("0.06"), "what was spent is counted"


def test_a_reserve_keeps_many_workers_within_one_budget(engine: Engine, jobs: Jobs, start: Start) -> None:
    job = start(budget=Decimal("0.10"))

    def call(n: int) -> bool:
        try:
            with Money(engine, job.id).reserve(Decimal("0.03")) as bill:
                time.sleep(0.01)
                bill.settle(Decimal("0.02"))
        except BudgetSpent as spent:
            assert "the next call may cost $0.03, and of the job's budget $" in str(spent)
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        made = sum(pool.map(call, range(20)))
    cost = jobs.get(job.id).cost
    assert cost == Decimal("0.02") * made <= Decimal("0.10")
    assert made >= 3


def test_a_call_that_fails_costs_nothing(engine: Engine, jobs: Jobs, start: Start) -> None:
    job = start(budget=Decimal("0.10"))
    with pytest.raises(TimeoutError), Money(engine, job.id).reserve(Decimal("0.03")):
        raise TimeoutError
    assert jobs.get(job.id).cost == 0


def test_a_job_fails_when_its_money_is_spent_and_can_go_on_with_more(
    jobs: Jobs, start: Start, run_here: Callable[[str], str | None]
) -> None:
    job = start(steps=10, cost=0.01, budget=Decimal("0.045"))
    assert run_here(job.id) == "failed"
    row = jobs.get(job.id)
    assert row.reason == "the budget of $0.045 is spent: $0.05 so far"
    jobs.retry(job.id, budget=Decimal(1))
    assert run_here(job.id) == "done"
    assert jobs.get(job.id).cost == Decimal("0.10"), "no step was paid for twice"


@pytest.mark.parametrize(
    ("params", "state", "reason"),
    [
        ({}, "done", None),
        ({"fault": "skip"}, "skipped", "it was told to skip"),
        ({"fault": "error", "fault_at": 1}, "failed", "ValueError: it was told to fail at 1"),
        (
            {"fault": "error", "fault_at": 4},
            "failed",
            "part 1 of stage chunks failed: ValueError: it was told to fail at 4",
        ),
    ],
)
def test_how_a_job_ends_stands_in_its_row(
    jobs: Jobs, start: Start, run_here: Callable[[str], str | None], params: dict[str, Any], state: str, reason: str
) -> None:
    job = start(**params)
    assert run_here(job.id) == state
    row = jobs.get(job.id)
    assert (row.state, row.reason) == (state, reason)
    told = "\n".join(messages(jobs, job.id))
    assert ("Traceback" in told and "self_test.py" in told) == (state == "failed")


def test_a_job_of_an_unknown_kind_fails_readably(
    place: Workplace, jobs: Jobs, engine: Engine, start: Start, run_here: Callable[[str], str | None]
) -> None:
    """Queued by a newer version, or its parameters were changed by hand."""
    job = start()
    with engine.begin() as connection:
        connection.execute(text("UPDATE job SET params = '{\"steps\": -1}'"))
    assert run_here(job.id) == "failed"
    assert jobs.get(job.id).reason == "params.steps: expected a whole number from 0 to 1e+06, got -1"


def test_two_runs_leave_the_same_file(jobs: Jobs, start: Start, run_here: Callable[[str], str | None]) -> None:
    first, second, other = start(), start(), start(seed=2)
    for job in (first, second, other):
        assert run_here(job.id) == "done"
    hashes = [jobs.artifacts(job.id)[0].hash for job in (first, second, other)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_an_attempt_never_raises(place: Workplace, engine: Engine, held: Claim) -> None:
    cancel = threading.Event()
    cancel.set()
    with JobContext.open(place, engine, held, cancel=cancel) as context:
        assert attempt(context).state == "cancelled"


def test_a_rate_is_shared_by_all(engine: Engine, no_jobs: str) -> None:
    assert rates.take(engine, "provider", 600, 60) == 0
    wait = rates.take(engine, "provider", 600, 30)
    assert 2.0 < wait <= 3.1, "30 tokens come in three seconds"
    assert rates.take(engine, "other", 600, 60) == 0
    with pytest.raises(UserError, match="rate provider: 61 at once can never be taken at 600 a minute"):
        rates.take(engine, "provider", 600, 61)


def test_a_bucket_holds_no_more_than_a_tenth_of_a_minute(engine: Engine, no_jobs: str) -> None:
    """Four threads take for a while; together they never got more than the rate allows."""
    per_minute = 1_200.0
    began = time.monotonic()

    def takes(_: int) -> int:
        got = 0
        while time.monotonic() - began < 1.0:
            if rates.take(engine, "p", per_minute) == 0:
                got += 1
        return got

    with ThreadPoolExecutor(4) as pool:
        got = sum(pool.map(takes, range(4)))
    elapsed = time.monotonic() - began
    assert per_minute / rates.BURST <= got <= per_minute / rates.BURST + per_minute / 60 * elapsed + 1


def test_who_waits_for_a_rate_gets_it(engine: Engine, no_jobs: str) -> None:
    slept: list[float] = []
    rates.take(engine, "p", 6_000, 600)
    rates.wait_for(engine, "p", 6_000, 10, sleep=lambda seconds: (slept.append(seconds), time.sleep(seconds))[0])
    assert slept and all(0 < seconds <= rates.LONGEST_WAIT for seconds in slept)
