"""Rewards follow the log: what came in, closed, or got a word is computed once, and a changed spec computes anew."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from pointsman.config import Settings, load_text
from pointsman.ids import id_at, new_id
from pointsman.jobs.runner import Runner
from pointsman.jobs.store import Jobs
from pointsman.jobs.workplace import Workplace, new_owner
from pointsman.rewards.job import RewardPulse
from pointsman.rewards.refresh import Need, refresh, waiting
from pointsman.rewards.spec import RewardSpec, spec_of

SPEC = RewardSpec(deadline=900)
KEPT = timedelta(days=30)
WORKERS = """
[[workers]]
name = "a"
description = "A."
model = "m-a"
base_url = "http://127.0.0.1:9/v1"
"""


@pytest.fixture
def follow(engine, log):
    """`follow(minutes)`: one look, at that time; (decisions computed, rewards written)."""

    def look(minutes=60.0, spec=SPEC, **more):
        done = refresh(engine, spec, log.at(minutes), kept=KEPT, **more)
        return done.decisions, done.written

    return look


@pytest.fixture
def value(engine):
    def read(outcome, spec=SPEC):
        query = text("SELECT value, closed FROM reward WHERE spec_hash = :spec AND outcome_id = :id")
        with engine.connect() as connection:
            return tuple(connection.execute(query, {"spec": spec.hash, "id": outcome}).one())

    return read


def test_what_came_in_is_computed_once_and_closes_when_it_is_due(log, follow, value):
    first = log.decision(0, score=0.5)
    assert follow(1) == (1, 1) and value(first) == (0.5, False)
    second = log.decision(2, score=1.0)
    assert follow(3) == (1, 1)
    assert follow(4) == (0, 0)  # nothing new
    assert follow(16) == (1, 1) and value(first) == (0.5, True) and value(second) == (1.0, False)
    assert follow(60) == (1, 1) and follow(90) == (0, 0)


def test_a_word_is_taken_whatever_it_is_of(log, follow, value):
    episode = new_id()
    old, others = log.decision(0), [log.decision(n, episode=episode) for n in (1, 2)]
    assert follow(60) == (3, 3)
    log.word(old, False, 61, id=id_at(log.at(61)))
    log.word(None, True, 62, episode_id=episode, id=id_at(log.at(62)))
    assert follow(63) == (3, 3)
    assert [value(one)[0] for one in (old, *others)] == [0.0, 1.0, 1.0]
    assert follow(73) == (3, 0)  # a word that came a little late could still be on its way
    assert follow(90) == (0, 0)


def test_what_came_late_is_found_by_a_sweep(log, follow, value):
    log.decision(500, score=1.0)
    assert follow(501) == (1, 1)
    late = log.decision(1, score=0.25)  # a journal that waited for Postgres
    audited = log.full(2, origin="audit", cells=[("a", 0, {"score": 1.0}), ("b", 0, {"score": 0.0})])
    assert follow(502) == (0, 0)
    assert follow(503, sweep=True) == (2, 3) and value(late) == (0.25, True)
    assert follow(504, sweep=True) == (0, 0)
    assert audited


def test_what_was_given_up_and_ended_after_all_is_computed_again(engine, log, follow, value):
    given_up = log.decision(0, status="abandoned", answered=None)
    assert follow(1) == (1, 1) and value(given_up)[0] is None
    with engine.begin() as connection:
        connection.execute(text("UPDATE outcome SET status = 'ok', worker = 'a', score = 1"))
    assert follow(2) == (1, 1) and value(given_up)[0] == 1.0
    with engine.begin() as connection:
        connection.execute(text("UPDATE outcome SET status = 'timeout'"))
    assert follow(3) == (1, 1) and value(given_up)[0] == 0.0


def test_a_new_version_of_a_spec_begins_with_everything_that_is_kept(engine, log, follow, value):
    first = log.decision(0, score=1.0)
    log.decision(-60 * 24 * 40)  # past its retention
    follow(600)
    dearer = RewardSpec(deadline=900, latency_weight=1.0)
    with engine.connect() as connection:
        assert waiting(connection, Need.of(connection, SPEC, log.at(601), KEPT), 10) == 0
        assert waiting(connection, Need.of(connection, dearer, log.at(601), KEPT), 10) == 1
    assert follow(601, dearer) == (1, 1)
    assert value(first, SPEC)[0] == 1.0 and value(first, dearer)[0] is None  # its time is not known
    refused = log.decision(602, status="rejected", chosen=None, answered=None)
    assert follow(603, dearer) == (0, 0) and refused


def test_the_dispatcher_starts_a_job_while_something_waits_and_it_computes_every_spec(
    engine, log, tmp_path, database_url
):
    file = tmp_path / "pointsman.toml"
    file.write_text(f"{WORKERS}[reward.strict]\nquality = ['verifier']\n")
    config, now = load_text(file.read_text()), datetime.now(UTC)
    pulse = RewardPulse(engine, config)
    assert pulse.beat(now) is None  # no log, no work
    minutes = (now - log.start).total_seconds() / 60
    log.decision(minutes - 60, score=1.0)
    later = now + timedelta(seconds=61)
    started = pulse.beat(later)
    assert started is not None and RewardPulse(engine, config).beat(later) == started
    assert Jobs(engine).get(started).params == {"sweep": True, "small": False}
    assert _worked_off(tmp_path, database_url).result == {
        "default": {"decisions": 1, "written": 1}, "strict": {"decisions": 1, "written": 1},
    }  # fmt: skip
    with engine.connect() as connection:
        specs = set(connection.execute(text("SELECT spec_hash FROM reward")).scalars())
    assert specs == {spec_of(config).hash, spec_of(config, "strict").hash}
    soon = datetime.now(UTC)
    assert pulse.beat(soon + timedelta(seconds=122)) is None
    log.decision((soon - log.start).total_seconds() / 60, score=0.5)
    small = pulse.beat(soon + timedelta(seconds=183))
    assert small is not None and Jobs(engine).get(small).params == {"sweep": False, "small": True}
    assert _worked_off(tmp_path, database_url).result["default"]["written"] == 1


def _worked_off(home, database_url):
    environment = {"PATH": os.environ["PATH"], "POINTSMAN_HOME": str(home)}
    settings = Settings.read({**environment, "POINTSMAN_CONFIG": str(home / "pointsman.toml")}, cwd=home)
    runner = Runner(Workplace.read(settings, database_url=database_url), new_owner())
    try:
        (ran,) = runner.run_next(("default",))
        return Jobs(runner.engine).get(ran.job_id)
    finally:
        runner.close()
