"""Rows of the log in pages, in the order of their ids: an export holds one page, and no long transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Engine, select

from pointsman.outlet.subjects import TEXTS, Subject
from pointsman.queries.scope import in_time, of_project
from pointsman.words import Origin

PAGE = 2_000


@dataclass(frozen=True)
class Selection:
    """Which rows. `since` ≤ time < `until`; `origins` empty: all.

    `learnable` leaves out what may not be learned from.
    """

    project_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    origins: tuple[Origin, ...] = ()
    worker: str | None = None
    learnable: bool = False
    texts: bool = True


def columns_of(subject: Subject, selection: Selection) -> Sequence[Any]:
    """The labelled columns that this selection gives, in their order."""
    return [column for column in subject.columns if selection.texts or column.name not in TEXTS]


def pages(engine: Engine, subject: Subject, selection: Selection, size: int = PAGE) -> Iterator[list[dict[str, Any]]]:
    """The rows as dictionaries by column name, `size` at a time."""
    identity = subject.table.c.id
    query = select(*columns_of(subject, selection)).select_from(subject.source).where(
        of_project(subject.table, selection.project_id), in_time(identity, selection.since, selection.until)
    )  # fmt: skip
    if selection.origins and subject.origin is not None:
        query = query.where(subject.origin.in_(list(selection.origins)))
    if selection.worker is not None and subject.worker is not None:
        query = query.where(subject.worker == selection.worker)
    if selection.learnable and subject.learn is not None:
        query = query.where(subject.learn)
    after: UUID | None = None
    while True:
        page = query if after is None else query.where(identity > after)
        with engine.connect() as connection:
            rows = connection.execute(page.order_by(identity).limit(size)).mappings().all()
        if not rows:
            return
        yield [dict(row) for row in rows]
        after = rows[-1]["id"]
