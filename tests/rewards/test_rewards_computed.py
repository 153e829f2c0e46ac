"""Rewards as rows: idempotent, closed at their deadline, comparable within a row, apart for every project."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import text

from pointsman.errors import UserError
from pointsman.ids import content_id, new_id
from pointsman.rewards.compute import Window, compute_rewards
from pointsman.rewards.spec import RewardSpec
from pointsman.rewards.store import load_spec

SPEC = RewardSpec(deadline=900)


@pytest.fixture
def compute(engine, log):
    def run(minutes=60.0, spec=SPEC, **more):
        with engine.begin() as connection:
            window = more.pop("window", Window())
            return compute_rewards(connection, spec, window, now=log.at(minutes), **more)

    return run


@pytest.fixture
def rewards(engine):
    def read(spec=SPEC):
        with engine.connect() as connection:
            query = text("SELECT * FROM reward WHERE spec_hash = :hash ORDER BY outcome_id")
            return {str(row.outcome_id): row for row in connection.execute(query, {"hash": spec.hash})}

    return read


def test_it_is_computed_once_and_again_only_where_something_changed(log, compute, rewards):
    known, unknown = log.decision(0, score=0.75), log.decision(1)
    done = compute()
    assert (done.decisions, done.rewards, done.known, done.written) == (2, 2, 1, 2)
    assert done.unknown == {"unknown": 1}
    row = rewards()[known]
    assert (row.value, row.skill, row.source, row.arm, row.worker) == (0.75, 0.75, "verifier", "a", "a")
    assert rewards()[unknown].value is None and rewards()[unknown].reason == "unknown"
    assert compute(90).written == 0
    log.word(unknown, True)
    assert compute(90).written == 1
    assert rewards()[unknown].value == 1.0


def test_late_feedback_changes_labels_and_not_the_closed_value(log, compute, rewards):
    early, late, open_ = log.decision(0), log.decision(0), log.decision(55)
    log.word(early, True, 10)
    log.word(late, True, 16)
    compute(60)
    rows = rewards()
    assert (rows[early].value, rows[early].closed, rows[early].closed_value) == (1.0, True, 1.0)
    assert (rows[late].value, rows[late].closed, rows[late].closed_value) == (1.0, True, None)
    assert (rows[open_].closed, rows[open_].closed_value) == (False, None)
    log.word(early, False, 61, rater="ann")
    log.word(open_, False, 65)
    compute(120)
    rows = rewards()
    assert (rows[early].value, rows[early].closed_value) == (0.5, 1.0)
    assert (rows[open_].value, rows[open_].closed, rows[open_].closed_value) == (0.0, True, 0.0)


def test_when_it_is_computed_does_not_matter(log, compute, rewards):
    """A gate's value is what stood at the deadline, even where the word was amended before anybody computed."""
    decision = log.decision(0)
    first = log.word(decision, True, 5)
    log.word(decision, False, 30, amends=first)
    compute(60)
    row = rewards()[decision]
    assert (row.value, row.closed_value) == (0.0, 1.0)


def test_an_episodes_feedback_is_of_all_its_decisions(log, compute, rewards):
    episode = new_id()
    mine = [log.decision(minute, episode=episode) for minute in range(3)]
    other = log.decision(3, episode=new_id())
    log.word(None, False, 5, episode_id=episode)
    compute()
    assert [rewards()[decision].value for decision in mine] == [0.0] * 3
    assert rewards()[other].value is None


def test_failures_and_fallbacks_are_the_intended_workers(log, compute, rewards):
    failed = log.decision(0, status="upstream_error", answered=None)
    fallback = log.decision(1, answered="b", score=1.0)
    refused = log.decision(2, status="rejected", chosen=None, answered=None)
    done = compute()
    assert (done.rewards, done.poor) == (2, {"upstream_error": 1, "fallback": 1})
    rows = rewards()
    assert (rows[failed].value, rows[failed].skill, rows[failed].arm) == (0.0, None, "a")
    assert (rows[fallback].value, rows[fallback].skill) == (0.0, 1.0)
    assert (rows[fallback].arm, rows[fallback].worker) == ("a", "b")
    assert refused not in rows


def test_a_team_is_the_arm_and_its_last_worker_has_no_skill_of_it(log, engine, compute, rewards):
    team = log.decision(0, answered="b", score=1.0)
    with engine.begin() as connection:
        connection.execute(text("UPDATE decision SET kind = 'pattern', chosen = 'trinity'"))
    compute()
    row = rewards()[team]
    assert (row.arm, row.worker, row.value, row.skill, row.reason) == ("trinity", "b", 1.0, None, None)


def test_a_full_information_row_takes_no_feedback_and_only_common_terms(log, engine, compute, rewards):
    judged = log.full(0, origin="audit", cells=[("a", 0, {"score": 1.0}), ("b", 0, {}), ("b", 1, {})])
    log.word(judged, True)
    probe = log.full(1, cells=[("a", 0, {"score": 1.0}), ("b", 0, {"status": "timeout"})])
    done = compute()
    assert done.unknown == {"unknown": 3} and done.poor == {"timeout": 1}
    with engine.begin() as connection:
        calls = connection.execute(text("SELECT id, worker FROM call WHERE decision_id = :d"), {"d": judged}).all()
        for call in calls:
            connection.execute(
                text(
                    "INSERT INTO judge_score (judge_hash, call_id, project_id, decision_id, worker, judge_worker, mode,"
                    " score, created_at) VALUES ('j', :c, :p, :d, :w, 'b', 'grade', :s, now())"
                ),
                {
                    "c": call.id,
                    "p": log.project,
                    "d": judged,
                    "w": call.worker,
                    "s": 0.25 if call.worker == "a" else 0.5,
                },
            )
    compute(judge="j")
    of_row = [row for row in rewards().values() if str(row.decision_id) == judged]
    assert sorted((row.worker, row.value, row.source) for row in of_row) == [
        ("a", 0.25, "judge"), ("b", 0.5, "judge"), ("b", 0.5, "judge"),
    ]  # fmt: skip
    assert not any(row.closed for row in rewards().values())
    of_probe = {row.worker: row for row in rewards().values() if str(row.decision_id) == probe}
    assert (of_probe["a"].value, of_probe["b"].value, of_probe["b"].skill) == (1.0, 0.0, None)


def test_a_window_of_one_project(log, compute, rewards):
    other = content_id("test-project", "other")
    early, mine, foreign = (
        log.decision(0, score=1.0),
        log.decision(30, score=1.0),
        log.decision(30, score=1.0, project=other),
    )
    log.word(mine, False, project=other)  # another project's word on my decision changes nothing
    window = Window(log.at(10), log.at(40))
    assert compute(window=window, project=log.project).decisions == 1
    assert set(rewards()) == {mine} and rewards()[mine].value == 1.0
    assert compute(window=window).decisions == 2
    assert set(rewards()) == {mine, foreign}
    assert compute().decisions == 3 and early in rewards()


def test_batches_keep_rows_whole(log, compute, rewards):
    for minute in range(7):
        log.full(minute, cells=[("a", 0, {"score": 1.0}), ("b", 0, {"score": minute % 2})])
    done = compute(batch=2)
    assert (done.decisions, done.rewards, done.written) == (7, 14, 14)
    assert compute(batch=3).written == 0


def test_versions_of_a_spec_stand_side_by_side(log, engine, compute, rewards):
    decision = log.decision(0, score=1.0, cost=Decimal("0.005"), latency_ms=1000)
    priced = RewardSpec(cost_weight=1.0)
    compute()
    compute(spec=priced)
    assert rewards()[decision].value == 1.0 and rewards(priced)[decision].value == pytest.approx(0.75)
    assert rewards()[decision].terms == {"verifier": 1.0, "cost": "0.0050000000", "seconds": 1.0}
    with engine.connect() as connection:
        assert load_spec(connection, priced.hash) == priced
        with pytest.raises(UserError, match="no reward spec with hash nothing"):
            load_spec(connection, "nothing")


def test_a_year_of_silence_is_no_reward(log, compute, rewards):
    decision = log.decision(0)
    compute(timedelta(days=365) / timedelta(minutes=1))
    assert (rewards()[decision].value, rewards()[decision].closed_value, rewards()[decision].closed) == (
        None,
        None,
        True,
    )
