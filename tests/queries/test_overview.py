"""The overview against the same figures computed in Python from what was written."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from statistics import quantiles

import pytest

from pointsman.queries import Proportion, overview

UNTIL = datetime(2026, 6, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def seeded(empty, database_url, seeding):
    empty()
    seeding.seed(database_url, until=UNTIL, number=60, project="other", rng_seed=9)
    return seeding.seed(database_url, until=UNTIL, number=300)


@pytest.fixture(scope="module")
def whole(engine, seeded):
    return overview(engine, seeded.project, None, None, timedelta(hours=6))


def standing(seeded):
    amended = {row["amends"] for row in seeded.rows["feedback"]}
    return [row for row in seeded.rows["feedback"] if row["id"] not in amended]


def test_totals_equal_the_rows_written(whole, seeded):
    totals = whole.totals
    outcomes = seeded.rows["outcome"]
    assert totals.decisions == 300
    assert totals.episodes == 100
    assert totals.success == Proportion(sum(row["status"] == "ok" for row in outcomes), 300)
    assert totals.cost == sum(row["cost"] for row in outcomes if row["cost"] is not None)
    assert totals.unknown_cost == sum(row["cost"] is None for row in outcomes) > 0
    assert totals.router_cost == 300 * Decimal("0.000021")
    assert totals.explored == sum(row["explored"] for row in seeded.decisions) > 0
    assert totals.forced == {"direct": sum(row["forced"] == "direct" for row in seeded.decisions)}


def test_percentiles_are_the_linear_ones(whole, seeded):
    cuts = quantiles([row["latency_ms"] for row in seeded.rows["outcome"]], n=100, method="inclusive")
    latency = whole.totals.latency
    assert (latency.p50, latency.p95, latency.p99) == pytest.approx((cuts[49], cuts[94], cuts[98]))
    assert latency.n == 300
    overheads = quantiles([row["overhead_ms"] for row in seeded.rows["outcome"]], n=100, method="inclusive")
    assert whole.totals.overhead.p95 == pytest.approx(overheads[94])


def test_only_standing_feedback_counts(whole, seeded):
    words = standing(seeded)
    assert len(words) < len(seeded.rows["feedback"])
    assert whole.totals.correct == Proportion(sum(row["value"] for row in words), len(words))
    (line,) = whole.feedback
    assert (line.metric, line.n, line.yes) == ("correct", len(words), whole.totals.correct)
    assert line.mean is None


def test_a_fallback_is_a_failure_of_the_worker_that_was_chosen(whole, seeded):
    chosen = Counter(row["chosen"] for row in seeded.decisions)
    well = Counter(
        row["chosen"]
        for row in seeded.decisions
        if seeded.outcomes[row["id"]]["status"] == "ok" and seeded.outcomes[row["id"]]["worker"] == row["chosen"]
    )
    assert sum(well.values()) < whole.totals.success.count
    assert {line.worker: line.chosen for line in whole.workers} == dict(chosen)
    assert {line.worker: line.success.count for line in whole.workers} == dict(well)
    assert sum(line.share for line in whole.workers) == pytest.approx(1)
    assert [line.chosen for line in whole.workers] == sorted(chosen.values(), reverse=True)


def test_feedback_belongs_to_the_worker_that_answered(whole, seeded):
    expected = Counter(seeded.outcomes[row["decision_id"]]["worker"] for row in standing(seeded))
    assert {line.worker: line.correct.n for line in whole.workers} == dict(expected)


def test_series_adds_up_and_starts_on_the_bucket(whole):
    assert sum(point.decisions for point in whole.series) == 300
    assert all(point.start.hour % 6 == 0 and point.start.minute == 0 for point in whole.series)
    per_worker = Counter()
    for point in whole.series:
        per_worker[point.worker] += point.decisions
    assert per_worker == {line.worker: line.chosen for line in whole.workers}
    assert sum((point.cost for point in whole.series), Decimal(0)) == whole.totals.cost


def test_outcomes_and_router_kinds(whole, seeded):
    assert whole.outcomes == dict(Counter(row["status"] for row in seeded.rows["outcome"]))
    assert whole.router_kinds == dict(Counter(row["router_kind"] for row in seeded.decisions))


def test_a_time_range_takes_its_start_and_leaves_its_end(engine, seeded):
    since, until = UNTIL - timedelta(days=2), UNTIL - timedelta(days=1)
    part = overview(engine, seeded.project, since, until, HOUR)
    inside = [row for row in seeded.decisions if since <= row["decided_at"] < until]
    assert part.totals.decisions == len(inside) == 50
    assert min(row["decided_at"] for row in inside) == since


def test_projects_are_apart_and_the_operator_sees_all(engine, seeded, whole):
    everything = overview(engine, None, None, None, HOUR)
    assert everything.totals.decisions == 360
    other = overview(engine, "00000000-0000-0000-0000-000000000001", None, None, HOUR)
    assert other.totals.decisions == 0
    assert other.totals.success == Proportion(0, 0)
    assert other.totals.latency.p50 is None
    assert (other.workers, other.series, dict(other.outcomes)) == ((), (), {})
    assert overview(engine, "not-a-uuid", None, None, HOUR).totals.decisions == 0


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (8, 10, 0.4902, 0.9433), (500, 1000, 0.4691, 0.5309)],
)
def test_wilson_interval_of_known_cases(count, n, low, high):
    assert Proportion(count, n).wilson() == pytest.approx((low, high), abs=5e-5)


def test_nothing_observed_has_no_share_and_no_interval():
    assert Proportion(0, 0).share is None
    assert Proportion(0, 0).wilson() is None
