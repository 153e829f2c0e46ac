"""What the list of decisions can be narrowed by, and each filter as a condition on the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, and_, exists, false, func, literal_column, or_, select

from pointsman.queries.scope import (
    DECISION,
    FEEDBACK,
    OUTCOME,
    REQUEST,
    REQUEST_LEAD,
    in_time,
    of_project,
    standing,
)
from pointsman.words import Forced, Origin, OutcomeStatus, RouterKind

SEARCHED: ColumnElement[str] = literal_column("to_tsvector('simple', left(request.text, 8000))")
"""The indexed expression of `ix_request_search`, in the same words, or the index is not used."""


@dataclass(frozen=True)
class DecisionFilter:
    """All that are given must hold. `search` is in web-search form: words, "a phrase", -not, or.

    `forced` is a reason, or True for any and False for none. Latencies are milliseconds.
    """

    search: str | None = None
    worker: str | None = None
    router_kind: RouterKind | None = None
    status: OutcomeStatus | None = None
    explored: bool | None = None
    forced: Forced | bool | None = None
    episode_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    min_latency_ms: float | None = None
    max_latency_ms: float | None = None
    feedback: bool | None = None
    origin: Origin | None = "traffic"

    @property
    def needs_outcome(self) -> bool:
        return (self.status, self.min_latency_ms, self.max_latency_ms) != (None, None, None)

    @property
    def needs_request(self) -> bool:
        return bool(self.search and self.search.strip())


def conditions(filters: DecisionFilter, project: str | None) -> Iterator[ColumnElement[bool]]:
    """The conditions on `decision`, and on `outcome` and `request` where the filter needs them joined."""
    d = DECISION.c
    yield of_project(DECISION, project)
    yield in_time(d.id, filters.since, filters.until)
    if filters.origin is not None:
        yield d.origin == filters.origin
    if filters.worker is not None:
        yield d.chosen == filters.worker
    if filters.router_kind is not None:
        yield d.router_kind == filters.router_kind
    if filters.explored is not None:
        yield d.explored.is_(filters.explored)
    if filters.forced is not None:
        yield _forced(filters.forced)
    if filters.episode_id is not None:
        yield _same_id(d.episode_id, filters.episode_id)
    if filters.feedback is not None:
        yield _has_feedback() if filters.feedback else ~_has_feedback()
    yield from _on_outcome(filters)
    yield from _on_request(filters, project)


def _forced(wanted: Forced | bool) -> ColumnElement[bool]:
    column = DECISION.c.forced
    if isinstance(wanted, bool):
        return column.is_not(None) if wanted else column.is_(None)
    return column == wanted


def _same_id(column: ColumnElement[UUID], text_id: str) -> ColumnElement[bool]:
    try:
        return column == UUID(text_id)
    except ValueError:
        return false()


def _has_feedback() -> ColumnElement[bool]:
    d, f = DECISION.c, FEEDBACK.c
    own = exists(select(f.id).where(f.decision_id == d.id, f.project_id == d.project_id, standing()))
    of_episode = exists(
        select(f.id).where(
            f.episode_id == d.episode_id,
            f.decision_id.is_(None),
            f.project_id == d.project_id,
            standing(),
        )
    )
    return or_(own, of_episode)


def _on_outcome(filters: DecisionFilter) -> Iterator[ColumnElement[bool]]:
    o = OUTCOME.c
    if filters.needs_outcome:
        yield in_time(o.id, filters.since, filters.until)
    if filters.status is not None:
        yield o.status == filters.status
    if filters.min_latency_ms is not None:
        yield o.latency_ms >= filters.min_latency_ms
    if filters.max_latency_ms is not None:
        yield o.latency_ms <= filters.max_latency_ms


def _on_request(filters: DecisionFilter, project: str | None) -> Iterator[ColumnElement[bool]]:
    if not filters.needs_request:
        return
    earliest = filters.since - REQUEST_LEAD if filters.since else None
    query = func.websearch_to_tsquery("simple", filters.search)
    yield and_(
        of_project(REQUEST, project),
        in_time(REQUEST.c.id, earliest, filters.until),
        SEARCHED.bool_op("@@")(query),
    )
