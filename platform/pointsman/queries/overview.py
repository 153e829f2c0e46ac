"""The overview of a time range: how much, how well, how dear, how fast, by which worker and router.

Traffic decisions only. A worker's *share* counts the decisions that chose it (the intended arm); it
*succeeded* where it also was the one that answered with outcome `ok`, so a fallback is a failure of the
worker that was meant. Feedback counts for the worker that answered. Audits, probes, replays and
rollouts are no traffic and stand nowhere here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sqlalchemy import Connection, Engine, FromClause, Interval, String, cast, distinct, func, select

from pointsman.ids import time_of
from pointsman.queries.judgements import by_metric, correct_by_worker, total
from pointsman.queries.proportion import Proportion
from pointsman.queries.rolled import BIN_ORIGIN, Range, exact_costs, range_of, rolled_overview
from pointsman.queries.scope import DECISION
from pointsman.queries.summaries import Overview, Point, Totals, WorkerLine
from pointsman.queries.traffic import (
    answered_well,
    counts,
    percentiles,
    read_percentiles,
    traffic_rows,
    unknown_cost,
)
from pointsman.rollups.fill import read_mark


def overview(
    engine: Engine,
    project: str | None,
    since: datetime | None,
    until: datetime | None,
    bucket: timedelta,
) -> Overview:
    """Everything the overview page shows, read in one snapshot so that its numbers agree.

    Where hourly sums cover most of the range they are read in place of the log (`rolled`).
    """
    traffic = traffic_rows(project, since, until)
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection, connection.begin():
        if (found := _summed(connection, project, since, until)) is not None:
            return rolled_overview(connection, found, since, until, bucket)
        metrics = by_metric(connection, traffic)
        judged = correct_by_worker(connection, traffic)
        return Overview(
            since=since,
            until=until,
            bucket=bucket,
            totals=_totals(connection, traffic, judged),
            workers=_workers(connection, traffic, judged),
            series=_series(connection, traffic, bucket),
            outcomes=counts(connection, traffic, traffic.c.status),
            router_kinds=counts(connection, traffic, traffic.c.router_kind),
            feedback=metrics,
            patterns=counts(connection, traffic, traffic.c.pattern),
            versions=counts(connection, traffic, cast(traffic.c.router_version_id, String)),
            costs=exact_costs(connection, project, since, until, datetime.now(UTC)),
        )


def _summed(
    connection: Connection, project: str | None, since: datetime | None, until: datetime | None
) -> Range | None:
    """The part of the range that hourly sums cover; None where the log is to be read alone."""
    mark = read_mark(connection)
    first = connection.scalar(
        select(DECISION.c.id).where(DECISION.c.origin == "traffic").order_by(DECISION.c.id).limit(1)
    )
    if mark is None or first is None:
        return None
    return range_of(project, since, until, time_of(str(first)), mark.until)


def _totals(connection: Connection, traffic: FromClause, judged: Mapping[str, Proportion]) -> Totals:
    t = traffic.c
    query = select(
        func.count().label("decisions"),
        func.count(distinct(t.episode_id)).label("episodes"),
        func.count().filter(t.status == "ok").label("ok"),
        func.count(t.status).label("ended"),
        func.coalesce(func.sum(t.cost), 0).label("cost"),
        unknown_cost(traffic).label("unknown_cost"),
        func.coalesce(func.sum(t.router_cost), 0).label("router_cost"),
        func.count().filter(t.explored).label("explored"),
        *percentiles("latency", t.latency_ms),
        *percentiles("overhead", t.overhead_ms),
    )
    row = connection.execute(query).mappings().one()
    return Totals(
        decisions=row["decisions"],
        episodes=row["episodes"],
        success=Proportion(row["ok"], row["ended"]),
        correct=total(judged),
        cost=Decimal(row["cost"]),
        unknown_cost=row["unknown_cost"],
        router_cost=Decimal(row["router_cost"]),
        latency=read_percentiles("latency", row),
        overhead=read_percentiles("overhead", row),
        explored=row["explored"],
        forced=counts(connection, traffic, t.forced),
    )


def _workers(connection: Connection, traffic: FromClause, judged: Mapping[str, Proportion]) -> tuple[WorkerLine, ...]:
    t = traffic.c
    query = (
        select(
            t.chosen,
            func.count().label("n"),
            answered_well(traffic).label("ok"),
            func.count(t.status).label("ended"),
            func.coalesce(func.sum(t.cost), 0).label("cost"),
            unknown_cost(traffic).label("unknown_cost"),
            *percentiles("latency", t.latency_ms),
        )
        .where(t.chosen.is_not(None))
        .group_by(t.chosen)
        .order_by(func.count().desc(), t.chosen)
    )
    rows = connection.execute(query).mappings().all()
    total = sum(row["n"] for row in rows)
    return tuple(
        WorkerLine(
            worker=row["chosen"],
            chosen=row["n"],
            share=row["n"] / total,
            success=Proportion(row["ok"], row["ended"]),
            correct=judged.get(row["chosen"], Proportion(0, 0)),
            cost=Decimal(row["cost"]),
            unknown_cost=row["unknown_cost"],
            latency=read_percentiles("latency", row),
        )
        for row in rows
    )


def _series(connection: Connection, traffic: FromClause, bucket: timedelta) -> tuple[Point, ...]:
    t = traffic.c
    start = func.date_bin(cast(bucket, Interval), t.decided_at, BIN_ORIGIN).label("start")
    query = (
        select(
            start,
            t.chosen,
            func.count().label("n"),
            answered_well(traffic).label("ok"),
            func.count(t.status).label("ended"),
            func.coalesce(func.sum(t.cost), 0).label("cost"),
            *percentiles("latency", t.latency_ms),
        )
        .where(t.chosen.is_not(None))
        .group_by(start, t.chosen)
        .order_by(start, t.chosen)
    )
    return tuple(
        Point(
            start=row["start"],
            worker=row["chosen"],
            decisions=row["n"],
            success=Proportion(row["ok"], row["ended"]),
            cost=Decimal(row["cost"]),
            latency_p50=row["latency_p50"],
            latency_p95=row["latency_p95"],
        )
        for row in connection.execute(query).mappings()
    )
