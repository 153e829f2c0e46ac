"""Hourly sums say what the log says: counts and money to the last digit, percentiles within their scale."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from pointsman.ids import new_id
from pointsman.queries import overview
from pointsman.queries.savings import CostHour, saved_against
from pointsman.rollups.fill import refresh
from pointsman.rollups.sums import bucket_of, middle

HOUR = timedelta(hours=1)
NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def both(empty, database_url, engine, seeding):
    """The overview of the same ranges from the log alone, and then from sums."""
    empty()
    seeding.seed(database_url, until=NOW - timedelta(minutes=1), number=400)
    ranges = {"all": None, "three days": NOW - timedelta(days=3, minutes=17)}
    exact = {name: overview(engine, None, since, None, 3 * HOUR) for name, since in ranges.items()}
    filled = refresh(engine, NOW)
    assert filled.new == pytest.approx(144, abs=2)
    return exact, {name: overview(engine, None, since, None, 3 * HOUR) for name, since in ranges.items()}


@pytest.mark.parametrize("name", ["all", "three days"])
def test_counts_and_money_are_exact(both, name):
    log, sums = (one[name] for one in both)
    assert log.rolled_until is None and sums.rolled_until is not None
    for field in ("decisions", "success", "correct", "cost", "unknown_cost", "router_cost", "explored", "forced"):
        assert getattr(sums.totals, field) == getattr(log.totals, field), field
    assert (sums.outcomes, sums.router_kinds, sums.feedback) == (log.outcomes, log.router_kinds, log.feedback)
    assert (sums.patterns, sums.versions) == (log.patterns, log.versions)
    for mine, other in zip(sums.workers, log.workers, strict=True):
        assert (mine.worker, mine.chosen, mine.share) == (other.worker, other.chosen, other.share)
        assert (mine.success, mine.correct, mine.cost) == (other.success, other.correct, other.cost)
    points = [(p.start, p.worker, p.decisions, p.success, p.cost) for p in sums.series]
    assert points == [(p.start, p.worker, p.decisions, p.success, p.cost) for p in log.series]


def test_percentiles_are_within_their_scale(both):
    log, sums = both[0]["all"].totals, both[1]["all"].totals
    assert sums.latency.n == log.latency.n
    for name in ("p50", "p95"):
        assert getattr(sums.latency, name) == pytest.approx(getattr(log.latency, name), rel=0.06)


def test_savings_are_the_same_from_both(both):
    log, sums = (saved_against(one["all"].costs, "atlas") for one in both)
    assert log is not None and sums is not None
    assert sums.decisions == log.decisions
    assert (sums.usd, sums.low, sums.high) == pytest.approx((log.usd, log.low, log.high))
    assert sums.usd > 0  # atlas is the dearest


def test_a_short_range_reads_the_log(both, engine):
    assert overview(engine, None, NOW - timedelta(hours=2), None, HOUR).rolled_until is None


def test_a_later_word_changes_its_hour(both, engine):
    old = text("SELECT d.id, d.project_id FROM decision d ORDER BY d.id OFFSET 41 LIMIT 1")
    before = overview(engine, None, None, None, 3 * HOUR).totals.correct
    with engine.begin() as connection:
        row = connection.execute(old).one()
        connection.execute(
            text(
                "INSERT INTO feedback (id, project_id, decision_id, metric, value, source, created_at)"
                " VALUES (:id, :project, :decision, 'correct', 'true', 'person', now())"
            ),
            {"id": new_id(), "project": row.project_id, "decision": row.id},
        )
    assert overview(engine, None, None, None, 3 * HOUR).totals.correct == before
    assert refresh(engine, NOW + timedelta(minutes=1)).again >= 4
    after = overview(engine, None, None, None, 3 * HOUR).totals.correct
    assert (after.count, after.n) == (before.count + 1, before.n + 1)


@pytest.mark.parametrize("ms", [0.0, 0.3, 1.0, 17.0, 649.7, 61_000.0])
def test_the_scale(ms):
    assert middle(bucket_of(ms)) == pytest.approx(max(ms, 0.001), rel=0.036)


def test_savings_of_a_hand_made_log():
    hours = [
        row
        for hour in range(20)
        for row in (
            # 8 decisions at $1 and 2 at $3, each worker drawn with its share as propensity
            CostHour(NOW + hour * HOUR, "cheap", 8, 8.0, 10.0, 10.0),
            CostHour(NOW + hour * HOUR, "strong", 2, 6.0, 10.0, 30.0),
        )
    ]
    saved = saved_against(hours, "strong")
    assert saved is not None
    assert (saved.decisions, saved.instead, saved.usd) == (200, pytest.approx(600), pytest.approx(600 - 280))
    assert saved.low == pytest.approx(saved.usd) == saved.high  # every hour is alike
    assert saved.share == pytest.approx(320 / 600)
    assert saved_against(hours[:10], "strong") is None
