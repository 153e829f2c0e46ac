"""`pointsman jobs` and `worker`: what is typed, what is shown, what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from pointsman.commands.worker import read_queues
from pointsman.config import Settings, load_config
from pointsman.errors import UserError
from pointsman.jobs.health import Beat, Presence, workers_of
from pointsman.jobs.runner import Runner
from pointsman.jobs.store import Jobs
from pointsman.jobs.worker import Work
from pointsman.jobs.workplace import Workplace, new_owner

QUICK = ("--set", "steps=2", "--set", "seconds=0", "--set", "chunks=0")
SMALL = (*QUICK, "--set", "small=true")


@pytest.fixture
def ready(config: Callable[..., Path], empty_database: str) -> Path:
    """A configuration that names an empty database."""
    return config(f'[database]\nurl = "{empty_database}"\n')


@pytest.fixture
def work(ready: Path, environment: dict[str, str | None]) -> Callable[[str], str | None]:
    """Runs a job as a worker of this home would; the state it then has."""
    settings = Settings.read({name: value for name, value in environment.items() if value is not None})
    runner = Runner(Workplace.read(settings), new_owner())
    return runner.run


def test_kinds_and_their_parameters(run: Any) -> None:
    listed = run("jobs", "kinds")
    assert listed.exit_code == 0
    assert "self-test  exercise the machinery of jobs" in listed.stdout and "queue default" in listed.stdout
    shown = run("jobs", "kinds", "retention").stdout
    assert "a whole number from 1 to 36500" in shown and "days that are kept" in shown
    described = {kind["kind"]: kind for kind in json.loads(run("jobs", "kinds", "--json").stdout)}
    assert described["self-test"]["stages"] == ["steps", "chunks", "publish"]
    steps = next(one for one in described["self-test"]["params"] if one["name"] == "steps")
    assert (steps["default"], steps["least"]) == (20, 0)
    unknown = run("jobs", "kinds", "nope")
    assert unknown.exit_code == 2 and "kind: no job kind 'nope', expected one of self-test, " in unknown.stderr


def test_a_job_is_started_watched_read_and_removed(run: Any, ready: Path, work: Any, home: Path) -> None:
    started = run("jobs", "start", "self-test", *QUICK, "--budget", "1.5", "--priority", "7")
    assert started.exit_code == 0, started.stderr
    job_id = started.stdout.strip()
    assert len(job_id) == 36  # the id alone, for a script
    assert "estimate: time 0 ms, cost $0.00 (its parameters, with one worker)" in started.stderr
    assert work(job_id) == "done"
    watched = run("jobs", "watch", job_id)
    assert watched.exit_code == 0 and watched.stdout.startswith("done after ")
    shown = run("jobs", "show", job_id).stdout
    assert "steps, chunks, publish" in shown and "$0.00 of $1.50" in shown and "file self-test.json: " in shown
    assert "self-test published" in run("jobs", "logs", job_id).stdout
    assert [line["message"] for line in json.loads(run("jobs", "logs", job_id, "--json").stdout)]
    listed = run("jobs").stdout.splitlines()
    assert listed[0].startswith(f"{job_id}  self-test  done after ")
    assert "by command line, queue default" in listed[1]
    as_json = json.loads(run("jobs", "show", job_id, "--json").stdout)
    assert (as_json["state"], as_json["priority"], len(as_json["artifacts"])) == ("done", 7, 1)
    assert "checkpoint" not in as_json
    deleted = run("jobs", "delete", job_id)
    assert deleted.exit_code == 0 and deleted.stdout.startswith(f"deleted {job_id}")
    assert not list((home / "artifacts").rglob("*.json"))
    gone = run("jobs", "show", job_id)
    assert gone.exit_code == 2 and "no job" in gone.stderr


def test_a_job_is_cancelled_and_tried_again(run: Any, ready: Path, work: Any) -> None:
    job_id = run("jobs", "start", "self-test", *SMALL).stdout.strip()
    assert run("jobs", "cancel", job_id).stdout.strip() == "cancelled"
    again = run("jobs", "retry", job_id, "--budget", "2", "--json")
    assert (json.loads(again.stdout)["state"], json.loads(again.stdout)["budget"]) == ("queued", "2")
    refused = run("jobs", "delete", job_id)
    assert refused.exit_code == 2 and "is queued; cancel it first, then delete it" in refused.stderr
    assert work(job_id) == "done"
    refused = run("jobs", "retry", job_id)
    assert refused.exit_code == 2 and "is done; only a failed, cancelled or dead job" in refused.stderr


def test_the_exit_code_of_watch_says_how_it_ended(run: Any, ready: Path, work: Any) -> None:
    job_id = run("jobs", "start", "self-test", *SMALL, "--set", "fault=error").stdout.strip()
    work(job_id)
    watched = run("jobs", "watch", job_id)
    assert watched.exit_code == 1 and watched.stdout.strip() == "failed: ValueError: it was told to fail at 0"
    listed = run("jobs", "list", "--state", "failed", "--json")
    assert [job["id"] for job in json.loads(listed.stdout)] == [job_id]


def test_start_with_watch_stays_until_the_end(run: Any, ready: Path, work: Any, engine: Engine) -> None:
    def when_queued() -> None:
        until = time.monotonic() + 30
        while not (found := Jobs(engine).list()) and time.monotonic() < until:
            time.sleep(0.05)
        work(found[0].id)

    worker = threading.Thread(target=when_queued)
    worker.start()
    started = run("jobs", "start", "self-test", *SMALL, "--watch", "--json")
    worker.join()
    assert started.exit_code == 0
    assert json.loads(started.stdout)["state"] == "done"


def test_the_same_key_is_the_same_job(run: Any, ready: Path) -> None:
    ids = [run("jobs", "start", "self-test", "--dedupe", "nightly").stdout.strip() for _ in range(2)]
    other = run("jobs", "start", "self-test", "--dedupe", "nightly", "--project", "shop").stdout.strip()
    assert ids[0] == ids[1] != other
    assert [job["id"] for job in json.loads(run("jobs", "list", "--project", "shop", "--json").stdout)] == [other]


def test_params_as_json_and_one_by_one(run: Any, ready: Path) -> None:
    given = ("--params", '{"steps": 5, "load": "hash"}', "--set", "steps=9", "--set", "chunk-seconds=0.5")
    job = json.loads(run("jobs", "start", "self-test", *given, "--json").stdout)
    assert (job["params"]["steps"], job["params"]["load"], job["params"]["chunk_seconds"]) == (9, "hash", 0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "kind: no job kind 'nope', expected one of self-test, "),
        (("self-test", "--set", "steps=x"), 'params.steps: expected a whole number from 0 to 1e+06, got "x"'),
        (("self-test", "--set", "stops=1"), "params.stops: no such parameter, expected steps, "),
        (("self-test", "--set", "steps"), "--set: expected KEY=VALUE, got 'steps'"),
        (("self-test", "--params", "[1]"), "--params: expected a JSON object, got '[1]'"),
        (("self-test", "--params", "{"), "--params: not JSON: "),
        (("self-test", "--budget", "much"), "--budget: expected an amount of USD, such as 5 or 0.50, got 'much'"),
        (("self-test", "--budget", "NaN"), "--budget: expected an amount of USD, such as 5 or 0.50, got 'NaN'"),
        (("self-test", "--priority", "5000"), "priority: expected a whole number from -1000 to 1000, got 5000"),
    ],
)
def test_mistakes_are_told(run: Any, ready: Path, engine: Engine, arguments: tuple[str, ...], message: str) -> None:
    refused = run("jobs", "start", *arguments)
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert Jobs(engine).list() == []


def test_a_hostile_reason_moves_no_cursor(run: Any, ready: Path, engine: Engine) -> None:
    job_id = run("jobs", "start", "self-test").stdout.strip()
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE job SET state = 'failed', reason = :reason WHERE id = :id"),
            {"reason": "\x1b[2J[red]gone[/red]", "id": job_id},
        )
    shown = run("jobs", "list").stdout
    assert "\x1b[2J" not in shown and "\\x1b[2J[red]gone[/red]" in shown


def test_no_database_yet_is_said(run: Any, config: Any) -> None:
    config()
    refused = run("jobs", "list")
    assert refused.exit_code == 2 and "there is no log in" in refused.stderr


def test_queues_are_read_once_each() -> None:
    assert read_queues("train, default,train") == ("default", "train")
    for wrong, shown in (("trian", "'trian'"), ("", "''"), (",", "','")):
        with pytest.raises(UserError, match=f"--queues: expected some of default,probe,train, got {shown}"):
            read_queues(wrong)


def test_how_many_jobs_at_a_time(config: Any) -> None:
    jobs = load_config(config("[jobs]\nconcurrency = 3\nprobe_concurrency = 4\n")).jobs
    assert Work.of(jobs, ("default", "probe", "train"), None).queues == {"default": 3, "probe": 4, "train": 1}
    assert Work.of(jobs, ("train",), 5).queues == {"train": 5}
    assert Work.of(jobs, (), None).queues == {}


def test_check_tells_living_silent_and_troubled_workers_apart(run: Any, ready: Path, home: Path) -> None:
    none = run("worker", "--check")
    assert none.exit_code == 1 and "no worker of" in none.stdout
    presence = Presence(home, ["dispatcher", "default"])
    starting = run("worker", "--check")
    assert starting.exit_code == 0 and "default: it is starting" in starting.stdout
    Beat(presence.folder / "default").say()
    Beat(presence.folder / "dispatcher").say("the broker does not answer (ConnectionError)")
    troubled = json.loads(run("worker", "--check", "--json").stdout)
    assert troubled["ok"] is True
    assert {part["name"]: part["trouble"] for part in troubled["workers"][0]["parts"]} == {
        "default": None,
        "dispatcher": "the broker does not answer (ConnectionError)",
    }
    later = time.time() + 60
    assert [worker.well for worker in workers_of(home, later)] == [False]
    presence._lock.close()  # as if it had been killed
    assert run("worker", "--check").exit_code == 1
    again = Presence(home, ["dispatcher"])
    assert [part.name for part in workers_of(home)[0].parts] == ["dispatcher"]
    again.end()
    assert workers_of(home) == []


def test_without_the_extra_worker_says_what_to_install(run: Any, ready: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util\nfind = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'celery' else find(name, *a)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "POINTSMAN_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-m", "pointsman.commands", "worker", "--config", str(ready)],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "workers need Celery and its Redis client: pip install 'pointsman[jobs]'" in done.stderr
