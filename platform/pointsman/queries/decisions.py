"""Lists of decisions: a filtered page, an episode's, the one that a completion id names.

Pages are keyed by id, newest first: the cursor is the last id seen, so a page costs the same at any
depth and rows that arrive meanwhile shift nothing. First the ids of a page are found, joining outcome
and request only where a filter needs them; then their rows are read by id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Engine, FromClause, Select, and_, func, or_, select, text

from pointsman.errors import UserError
from pointsman.ids import is_uuid
from pointsman.queries.filters import DecisionFilter, conditions, on_request
from pointsman.queries.scope import CALL, DECISION, FEEDBACK, OUTCOME, REQUEST, of_project, standing

SNIPPET = 200  # characters of the ask that a list shows
MAX_LIMIT = 500
FEW = 5_000
"""Requests that are named one by one; where more are found, the newest decisions soon have a page of them."""
_BY_BITMAP = text("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
_AS_USUAL = text("SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL enable_indexscan TO DEFAULT")


@dataclass(frozen=True)
class Word:
    """One standing feedback: its metric and value."""

    metric: str
    value: Any


@dataclass(frozen=True)
class DecisionLine:
    """A decision as lists show it. `ask` is the beginning of the ask, None where it is not stored."""

    id: str
    project_id: str
    decided_at: datetime
    origin: str
    pattern: str
    ask: str | None
    chosen: str | None
    answered: str | None
    router_kind: str | None
    propensity: float | None
    explored: bool
    forced: str | None
    outcome: str | None
    latency_ms: float | None
    cost: Decimal | None
    episode_id: str | None
    feedback: tuple[Word, ...] = ()


@dataclass(frozen=True)
class DecisionsPage:
    """`older` is the cursor of the next page, None at the end."""

    rows: tuple[DecisionLine, ...]
    older: str | None


def decisions_page(
    engine: Engine,
    project: str | None,
    filters: DecisionFilter,
    before: str | None = None,
    limit: int = 50,
) -> DecisionsPage:
    """The newest `limit` decisions that pass the filters and have an id below `before`."""
    limit = max(1, min(limit, MAX_LIMIT))
    with engine.connect() as connection:
        query = page_query(project, filters, before, limit + 1)
        if filters.by_words and (few := _few_requests(connection, project, filters)) is not None:
            query = query.where(DECISION.c.request_id.in_(few))
        ids = list(connection.scalars(query))
        rows = _lines(connection, ids[:limit])
    return DecisionsPage(rows, rows[-1].id if rows and len(ids) > limit else None)


def page_query(project: str | None, filters: DecisionFilter, before: str | None, limit: int) -> Select[UUID]:
    """The ids of one page, newest first."""
    source: FromClause = DECISION
    if filters.needs_outcome:
        source = source.join(OUTCOME, OUTCOME.c.id == DECISION.c.id)
    if filters.needs_request:
        source = source.join(REQUEST, REQUEST.c.id == DECISION.c.request_id)
    query = select(DECISION.c.id).select_from(source).where(*conditions(filters, project))
    if before is not None:
        if not is_uuid(before):
            raise UserError(f"before: expected the id of a decision, got {before!r}")
        query = query.where(DECISION.c.id < UUID(before))
    return query.order_by(DECISION.c.id.desc()).limit(limit)


def _few_requests(connection: Connection, project: str | None, filters: DecisionFilter) -> list[UUID] | None:
    """The requests that words or a tag find, through their index; None where there are more than `FEW`.

    The planner takes words for independent: of two that are common and never stand together it expects many rows, and
    would look through the whole log for a page of them.
    """
    connection.execute(_BY_BITMAP)
    query = select(REQUEST.c.id).where(*on_request(filters, project)).limit(FEW + 1)
    found = list(connection.scalars(query))
    connection.execute(_AS_USUAL)
    return found if len(found) <= FEW else None


def episode_decisions(
    engine: Engine, project: str | None, episode_id: str, limit: int = MAX_LIMIT
) -> tuple[DecisionLine, ...]:
    """An episode's decisions of any origin, oldest first."""
    if not is_uuid(episode_id):
        return ()
    with engine.connect() as connection:
        ids = connection.scalars(
            select(DECISION.c.id)
            .where(
                DECISION.c.episode_id == UUID(episode_id), DECISION.c.parent_id.is_(None), of_project(DECISION, project)
            )
            .order_by(DECISION.c.id)
            .limit(limit)
        )
        return tuple(reversed(_lines(connection, list(ids))))


def find_decision(engine: Engine, project: str | None, completion_id: str) -> str | None:
    """The id of the newest decision whose call gave this completion id."""
    query = (
        select(CALL.c.decision_id)
        .where(CALL.c.completion_id == completion_id, of_project(CALL, project))
        .order_by(CALL.c.id.desc())
        .limit(1)
    )
    with engine.connect() as connection:
        found = connection.scalar(query)
    return None if found is None else str(found)


def _lines(connection: Connection, ids: Sequence[UUID]) -> tuple[DecisionLine, ...]:
    """The rows of these decisions, newest first."""
    if not ids:
        return ()
    d, o = DECISION.c, OUTCOME.c
    rows = connection.execute(
        select(
            d.id, d.project_id, d.decided_at, d.origin, d.pattern, d.request_id, d.episode_id, d.chosen,
            d.router_kind, d.propensity, d.explored, d.forced,
            o.worker.label("answered"), o.status.label("outcome"), o.latency_ms, o.cost,
        )
        .select_from(DECISION.outerjoin(OUTCOME, and_(o.id == d.id, o.id.in_(ids))))
        .where(d.id.in_(ids))
        .order_by(d.id.desc())
    ).mappings().all()  # fmt: skip
    asks = _asks(connection, [row["request_id"] for row in rows])
    words = _words(connection, rows)
    return tuple(_line(row, asks.get(row["request_id"]), words[row["id"]]) for row in rows)


def _line(row: Mapping[Any, Any], ask: str | None, words: Sequence[Word]) -> DecisionLine:
    values = {key: value for key, value in row.items() if key not in ("id", "request_id")}
    for key in ("project_id", "episode_id"):
        values[key] = str(values[key]) if values[key] is not None else None
    return DecisionLine(id=str(row["id"]), ask=ask, feedback=tuple(words), **values)


def _asks(connection: Connection, ids: Sequence[UUID]) -> dict[UUID, str | None]:
    r = REQUEST.c
    query = select(r.id, func.left(r.text, SNIPPET)).where(r.id.in_(ids))
    return {row[0]: row[1] for row in connection.execute(query)}


def _words(connection: Connection, rows: Sequence[Mapping[Any, Any]]) -> dict[UUID, list[Word]]:
    """Standing feedback by decision; an episode's own feedback counts for each of its decisions."""
    f = FEEDBACK.c
    of_episode: dict[tuple[UUID, UUID], list[UUID]] = defaultdict(list)
    for row in rows:
        if row["episode_id"] is not None:
            of_episode[row["project_id"], row["episode_id"]].append(row["id"])
    about: ColumnElement[bool] = f.decision_id.in_([row["id"] for row in rows])
    if of_episode:
        about = or_(about, and_(f.decision_id.is_(None), f.episode_id.in_([key[1] for key in of_episode])))
    query = select(f.project_id, f.decision_id, f.episode_id, f.metric, f.value)
    words: dict[UUID, list[Word]] = defaultdict(list)
    for given in connection.execute(query.where(about, standing()).order_by(f.id)):
        ids = [given.decision_id] if given.decision_id else of_episode[given.project_id, given.episode_id]
        for identity in ids:
            words[identity].append(Word(given.metric, given.value))
    return words
