"""Feedback in numbers: only what stands (neither amended nor retracted), for the decisions of a range.

Feedback given to an episode counts for each of its decisions, as the log's rules say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    FromClause,
    String,
    Subquery,
    and_,
    case,
    cast,
    func,
    select,
    union_all,
)

from pointsman.queries.proportion import Proportion
from pointsman.queries.scope import FEEDBACK, standing
from pointsman.queries.summaries import MetricLine

CORRECT = "correct"
"""The metric by which feedback says whether an answer was right: a boolean."""


def judgements(traffic: FromClause) -> Subquery:
    """One row per standing feedback and decision: `metric`, `value`, `worker` (the one that answered)."""
    t, f = traffic.c, FEEDBACK.c
    columns = (f.metric, f.value, func.coalesce(t.answered, t.chosen).label("worker"))
    direct = (
        select(*columns)
        .join_from(traffic, FEEDBACK, and_(f.decision_id == t.id, f.project_id == t.project_id))
        .where(standing())
    )
    of_episode = (
        select(*columns)
        .join_from(traffic, FEEDBACK, and_(f.episode_id == t.episode_id, f.project_id == t.project_id))
        .where(f.decision_id.is_(None), standing())
    )
    return union_all(direct, of_episode).subquery("judgements")


def correct_by_worker(connection: Connection, traffic: FromClause) -> dict[str, Proportion]:
    """The share of `correct` judgements that say yes, by the worker that answered."""
    j = judgements(traffic).c
    yes = func.count().filter(_boolean(j.value) == "true")
    said = func.count().filter(_boolean(j.value).is_not(None))
    query = select(j.worker, yes, said).where(j.metric == CORRECT, j.worker.is_not(None)).group_by(j.worker)
    return {worker: Proportion(right, number) for worker, right, number in connection.execute(query)}


def by_metric(connection: Connection, traffic: FromClause) -> tuple[MetricLine, ...]:
    """Every metric that the range has feedback for, most frequent first."""
    j = judgements(traffic).c
    number = case((func.jsonb_typeof(j.value) == "number", cast(j.value, Float)))
    query = (
        select(
            j.metric,
            func.count(),
            func.count().filter(_boolean(j.value) == "true"),
            func.count(_boolean(j.value)),
            func.avg(number),
        )
        .group_by(j.metric)
        .order_by(func.count().desc(), j.metric)
    )
    return tuple(
        MetricLine(metric, n, Proportion(yes, said), mean) for metric, n, yes, said, mean in connection.execute(query)
    )


def total(parts: Mapping[str, Proportion]) -> Proportion:
    """All workers together."""
    return Proportion(sum(part.count for part in parts.values()), sum(part.n for part in parts.values()))


def _boolean(value: ColumnElement[Any]) -> ColumnElement[str]:
    """`true` or `false` where a JSON value is one, else NULL."""
    return case((func.jsonb_typeof(value) == "boolean", cast(value, String)))
