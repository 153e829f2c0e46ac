"""Logged requests that may be asked again: drawn at random at a known rate, and never without consent.

What may be sent again is the next answer of a request: stored, to be learned from (the request's own word and its
key's, as it stands now), routed by a draw (a forced choice has nothing to compare), not redacted, and not in the
middle of a tool loop. It goes to workers only that were in its own eligible set and are in the pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Table, and_, exists, func, literal, select

from pointsman.ids import time_of
from pointsman.pool import Pool
from pointsman.probing.subjects import Subject, draws_repeat
from pointsman.queries.scope import DECISION, REQUEST, in_time, of_project
from pointsman.tables import METADATA
from pointsman.upstream.body import Fields

API_KEY: Table = METADATA.tables["api_key"]
REDACTED = "[redacted]"
"""What the gateway writes in place of a text that was blacked out (`pointsman.redaction`)."""
HEALTH = "unhealthy"
"""A reason against a worker that has nothing to do with the request."""
PAGE = 200

Reader = Callable[[str, bytes], Fields | str]
"""(surface, body as stored) → what goes to workers, or why the request cannot be asked again."""


@dataclass
class Drawn:
    """Subjects, in the order in which they were drawn; `looked_at` of the `population` were read for them.

    `refused` counts those that cannot be asked again, by reason.
    """

    subjects: list[Subject] = field(default_factory=list)
    population: int = 0
    looked_at: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def draw_from_log(
    connection: Connection,
    pool: Pool,
    read: Reader,
    *,
    project_id: str,
    number: int,
    since: datetime,
    until: datetime,
    seed: int,
    repeat_share: float,
) -> Drawn:
    """`number` requests of the window, each as likely as any other. The same arguments draw the same ones."""
    condition = _may_be_asked(project_id, since, until)
    drawn = Drawn(population=_count(connection, condition))
    order = func.md5(func.concat(DECISION.c.id, literal(f"/{seed}")))
    _read_pages(connection, condition, order, drawn, pool, read, number, repeat_share)
    if drawn.population:
        share = min(1.0, drawn.looked_at / drawn.population)
        drawn.subjects = [replace(subject, rate=share) for subject in drawn.subjects]
    return drawn


def draw_live(
    connection: Connection,
    pool: Pool,
    read: Reader,
    *,
    project_id: str,
    since: datetime,
    until: datetime,
    repeat_share: float,
) -> Drawn:
    """All requests of the window that the gateway drew, in an order that has nothing to do with what they are."""
    condition = _may_be_asked(project_id, since, until) & DECISION.c.audited
    drawn = Drawn(population=_count(connection, condition))
    order = func.md5(func.concat(DECISION.c.id))
    _read_pages(connection, condition, order, drawn, pool, read, drawn.population, repeat_share)
    return drawn


def _may_be_asked(project_id: str, since: datetime, until: datetime) -> ColumnElement[bool]:
    d, r, k = DECISION.c, REQUEST.c, API_KEY.c
    withdrawn = exists(select(k.id).where(k.id == r.key_id, ~k.learn))
    return and_(
        of_project(DECISION, project_id),
        in_time(d.id, since, until),
        d.origin == "traffic",
        d.kind == "route",
        d.parent_id.is_(None),
        d.forced.is_(None),
        d.probabilities.is_not(None),
        r.learn,
        r.body.is_not(None),
        ~withdrawn,
    )


def _count(connection: Connection, condition: ColumnElement[bool]) -> int:
    joined = DECISION.join(REQUEST, REQUEST.c.id == DECISION.c.request_id)
    return int(connection.scalar(select(func.count()).select_from(joined).where(condition)) or 0)


def _read_pages(
    connection: Connection,
    condition: ColumnElement[bool],
    order: ColumnElement[Any],
    drawn: Drawn,
    pool: Pool,
    read: Reader,
    number: int,
    repeat_share: float,
) -> None:
    """Reads the window in `order` until `number` subjects are there."""
    d, r = DECISION.c, REQUEST.c
    columns = (d.id, d.request_id, d.episode_id, d.project_id, d.eligible, d.audit_rate, r.surface, r.body)
    joined = DECISION.join(REQUEST, r.id == d.request_id)
    query = select(*columns).select_from(joined).where(condition).order_by(order).limit(PAGE)
    offset = 0
    while len(drawn.subjects) < number:
        rows: Sequence[Any] = connection.execute(query.offset(offset)).all()
        for row in rows:
            if len(drawn.subjects) == number:
                return
            drawn.looked_at += 1
            made = _subject(row, pool, read, repeat_share)
            if isinstance(made, Subject):
                drawn.subjects.append(made)
            else:
                drawn.refused[made] += 1
        if len(rows) < PAGE:
            return
        offset += PAGE


def _subject(row: Any, pool: Pool, read: Reader, repeat_share: float) -> Subject | str:
    """The subject, or why there is none."""
    body = msgspec.json.encode(row.body)
    if REDACTED.encode() in body:
        return "redacted"
    reasons = {worker.name: row.eligible.get(worker.name, "not_in_its_pool") for worker in pool.workers}
    eligible = {name: None if reason == HEALTH else reason for name, reason in reasons.items()}
    workers = tuple(worker for worker in pool.workers if eligible[worker.name] is None)
    if len(workers) < 2:
        return "no_other_worker"
    fields = read(row.surface, body)
    if isinstance(fields, str):
        return fields
    key = f"audit/{row.id}"
    return Subject(
        key=key,
        origin="audit",
        project_id=str(row.project_id),
        moment=time_of(str(row.id)),
        request_id=str(row.request_id),
        fields=fields,
        workers=workers,
        eligible=eligible,
        repeats=2 if draws_repeat(key, repeat_share) else 1,
        episode_id=str(row.episode_id) if row.episode_id else None,
        parent_id=str(row.id),
        rate=row.audit_rate,
    )
