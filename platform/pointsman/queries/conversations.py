"""Episodes as conversations: a page of them by their newest decision, and one of them turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, case, exists, func, select

from pointsman.errors import UserError
from pointsman.ids import is_uuid, time_of
from pointsman.queries.decisions import DecisionLine, episode_decisions
from pointsman.queries.scope import CALL, DECISION, OUTCOME, REQUEST, of_project

MAX_LIMIT = 200
LONGEST = 20_000
"""Characters of a text or an answer that a turn brings."""


@dataclass(frozen=True)
class EpisodeLine:
    """`cost` is the sum of what is known, USD; `unknown_cost` counts ended decisions without one."""

    id: str
    project_id: str
    started_at: datetime
    newest_at: datetime
    decisions: int
    workers: tuple[str, ...]
    outcomes: Mapping[str, int]
    cost: Decimal
    unknown_cost: int


@dataclass(frozen=True)
class EpisodesPage:
    """`older` is the cursor of the next page, None at the end."""

    rows: tuple[EpisodeLine, ...]
    older: str | None


@dataclass(frozen=True)
class Turn:
    """A decision with the whole ask and answer, each cut at `LONGEST`; None where they are not stored."""

    line: DecisionLine
    ask: str | None
    answer: str | None


def episodes_page(engine: Engine, project: str | None, before: str | None = None, limit: int = 50) -> EpisodesPage:
    """Those whose newest decision of traffic has an id below `before`, newest first."""
    limit = max(1, min(limit, MAX_LIMIT))
    d, later = DECISION.c, DECISION.alias("later")
    newer = exists(
        select(later.c.id).where(
            later.c.episode_id == d.episode_id,
            later.c.project_id == d.project_id,
            later.c.id > d.id,
            later.c.origin == "traffic",
            later.c.parent_id.is_(None),
        )
    )
    query = select(d.id, d.episode_id, d.project_id).where(
        d.origin == "traffic", d.parent_id.is_(None), d.episode_id.is_not(None), of_project(DECISION, project), ~newer
    )
    if before is not None:
        if not is_uuid(before):
            raise UserError(f"before: expected the id of a decision, got {before!r}")
        query = query.where(d.id < UUID(before))
    with engine.connect() as connection:
        found = connection.execute(query.order_by(d.id.desc()).limit(limit + 1)).all()
        sums = _sums(connection, [row.episode_id for row in found[:limit]])
    rows = tuple(_line(row, sums[row.episode_id, row.project_id]) for row in found[:limit])
    return EpisodesPage(rows, str(found[limit - 1].id) if len(found) > limit else None)


def conversation(engine: Engine, project: str | None, episode_id: str) -> tuple[Turn, ...]:
    """An episode's decisions of any origin, oldest first, at most 500; empty where there is none of this project."""
    lines = episode_decisions(engine, project, episode_id)
    ids = [UUID(line.id) for line in lines]
    if not ids:
        return ()
    with engine.connect() as connection:
        asks, answers = _asks(connection, ids), _answers(connection, ids)
    return tuple(Turn(line, asks.get(line.id), answers.get(line.id)) for line in lines)


def _sums(connection: Connection, episodes: Sequence[UUID]) -> dict[tuple[UUID, UUID], Any]:
    d, o = DECISION.c, OUTCOME.c
    status = func.coalesce(o.status, "not ended")
    worker = case((d.kind == "pattern", o.worker), else_=d.chosen)  # of a team: who answered
    query = (
        select(
            d.episode_id,
            d.project_id,
            func.count().label("decisions"),
            func.min(d.decided_at).label("started_at"),
            func.array_agg(func.distinct(worker)).filter(worker.is_not(None)).label("workers"),
            func.array_agg(status).label("outcomes"),
            func.coalesce(func.sum(o.cost), 0).label("cost"),
            func.count().filter(o.status.is_not(None), o.cost.is_(None)).label("unknown_cost"),
        )
        .select_from(DECISION.outerjoin(OUTCOME, o.id == d.id))
        .where(d.episode_id.in_(episodes), d.origin == "traffic", d.parent_id.is_(None))
        .group_by(d.episode_id, d.project_id)
    )
    return {(row.episode_id, row.project_id): row for row in connection.execute(query)}


def _line(newest: Any, sums: Any) -> EpisodeLine:
    outcomes: dict[str, int] = {}
    for status in sums.outcomes:
        outcomes[status] = outcomes.get(status, 0) + 1
    return EpisodeLine(
        str(newest.episode_id), str(newest.project_id), sums.started_at, time_of(str(newest.id)), sums.decisions,
        tuple(sorted(sums.workers or ())), outcomes, Decimal(sums.cost), sums.unknown_cost,
    )  # fmt: skip


def _asks(connection: Connection, ids: Sequence[UUID]) -> dict[str, str | None]:
    d, r = DECISION.c, REQUEST.c
    query = select(d.id, func.left(r.text, LONGEST)).join(REQUEST, r.id == d.request_id).where(d.id.in_(ids))
    return {str(row[0]): row[1] for row in connection.execute(query)}


def _answers(connection: Connection, ids: Sequence[UUID]) -> dict[str, str | None]:
    """Of the last call that went well."""
    c = CALL.c
    good = (c.decision_id.in_(ids), c.status == "ok", c.purpose == "serve")
    query = select(c.decision_id, func.left(c.completion, LONGEST)).where(*good).order_by(c.id)
    return {str(row[0]): row[1] for row in connection.execute(query)}
