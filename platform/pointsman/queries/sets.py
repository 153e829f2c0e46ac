"""Label sets, saved filters, and the rows that one names, for export: a page at a time, never all in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, Table, select

from pointsman.errors import UserError
from pointsman.queries.decisions import MAX_LIMIT, page_query
from pointsman.queries.filters import DecisionFilter
from pointsman.queries.scope import DECISION, OUTCOME, REQUEST, of_project
from pointsman.tables import METADATA

SAVED_SET: Table = METADATA.tables["saved_set"]
LABEL_SET: Table = METADATA.tables["label_set"]
EXPORTED = (
    "id", "decided_at", "episode_id", "turn", "origin", "pattern", "ask", "chosen", "answered", "router_kind",
    "router_version_id", "propensity", "explored", "forced", "scores", "probabilities", "status", "cost_usd",
    "latency_ms",
)  # fmt: skip
"""The columns of an export, in their order."""


@dataclass(frozen=True)
class SavedSetLine:
    id: str
    name: str
    filters: DecisionFilter
    made_by: str
    made_at: datetime


@dataclass(frozen=True)
class LabelSetLine:
    """`manifest` has the data report."""

    id: str
    hash: str
    rows: int
    made_at: datetime
    manifest: Mapping[str, Any]


def filter_json(filters: DecisionFilter) -> dict[str, Any]:
    """What of a filter was set; times as ISO 8601."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(filters).items()
        if value is not None or name == "origin"
    }


def filter_of(stored: Mapping[str, Any]) -> DecisionFilter:
    """The filter again; a key of another release is an error, not a wider filter."""
    known = {field.name for field in fields(DecisionFilter)}
    if unknown := sorted(set(stored) - known):
        raise UserError(f"saved filter: no such condition {unknown[0]!r}; save it again")
    times = {name: datetime.fromisoformat(stored[name]) for name in ("since", "until") if name in stored}
    return DecisionFilter(**{**stored, **times})


def saved_sets(engine: Engine, project: str | None) -> tuple[SavedSetLine, ...]:
    """By name."""
    query = select(SAVED_SET).where(of_project(SAVED_SET, project)).order_by(SAVED_SET.c.name)
    with engine.connect() as connection:
        return tuple(
            SavedSetLine(str(row.id), row.name, filter_of(row.filters), row.made_by, row.made_at)
            for row in connection.execute(query)
        )


def label_sets(engine: Engine, project: str, limit: int = 50) -> tuple[LabelSetLine, ...]:
    """The newest first."""
    s = LABEL_SET.c
    query = select(LABEL_SET).where(of_project(LABEL_SET, project)).order_by(s.id.desc()).limit(limit)
    with engine.connect() as connection:
        return tuple(
            LabelSetLine(str(row.id), row.hash, row.rows, row.created_at, row.manifest)
            for row in connection.execute(query)
        )


def exported(engine: Engine, project: str | None, filters: DecisionFilter, limit: int) -> Iterator[dict[str, Any]]:
    """The newest `limit` rows under a filter, newest first, as `EXPORTED`; the whole ask, and values as they are."""
    before: str | None = None
    left = limit
    while left > 0:
        with engine.connect() as connection:
            ids = list(connection.scalars(page_query(project, filters, before, min(left, MAX_LIMIT))))
            rows = connection.execute(_rows(ids)).mappings().all() if ids else []
        yield from (_line(row) for row in rows)
        if not ids:
            return
        before, left = str(ids[-1]), left - len(ids)


def _rows(ids: list[Any]) -> Any:
    d, o, r = DECISION.c, OUTCOME.c, REQUEST.c
    joined = DECISION.outerjoin(OUTCOME, (o.id == d.id) & o.id.in_(ids)).outerjoin(REQUEST, r.id == d.request_id)
    return (
        select(
            d.id, d.decided_at, d.episode_id, d.turn, d.origin, d.pattern, r.text.label("ask"), d.chosen,
            o.worker.label("answered"), d.router_kind, d.router_version_id, d.propensity, d.explored, d.forced,
            d.scores, d.probabilities, o.status, o.cost.label("cost_usd"), o.latency_ms,
        )
        .select_from(joined)
        .where(d.id.in_(ids))
        .order_by(d.id.desc())
    )  # fmt: skip


def _line(row: Mapping[Any, Any]) -> dict[str, Any]:
    ids = ("id", "episode_id", "router_version_id")
    return {name: str(row[name]) if name in ids and row[name] is not None else row[name] for name in EXPORTED}
