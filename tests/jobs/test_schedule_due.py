"""Schedules: due once, missed ones made good once, overlapping ones left out; and what is wrong with one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, text

from pointsman.config import load_text
from pointsman.config.model import ScheduleConfig
from pointsman.errors import ConfigError
from pointsman.ids import content_id
from pointsman.jobs.schedules import latest_due, next_due, run_due
from pointsman.jobs.store import Jobs

WORKER = '[[workers]]\nname = "a"\ndescription = "d"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'
HOURLY = {"tidy": ScheduleConfig(cron="0 * * * *", kind="self-test", params={"steps": 2})}


def this_hour() -> datetime:
    """The beginning of the present hour: jobs are made by the real clock."""
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def finish_all(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE job SET state = 'done', ended_at = now()"))


def test_a_new_schedule_counts_from_now_on(engine: Engine, jobs: Jobs) -> None:
    hour = this_hour()
    assert run_due(engine, HOURLY, hour + timedelta(minutes=30)) == []
    assert run_due(engine, HOURLY, hour + timedelta(minutes=59, seconds=59)) == []
    (job_id,) = run_due(engine, HOURLY, hour + timedelta(hours=1))
    job = jobs.get(job_id)
    assert (job.kind, job.params["steps"], job.asked_by) == ("self-test", 2, "schedule tidy")
    assert job.project_id == content_id("project", "default")
    assert run_due(engine, HOURLY, hour + timedelta(hours=1, seconds=1)) == []


def test_what_was_missed_runs_once(engine: Engine, jobs: Jobs) -> None:
    hour = this_hour()
    run_due(engine, HOURLY, hour - timedelta(hours=9))
    assert len(run_due(engine, HOURLY, hour + timedelta(minutes=5))) == 1
    assert run_due(engine, HOURLY, hour + timedelta(minutes=6)) == []
    assert len(jobs.list()) == 1


def test_a_run_that_overlaps_is_left_out(engine: Engine, jobs: Jobs) -> None:
    hour = this_hour()
    run_due(engine, HOURLY, hour - timedelta(hours=9))
    (first,) = run_due(engine, HOURLY, hour - timedelta(hours=1))
    assert run_due(engine, HOURLY, hour + timedelta(hours=1)) == [first]
    assert len(jobs.list()) == 1
    finish_all(engine)
    (second,) = run_due(engine, HOURLY, hour + timedelta(hours=2))
    assert second != first and len(jobs.list()) == 2


def test_many_dispatchers_start_a_run_once(engine: Engine, jobs: Jobs) -> None:
    hour = this_hour()
    run_due(engine, HOURLY, hour - timedelta(hours=1, minutes=30))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: run_due(engine, HOURLY, hour), range(8)))
    assert sum(len(ids) for ids in found) == 1
    assert len(jobs.list()) == 1


def test_a_dispatcher_that_dies_between_job_and_mark_starts_no_second_one(engine: Engine, jobs: Jobs) -> None:
    hour = this_hour()
    run_due(engine, HOURLY, hour - timedelta(hours=2))
    (first,) = run_due(engine, HOURLY, hour)
    finish_all(engine)
    with engine.begin() as connection:  # as if the mark had not been written
        connection.execute(text("UPDATE schedule SET last_due_at = last_due_at - interval '1 hour'"))
    assert run_due(engine, HOURLY, hour + timedelta(seconds=2)) == [first]
    assert len(jobs.list()) == 1


def test_a_changed_expression_counts_anew_and_changed_parameters_do_not(engine: Engine, jobs: Jobs) -> None:
    hour = this_hour()
    run_due(engine, HOURLY, hour - timedelta(minutes=30))
    changed = {"tidy": HOURLY["tidy"].model_copy(update={"params": {"steps": 3}, "project": "shop"})}
    (job_id,) = run_due(engine, changed, hour)
    assert jobs.get(job_id).params["steps"] == 3
    assert jobs.get(job_id).project_id == content_id("project", "shop")
    finish_all(engine)
    often = {"tidy": changed["tidy"].model_copy(update={"cron": "*/10 * * * *"})}
    assert run_due(engine, often, hour + timedelta(minutes=25)) == []
    assert len(run_due(engine, often, hour + timedelta(minutes=30))) == 1


def test_times_are_utc_and_the_moment_itself_counts() -> None:
    at = datetime(2026, 3, 29, 3, 0, tzinfo=UTC)
    assert latest_due("0 3 * * *", at) == at
    assert latest_due("0 3 * * *", at - timedelta(seconds=1)) == at - timedelta(days=1)
    assert latest_due("0 3 * * *", at + timedelta(seconds=59, microseconds=5)) == at
    assert next_due("0 3 * * *", at) == at + timedelta(days=1)
    assert next_due("@hourly", at).utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("section", "problems"),
    [
        (
            'cron = "61 * * * *"\nkind = "retention"',
            ["schedules.nightly.cron: expected a cron expression of five fields, such as 0 3 * * *, got '61 * * * *'"],
        ),
        (
            'cron = "* * * * * *"\nkind = "retention"',
            ["schedules.nightly.cron: expected a cron expression of five fields, such as 0 3 * * *, got '* * * * * *'"],
        ),
        (
            'cron = "0 0 31 2 *"\nkind = "retention"',
            ["schedules.nightly.cron: expected a time that comes, got '0 0 31 2 *'"],
        ),
        (
            'cron = "@daily"\nkind = "retention"\nparams = { days = 1.5, weeks = 2 }',
            [
                "schedules.nightly.params.weeks: no such parameter, expected days",
                "schedules.nightly.params.days: expected a whole number from 1 to 36500 or null, got 1.5",
            ],
        ),
    ],
)
def test_a_wrong_schedule_is_an_error_of_the_file(section: str, problems: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        load_text(f"[schedules.nightly]\n{section}\n{WORKER}")
    assert raised.value.problems == [f"pointsman.toml: {problem}" for problem in problems]


def test_a_right_schedule_is_read_with_plain_numbers() -> None:
    config: Any = load_text(
        f'[schedules.nightly]\ncron = "0 3 * * 1-5"\nkind = "self-test"\nparams = {{ seconds = 0.5 }}\n{WORKER}'
    )
    assert config.schedules["nightly"].params == {"seconds": 0.5}
    assert type(config.schedules["nightly"].params["seconds"]) is float
