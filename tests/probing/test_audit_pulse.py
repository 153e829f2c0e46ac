"""Live audits from end to end: the served gateway draws, the dispatcher notices, a job asks every worker."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from pointsman.config import Settings
from pointsman.jobs.runner import Runner
from pointsman.jobs.store import Jobs
from pointsman.jobs.workplace import Workplace, new_owner
from pointsman.probing.pulse import AuditPulse

TOML = """
[router]
chain = ["default"]
default = "alpha"
[exploration]
seed = 1
[audit]
rate = 0.5
budget = {budget}
repeat_share = 0.1
"""
WORKER = """
[[workers]]
name = "{name}"
description = "{name}"
model = "m-{name}"
base_url = "{url}"
max_output_tokens = 50
{price}
"""
PRICE = "price = { input = 1, output = 1 }"


@pytest.fixture
def serve(running, upstream, empty_database, tmp_path):
    made = []

    def start(budget=1, price=PRICE):
        workers = "".join(WORKER.format(name=n, url=upstream.url, price=price) for n in ("alpha", "beta"))
        made.append(running.RunningGateway(TOML.format(budget=budget) + workers, tmp_path, empty_database, {}))
        return made[-1]

    yield start
    for gateway in made:
        gateway.close()


@pytest.fixture
def work(tmp_path, database_url):
    """Runs what waits, as a worker does; the jobs that it ran."""

    def run(toml):
        file = tmp_path / "jobs.toml"
        file.write_text(toml)
        environment = {"PATH": os.environ["PATH"], "POINTSMAN_HOME": str(tmp_path), "POINTSMAN_CONFIG": str(file)}
        place = Workplace.read(Settings.read(environment, cwd=tmp_path), database_url=database_url)
        runner = Runner(place, new_owner())
        try:
            return [Jobs(runner.engine).get(ran.job_id) for ran in runner.run_next(("probe",))]
        finally:
            runner.close()

    return run


def test_a_share_of_traffic_is_audited_in_the_background(serve, work, here, upstream):
    gateway = serve()
    pulse, now = AuditPulse(here.engine, gateway.config), datetime.now(UTC)
    assert pulse.beat(now) == []
    for n in range(40):
        gateway.chat(f"question {n}")
    gateway.ship()
    drawn = here.count("decision", "audited")
    assert 10 <= drawn <= 30 and here.count("decision", "audit_rate = 0.5") == 40
    assert pulse.beat(now + timedelta(seconds=30)) == []  # looked half a minute ago
    later = now + timedelta(seconds=61)
    (started,) = pulse.beat(later)
    assert AuditPulse(here.engine, gateway.config).beat(later) == [started]  # another dispatcher starts no second one
    upstream.calls.clear()
    (job,) = work((gateway.home / "pointsman.toml").read_text())
    assert (job.id, job.state, job.result["population"], job.result["missing"]) == (started, "done", drawn, 0)
    assert here.count("decision", "origin = 'audit'") == drawn
    assert len(upstream.calls) == here.count("outcome", "origin = 'audit'") >= 2 * drawn
    assert pulse.beat(later + timedelta(seconds=61)) == []


def test_a_spent_budget_or_a_pool_without_prices_starts_nothing(serve, here):
    gateway = serve(budget=0)
    gateway.chat("a question")
    while here.count("decision", "audited") == 0:
        gateway.chat("another")
        gateway.ship()
    now = datetime.now(UTC)
    assert AuditPulse(here.engine, gateway.config).beat(now) == []
    unpriced = gateway.config.model_copy(
        update={"workers": [worker.model_copy(update={"price": None}) for worker in gateway.config.workers]}
    )
    assert AuditPulse(here.engine, unpriced).beat(now) == []
