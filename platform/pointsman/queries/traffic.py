"""The rows an overview counts, and the aggregates that its parts share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, and_, case, func, null, select

from pointsman.queries.scope import DECISION, OUTCOME, in_time, of_project
from pointsman.queries.summaries import Percentiles


def traffic_rows(project: str | None, since: datetime | None, until: datetime | None) -> FromClause:
    """One row per traffic decision with its outcome. An outcome has its decision's id, hence the same range.

    A team's tree is one row, its root's: its outcome has what the whole tree cost, and `router_cost` is the tree's
    too. A root chose a pattern and no worker.
    """
    joined = DECISION.outerjoin(OUTCOME, and_(OUTCOME.c.id == DECISION.c.id, in_time(OUTCOME.c.id, since, until)))
    return (
        select(
            DECISION.c.id,
            DECISION.c.project_id,
            DECISION.c.episode_id,
            DECISION.c.decided_at,
            case((DECISION.c.kind == "pattern", null()), else_=DECISION.c.chosen).label("chosen"),
            DECISION.c.router_kind,
            DECISION.c.pattern,
            DECISION.c.router_version_id,
            (func.coalesce(DECISION.c.router_cost, 0) + _below()).label("router_cost"),
            DECISION.c.explored,
            DECISION.c.forced,
            OUTCOME.c.status,
            OUTCOME.c.worker.label("answered"),
            OUTCOME.c.calls,
            OUTCOME.c.cost,
            OUTCOME.c.latency_ms,
            OUTCOME.c.overhead_ms,
        )
        .select_from(joined)
        .where(
            DECISION.c.origin == "traffic",
            DECISION.c.parent_id.is_(None),
            of_project(DECISION, project),
            in_time(DECISION.c.id, since, until),
        )
        .subquery("traffic")
    )


def _below() -> ColumnElement[Any]:
    """What routing and planning cost below a team's root; 0 for a request that one worker answered."""
    child = DECISION.alias("child")
    spent = (
        select(func.coalesce(func.sum(child.c.router_cost), 0))
        .where(child.c.request_id == DECISION.c.request_id, child.c.parent_id.is_not(None), child.c.id > DECISION.c.id)
        .scalar_subquery()
    )
    return case((DECISION.c.kind == "pattern", spent), else_=0)


def answered_well(traffic: FromClause) -> ColumnElement[int]:
    """How often the chosen worker itself answered with outcome `ok`."""
    t = traffic.c
    return func.count().filter(t.status == "ok", func.coalesce(t.answered, t.chosen) == t.chosen)


def unknown_cost(traffic: FromClause) -> ColumnElement[int]:
    """Outcomes of at least one call whose cost is not known: a sum of costs leaves them out."""
    t = traffic.c
    return func.count().filter(t.status.is_not(None), t.cost.is_(None), func.coalesce(t.calls, 1) > 0)


def percentiles(name: str, column: ColumnElement[Any]) -> list[ColumnElement[Any]]:
    """The columns that `read_percentiles` reads; NULLs are left out by the database."""
    parts: list[ColumnElement[Any]] = [func.count(column).label(f"{name}_n")]
    for percent in (50, 95, 99):
        point = func.percentile_cont(percent / 100).within_group(column)
        parts.append(point.label(f"{name}_p{percent}"))
    return parts


def read_percentiles(name: str, row: Mapping[Any, Any]) -> Percentiles:
    return Percentiles(row[f"{name}_n"], row[f"{name}_p50"], row[f"{name}_p95"], row[f"{name}_p99"])


def counts(connection: Connection, traffic: FromClause, column: ColumnElement[Any]) -> dict[str, int]:
    """How many rows have each value of `column`, most frequent first; NULLs are left out."""
    query = (
        select(column, func.count())
        .select_from(traffic)
        .where(column.is_not(None))
        .group_by(column)
        .order_by(func.count().desc(), column)
    )
    return {row[0]: row[1] for row in connection.execute(query)}
