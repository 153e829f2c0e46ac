"""`pointsman sandbox tasks`, `probe` and `audit` as a person types them, and the same as jobs."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint

import pytest
from typer.testing import CliRunner

from pointsman.commands.app import build_app
from pointsman.config import Settings
from pointsman.identity import DEFAULT_PROJECT_ID
from pointsman.jobs.attempt import attempt
from pointsman.jobs.claiming import claim
from pointsman.jobs.context import JobContext
from pointsman.jobs.ending import finish
from pointsman.jobs.kinds import estimate
from pointsman.jobs.store import Jobs
from pointsman.jobs.workplace import Workplace, new_owner
from pointsman.sandbox.serve import serving
from pointsman.sandbox.setup import toml_text

SEED = 3
HARNESS = EntryPoint("serve", "harness.commands:register", "pointsman.commands")


@pytest.fixture(scope="module")
def sandbox():
    with serving(SEED) as url:
        yield int(url.rpartition(":")[2])


@pytest.fixture
def home(sandbox, here, tmp_path):
    """A data folder whose configuration has the sandbox's workers and this test's database."""
    url = here.engine.url.render_as_string(hide_password=False).replace("postgresql+psycopg", "postgresql")
    (tmp_path / "pointsman.toml").write_text(f'{toml_text(SEED, sandbox)}\n[database]\nurl = "{url}"\n')
    return tmp_path


@pytest.fixture
def run(home):
    def invoke(*arguments, code=0):
        variables = {
            "POINTSMAN_HOME": str(home), "POINTSMAN_PORT": "1", "POINTSMAN_CONFIG": str(home / "pointsman.toml"),
            "COLUMNS": "100", "TERM": "dumb",
        }  # fmt: skip
        app = build_app(plugged_in=[HARNESS])
        done = CliRunner(env=variables).invoke(app, [str(part) for part in arguments], prog_name="pointsman")
        assert done.exit_code == code, done.output + repr(done.exception)
        return done

    return invoke


@pytest.fixture
def tasks(run, home):
    file = home / "tasks.jsonl"
    file.write_text(run("sandbox", "tasks", "--split", "validation", "--n", 6).stdout)
    return file


def test_tasks_of_a_sandbox_are_tasks_of_a_probe(run, tasks, home, here):
    lines = [json.loads(line) for line in tasks.read_text().splitlines()]
    assert len(lines) == 6 and set(lines[0]) == {"id", "prompt", "verifier", "task", "split"}
    assert {line["split"] for line in lines} == {"validation"}
    done = run("probe", "--tasks", tasks, "--repeats", 2)
    workers = toml_text(SEED, 1).count("[[workers]]")
    assert f"{12 * workers} of {12 * workers} answers were asked for and came; $0.0" in done.stdout
    again = json.loads(run("probe", "--tasks", tasks, "--repeats", 2, "--json").stdout)
    assert (again["known_before"], again["answered"], again["missing"]) == (12 * workers, 0, 0)
    scores = [row.score for row in here.sql("SELECT score FROM outcome")]
    assert len(scores) == 12 * workers and {0.0, 1.0} <= set(scores)


def test_mistakes_are_said_and_nothing_is_asked(run, tasks, home):
    for arguments, message in (
        (("--tasks", home / "none.jsonl"), "none.jsonl: cannot be read"),
        (("--tasks", tasks, "--workers", "nobody"), "'nobody' is no worker, expected some of"),
        (("--tasks", tasks, "--budget", "much"), "--budget: expected an amount of USD"),
        (("--tasks", tasks, "--per-minute", "0"), "--per-minute: expected a number above 0, got 0"),
        (("--tasks", tasks, "--name", "a/b"), "name: expected letters, digits and ._:-"),
    ):
        assert message in run("probe", *arguments, code=2).stderr


def test_a_budget_that_ends_says_how_to_go_on(run, tasks):
    done = run("probe", "--tasks", tasks, "--budget", "0.000001", code=1)
    assert "stopped: the budget is spent" in done.stdout
    assert "answers are missing; the same command goes on with them" in done.stdout


def test_an_audit_without_traffic_has_nothing_to_ask(run):
    assert "0 requests, of 0 that may be asked again" in run("audit").stdout
    report = json.loads(run("audit", "--from-log", 5, "--json").stdout)
    assert (report["population"], report["answers"], report["missing"]) == (0, 0, 0)


def worked_off(home, engine, job_id):
    """Runs a queued job as a worker's child does; gives its state and what it left."""
    environment = {"POINTSMAN_HOME": str(home), "POINTSMAN_CONFIG": str(home / "pointsman.toml")}
    place = Workplace.read(Settings.read(environment, cwd=home))
    held = claim(engine, job_id, new_owner())
    assert held is not None
    with JobContext.open(place, engine, held) as context:
        end = attempt(context)
    finish(engine, end)
    return Jobs(engine).get(job_id)


def test_a_probe_as_a_job(run, tasks, home, here):
    job_id = run("probe", "--tasks", tasks, "--job", "--budget", "1").stdout.strip()
    tasks.unlink()  # the job has its own copy
    job = worked_off(home, here.engine, job_id)
    assert job is not None and job.state == "done", job and job.reason
    assert job.result["missing"] == 0 and job.result["answered"] == job.result["answers"] > 0
    assert job.cost > 0 and (job.done, job.total) == (job.result["answers"], job.result["answers"])
    assert here.count("decision", "origin = 'probe'") == 6


def test_a_probe_jobs_budget_bounds_it(run, tasks, home, here):
    job_id = run("probe", "--tasks", tasks, "--job", "--budget", "0.001").stdout.strip()
    job = worked_off(home, here.engine, job_id)
    assert job is not None and job.state == "done"
    assert job.result["stopped"] == "the budget is spent" and job.result["missing"] > 0
    assert job.cost <= job.budget


def test_an_audit_as_a_job(run, home, here):
    job_id = run("audit", "--from-log", 3, "--job").stdout.strip()
    job = worked_off(home, here.engine, job_id)
    assert job is not None and job.state == "done" and job.result["population"] == 0


def test_a_jobs_file_is_one_of_the_data_folder(home, here):
    for name in ("../secret.jsonl", "/etc/passwd", "a/b.jsonl", "tasks.txt"):
        job = Jobs(here.engine).start(
            "probe", {"file": name}, project_id=DEFAULT_PROJECT_ID, asked_by="test", dedupe_key=name
        )
        done = worked_off(home, here.engine, job.id)
        assert done is not None and done.state == "failed"
        assert f"file: expected the name of a .jsonl file in {home / 'tasks'}, got {name!r}" in str(done.reason)


def test_estimates_say_what_they_rest_on():
    assert "0 workers × 2 × the tasks of t.jsonl" in estimate("probe", {"file": "t.jsonl", "repeats": 2}).basis
    assert "at most [audit] budget a day" in estimate("audit", {}).basis
    assert estimate("audit", {"from_log": 10}).cost_usd is None
