"""The overview from hourly sums: whole hours from `rollup_*`, and the edges of the range from the log itself.

Counts and money are exact, percentiles within 3.5% (see `pointsman.rollups.sums`); `episodes` counts those that
began in the range. What changed in the log after its hour was summed shows with the next `rollup` job.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, text

from pointsman.ids import lowest_id
from pointsman.queries.proportion import Proportion
from pointsman.queries.savings import CostHour
from pointsman.queries.scope import bound
from pointsman.queries.summaries import MetricLine, Overview, Percentiles, Point, Totals, WorkerLine
from pointsman.rollups.fill import HOUR, floor_hour
from pointsman.rollups.sums import SHARES, SPREAD, TRAFFIC, WORDS, middle

LEAST_HOURS = 6
"""Ranges with fewer whole hours are read from the log alone, to the minute."""
FAR = timedelta(days=36_500)
CORRECT = "correct"
BIN_ORIGIN = datetime(2000, 1, 3, tzinfo=UTC)  # a Monday, so that weekly buckets start on Mondays

_HOURS = text("""
SELECT date_bin(:bucket, hour, TIMESTAMPTZ '2000-01-03 00:00:00+00') AS hour, worker, router_kind, status, forced,
    sum(decisions) AS decisions, sum(own_ok) AS own_ok, sum(begun) AS begun, sum(explored) AS explored,
    sum(unknown_cost) AS unknown_cost, sum(cost) AS cost, sum(router_cost) AS router_cost
FROM rollup_hour WHERE hour >= :start AND hour < :end
    AND (CAST(:project AS uuid) IS NULL OR project_id = CAST(:project AS uuid))
GROUP BY 1, 2, 3, 4, 5
""")
_COSTS = text("""
SELECT hour, worker, sum(drawn) AS drawn, sum(drawn_cost) AS cost, sum(weight) AS weight,
    sum(weight_cost) AS weight_cost
FROM rollup_hour WHERE hour >= :start AND hour < :end
    AND (CAST(:project AS uuid) IS NULL OR project_id = CAST(:project AS uuid))
GROUP BY 1, 2
""")
_SPREADS = text("""
SELECT worker, measure, bucket, sum(n) AS n FROM rollup_spread WHERE hour >= :start AND hour < :end
    AND (CAST(:project AS uuid) IS NULL OR project_id = CAST(:project AS uuid))
GROUP BY 1, 2, 3
""")
_WORDS = text("""
SELECT worker, metric, sum(n) AS n, sum(yes) AS yes, sum(said) AS said, sum(numbers) AS numbers, sum(total) AS total
FROM rollup_word WHERE hour >= :start AND hour < :end
    AND (CAST(:project AS uuid) IS NULL OR project_id = CAST(:project AS uuid))
GROUP BY 1, 2
""")
_SHARES = text("""
SELECT pattern, version, sum(n) AS n FROM rollup_share WHERE hour >= :start AND hour < :end
    AND (CAST(:project AS uuid) IS NULL OR project_id = CAST(:project AS uuid))
GROUP BY 1, 2
""")
_TRAFFIC, _SPREAD, _SAID, _SHARED = text(TRAFFIC), text(SPREAD), text(WORDS), text(SHARES)


@dataclass(frozen=True)
class Range:
    """Whole hours [start, end) from the sums, and `edges` (ids from, ids below) from the log."""

    project: str | None
    start: datetime
    end: datetime
    edges: tuple[tuple[str, str], ...]

    @property
    def summed(self) -> dict[str, Any]:
        return {"project": self.project, "start": self.start, "end": self.end}


def range_of(
    project: str | None, since: datetime | None, until: datetime | None, first: datetime, mark: datetime
) -> Range | None:
    """How a range splits; None where too few whole hours of it are summed."""
    begin = since or first
    start = floor_hour(begin) if floor_hour(begin) == begin or since is None else floor_hour(begin) + HOUR
    end = min(mark, floor_hour(until)) if until else mark
    if (end - start) < LEAST_HOURS * HOUR:
        return None
    low = [] if since is None or start == since else [(lowest_id(since), lowest_id(start))]
    if until is None or until > end:
        low.append((lowest_id(end), lowest_id(until or end + FAR)))
    return Range(bound(project), start, end, tuple(low))


def rolled_overview(
    connection: Connection, found: Range, since: datetime | None, until: datetime | None, bucket: timedelta
) -> Overview:
    """As `queries.overview`, with `rolled_until` set. Bars are an hour wide at least."""
    bucket = max(bucket, HOUR)
    rows = [*connection.execute(_HOURS, {**found.summed, "bucket": bucket}).mappings()]
    costs = [*connection.execute(_COSTS, found.summed).mappings()]
    spreads = [*connection.execute(_SPREADS, found.summed).mappings()]
    words = [*connection.execute(_WORDS, found.summed).mappings()]
    shares = [*connection.execute(_SHARES, found.summed).mappings()]
    for edge in _edges(found):
        more = connection.execute(_TRAFFIC, edge).mappings().all()
        rows += [{**row, "hour": _binned(row["hour"], bucket)} for row in more]
        costs += [{**row, "cost": row["drawn_cost"]} for row in more]
        spreads += connection.execute(_SPREAD, edge).mappings().all()
        words += connection.execute(_SAID, edge).mappings().all()
        shares += connection.execute(_SHARED, edge).mappings().all()
    correct = _correct(words)
    return Overview(
        since=since,
        until=until,
        bucket=bucket,
        totals=_totals(rows, spreads, correct),
        workers=_workers(rows, spreads, correct),
        series=_series(rows),
        outcomes=_counts(rows, "status"),
        router_kinds=_counts(rows, "router_kind"),
        feedback=_metrics(words),
        costs=tuple(cost_hours(costs)),
        patterns=_counts(shares, "pattern", "n"),
        versions=_counts(shares, "version", "n"),
        rolled_until=found.end,
    )


def exact_costs(
    connection: Connection, project: str | None, since: datetime | None, until: datetime | None, now: datetime
) -> tuple[CostHour, ...]:
    """The hours of a range that is read from the log alone."""
    low = lowest_id(since) if since else "00000000-0000-0000-0000-000000000000"
    values = {"project": bound(project), "low": low, "high": lowest_id(until or now + FAR)}
    rows = connection.execute(_TRAFFIC, values).mappings()
    return tuple(cost_hours({**row, "cost": row["drawn_cost"]} for row in rows))


def cost_hours(rows: Iterable[Mapping[Any, Any]]) -> Iterator[CostHour]:
    for row in rows:
        if row["drawn"]:
            yield CostHour(
                row["hour"], row["worker"], int(row["drawn"]), float(row["cost"]), row["weight"], row["weight_cost"]
            )


def _edges(found: Range) -> Iterator[dict[str, Any]]:
    for low, high in found.edges:
        yield {"project": found.project, "low": low, "high": high}


def _binned(hour: datetime, bucket: timedelta) -> datetime:
    return BIN_ORIGIN + (hour - BIN_ORIGIN) // bucket * bucket


def _totals(rows: Sequence[Any], spreads: Sequence[Any], correct: Mapping[str, Proportion]) -> Totals:
    def total(name: str) -> int:
        return int(sum(row[name] for row in rows))

    said = list(correct.values())
    return Totals(
        decisions=total("decisions"),
        episodes=total("begun"),
        success=_success(rows),
        correct=Proportion(sum(part.count for part in said), sum(part.n for part in said)),
        cost=sum((Decimal(row["cost"]) for row in rows), Decimal(0)),
        unknown_cost=total("unknown_cost"),
        router_cost=sum((Decimal(row["router_cost"]) for row in rows), Decimal(0)),
        latency=_percentiles(row for row in spreads if row["measure"] == "latency"),
        overhead=_percentiles(row for row in spreads if row["measure"] == "overhead"),
        explored=total("explored"),
        forced=_counts(rows, "forced"),
    )


def _success(rows: Sequence[Any]) -> Proportion:
    """Outcome ok, of those that ended."""
    ok = sum(row["decisions"] for row in rows if row["status"] == "ok")
    return Proportion(int(ok), int(sum(row["decisions"] for row in rows if row["status"])))


def _own(rows: Sequence[Any]) -> Proportion:
    """The worker itself answered well, of those that ended."""
    ended = sum(row["decisions"] for row in rows if row["status"])
    return Proportion(int(sum(row["own_ok"] for row in rows)), int(ended))


def _workers(rows: Sequence[Any], spreads: Sequence[Any], correct: Mapping[str, Proportion]) -> tuple[WorkerLine, ...]:
    mine = _by(rows, "worker")
    latencies = _by([row for row in spreads if row["measure"] == "latency"], "worker")
    sizes = {worker: int(sum(row["decisions"] for row in found)) for worker, found in mine.items() if worker}
    whole = sum(sizes.values())
    return tuple(
        WorkerLine(
            worker=worker,
            chosen=size,
            share=size / whole,
            success=_own(mine[worker]),
            correct=correct.get(worker, Proportion(0, 0)),
            cost=sum((Decimal(row["cost"]) for row in mine[worker]), Decimal(0)),
            unknown_cost=int(sum(row["unknown_cost"] for row in mine[worker])),
            latency=_percentiles(latencies.get(worker, ())),
        )
        for worker, size in sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0]))
    )


def _series(rows: Sequence[Any]) -> tuple[Point, ...]:
    found: dict[tuple[datetime, str], list[Any]] = defaultdict(list)
    for row in rows:
        if row["worker"]:
            found[row["hour"], row["worker"]].append(row)
    return tuple(
        Point(
            start=start,
            worker=worker,
            decisions=int(sum(row["decisions"] for row in mine)),
            success=_own(mine),
            cost=sum((Decimal(row["cost"]) for row in mine), Decimal(0)),
            latency_p50=None,
            latency_p95=None,
        )
        for (start, worker), mine in sorted(found.items())
    )


def _counts(rows: Sequence[Any], name: str, number: str = "decisions") -> dict[str, int]:
    counted: Counter[str] = Counter()
    for row in rows:
        if row[name]:
            counted[row[name]] += int(row[number])
    return dict(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def _percentiles(rows: Iterable[Any]) -> Percentiles:
    counted: Counter[int] = Counter()
    for row in rows:
        counted[row["bucket"]] += int(row["n"])
    n, below, found = sum(counted.values()), 0, dict[int, float]()
    for bucket in sorted(counted):
        below += counted[bucket]
        for percent in (50, 95, 99):
            if percent not in found and below >= n * percent / 100:
                found[percent] = middle(bucket)
    return Percentiles(n, found.get(50), found.get(95), found.get(99))


def _correct(words: Sequence[Any]) -> dict[str, Proportion]:
    mine = _by([row for row in words if row["metric"] == CORRECT and row["worker"]], "worker")
    return {
        worker: Proportion(int(sum(row["yes"] for row in found)), int(sum(row["said"] for row in found)))
        for worker, found in mine.items()
    }


def _metrics(words: Sequence[Any]) -> tuple[MetricLine, ...]:
    lines = []
    for metric, found in _by(words, "metric").items():
        total = {name: sum(row[name] for row in found) for name in ("n", "yes", "said", "numbers", "total")}
        mean = float(total["total"] / total["numbers"]) if total["numbers"] else None
        lines.append(MetricLine(metric, int(total["n"]), Proportion(int(total["yes"]), int(total["said"])), mean))
    return tuple(sorted(lines, key=lambda line: (-line.n, line.metric)))


def _by(rows: Iterable[Any], name: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        found[row[name]].append(row)
    return dict(found)
