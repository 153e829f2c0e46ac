"""The jobs around gates: started while a gate runs, run by a worker; admission by a certificate alone; webhooks."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import insert, text

from pointsman.config import Settings
from pointsman.drift.pulse import DriftPulse
from pointsman.jobs.runner import Runner
from pointsman.jobs.store import Jobs
from pointsman.jobs.workplace import Workplace, new_owner
from pointsman.promotion.admit import admit_offline
from pointsman.promotion.gate_proof import CERTIFICATE
from pointsman.promotion.offline import Evidence, claims, read_known
from pointsman.promotion.pulse import Pulse
from pointsman.promotion.serving import newest_promotion
from pointsman.rewards.spec import RewardSpec
from pointsman.rewards.store import save_spec


@pytest.fixture
def worker(tmp_path: Path, database_url: str) -> Callable[..., Any]:
    """`worker(toml)`: runs what waits in the queues default and probe; the jobs that it ran."""

    def run(toml: str) -> list[Any]:
        file = tmp_path / "pointsman.toml"
        file.write_text(toml)
        environment = {"PATH": os.environ["PATH"], "POINTSMAN_HOME": str(tmp_path), "POINTSMAN_CONFIG": str(file)}
        runner = Runner(
            Workplace.read(Settings.read(environment, cwd=tmp_path), database_url=database_url), new_owner()
        )
        try:
            ran = runner.run_next(("default", "probe"))
            return [Jobs(runner.engine).get(one.job_id) for one in ran]
        finally:
            runner.close()

    return run


def test_a_job_is_started_for_rows_that_wait_and_takes_them(synthetic: Callable[..., Any], worker: Any) -> None:
    log_ = synthetic()
    log_.clock = datetime.now(UTC) - timedelta(hours=3)
    pulse = Pulse(log_.engine)
    assert pulse.beat(log_.clock) is None  # no gate runs
    gate = log_.gate("propose")
    log_.traffic(gate, 200, {"candidate": 0.9, "incumbent": 0.3})
    log_.flush()
    later = datetime.now(UTC)
    started = pulse.beat(later)
    assert started is not None
    assert pulse.beat(later + timedelta(seconds=1)) is None  # looked just now
    assert Pulse(log_.engine).beat(later) == started  # another dispatcher starts no second one
    (done,) = worker(TOML)
    assert (done.id, done.kind, done.state) == (started, "gates", "done")
    assert done.result["gates"][0]["state"] == "ready" and done.result["gates"][0]["rows"] == 200
    assert pulse.beat(later + timedelta(seconds=30)) is None  # it does not run any more


def test_without_rows_it_is_looked_at_once_a_minute(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    log_.gate()
    pulse, now = Pulse(log_.engine), datetime.now(UTC)
    first = pulse.beat(now)
    with log_.engine.begin() as connection:
        connection.execute(text("UPDATE job SET state = 'done'"))
    assert first is not None and pulse.beat(now + timedelta(seconds=30)) is None
    assert pulse.beat(now + timedelta(seconds=61)) not in (None, first)


def test_a_drift_job_looks_at_everything_once(synthetic: Callable[..., Any], worker: Any) -> None:
    log_ = synthetic()
    log_.clock = datetime.now(UTC) - timedelta(hours=3)
    for _ in range(5):
        log_.word(log_.decision(None, "incumbent"), True)
    log_.flush()
    Jobs(log_.engine).start("drift", {}, project_id=log_.project, asked_by="a test")
    (done,) = worker(TOML)
    assert (done.state, done.result) == ("done", {"alarms": [], "dial_retired": None, "promoted": None, "sent": 0})
    assert {row.kind for row in log_.sql("SELECT kind FROM detector")} == {"pool", "worker_reward"}
    assert log_.sql("SELECT count(*) AS n FROM reward WHERE closed")[0].n == 5


TOML = """
[reward.default]
quality = ["feedback"]
[[workers]]
name = "alpha"
description = "Alpha."
model = "m-alpha"
base_url = "http://127.0.0.1:9/v1"
[[workers]]
name = "beta"
description = "Beta."
model = "m-beta"
base_url = "http://127.0.0.1:9/v1"
"""
OFFLINE = '[gate]\nmode = "auto"\noffline_rows = 100\n'


def certified(log_: Any, origin: str = "audit", spec: RewardSpec | None = None) -> None:
    """A certificate that the candidate is better than the incumbent, which served the newest request."""
    log_.decision(None, "incumbent", shadow_picks=None)
    rows = [log_.asked(origin, {"alpha": 0.2, "beta": 0.8}) for _ in range(120)]
    log_.flush()
    endpoints = {name: log_.pool.by_name[name].endpoint_hash for name in ("alpha", "beta")}
    evidence = Evidence(tuple(rows), endpoints, np.array([[[0.0, 1.0]] * 120, [[1.0, 0.0]] * 120]))
    with log_.engine.begin() as connection:
        if spec is not None:
            save_spec(connection, spec, log_.clock)
        made = claims(evidence, read_known(connection, log_.project, evidence, spec), 0.05)[0]
        connection.execute(
            insert(CERTIFICATE).values(
                id="0198c5a2-3f10-7c1e-9a53-0242ac120002", project_id=log_.project, claim=made.claim,
                router_version_id=log_.candidate, incumbent_id=log_.incumbent, alpha=made.alpha, method="m",
                window_start=log_.clock, window_end=log_.clock, assumptions=[], numbers=made.numbers, data_hash="d",
                pool_epoch=log_.pool.epoch, evidence=evidence.to_json(), holds=made.holds, created_at=log_.clock,
                checked_at=log_.clock, spec_hash=None if spec is None else spec.hash,
            )
        )  # fmt: skip


def admitted(log_: Any) -> str | None:
    with log_.engine.begin() as connection:
        return admit_offline(connection, log_.project, log_.config, log_.clock)


def test_enough_verified_audits_let_a_candidate_in_without_a_gate(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic(OFFLINE)
    certified(log_, spec=RewardSpec(quality=("verifier",)))
    assert admitted(log_) == log_.candidate
    with log_.engine.connect() as connection:
        assert newest_promotion(connection, log_.project).version == log_.candidate
    record = log_.sql("SELECT actor, action, reason FROM actor_log")[0]
    assert record == ("gate", "promote", "certified on 120 audited episodes, by verifiers alone")
    assert admitted(log_) is None


@pytest.mark.parametrize(
    ("settings", "origin", "spec"),
    [
        ('[gate]\nmode = "auto"\n', "audit", None),  # a number of rows is not stated
        ("[gate]\noffline_rows = 100\n", "audit", None),  # a person promotes
        ('[gate]\nmode = "auto"\noffline_rows = 121\n', "audit", None),  # too few
        (OFFLINE, "probe", None),  # tasks that somebody chose are no traffic
        (OFFLINE, "audit", RewardSpec(quality=("verifier", "feedback"))),  # not verifiers alone
    ],
)
def test_else_it_waits_for_a_gate_or_a_person(
    synthetic: Callable[..., Any], settings: str, origin: str, spec: RewardSpec | None
) -> None:
    log_ = synthetic(settings)
    certified(log_, origin, spec)
    assert admitted(log_) is None


def test_a_certificate_against_another_incumbent_lets_nobody_in(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic(OFFLINE)
    certified(log_)
    log_.decision(None, "incumbent", router_version_id=log_.version("another"), shadow_picks=None)
    log_.flush()
    assert admitted(log_) is None


def test_drift_is_looked_for_once_an_hour_where_there_is_traffic(synthetic: Callable[..., Any]) -> None:
    log_, now = synthetic(), datetime.now(UTC)
    pulse = DriftPulse(log_.engine)
    assert pulse.beat(now) == []
    log_.clock = now
    log_.decision(None, "incumbent")
    log_.flush()
    assert pulse.beat(now + timedelta(minutes=1)) == []  # looked just now
    (started,) = pulse.beat(now + timedelta(minutes=6))
    assert Jobs(log_.engine).get(started).kind == "drift"
    with log_.engine.begin() as connection:
        connection.execute(text("UPDATE job SET state = 'done'"))
    assert pulse.beat(now + timedelta(minutes=12)) == []  # one an hour
