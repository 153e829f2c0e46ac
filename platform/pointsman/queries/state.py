"""What a reader should know about the database before it trusts a number: is it there, is it current."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, Engine, func, select, table
from sqlalchemy.exc import OperationalError

from pointsman.database.schema import current_revision, head_revision
from pointsman.ids import time_of
from pointsman.queries.scope import DECISION, of_project
from pointsman.tables import METADATA, PARTITIONED


@dataclass(frozen=True)
class DatabaseState:
    """`default_rows` counts rows in the default partitions: above 0, a month's partition is missing."""

    reachable: bool
    head: str
    revision: str | None = None
    error: str | None = None
    default_rows: Mapping[str, int] = field(default_factory=dict)
    newest_decision: datetime | None = None

    @property
    def migrated(self) -> bool:
        """Whether there is a schema at all; it may be older than this package's."""
        return self.revision is not None

    @property
    def current(self) -> bool:
        return self.revision == self.head


@dataclass(frozen=True)
class ProjectName:
    id: str
    name: str


def database_state(engine: Engine) -> DatabaseState:
    """The state of the database; an absent one is an answer here, not an error."""
    head = head_revision()
    try:
        revision = current_revision(engine)
        if revision is None:
            return DatabaseState(reachable=True, head=head)
        with engine.connect() as connection:
            return DatabaseState(
                reachable=True,
                head=head,
                revision=revision,
                default_rows=_default_rows(connection),
                newest_decision=_newest_decision(connection),
            )
    except OperationalError as error:
        return DatabaseState(reachable=False, head=head, error=str(error.orig).strip())


def traffic_span(engine: Engine, project: str | None) -> tuple[datetime, datetime] | None:
    """The times of the first and the last traffic decision; None where there is none."""
    identity = DECISION.c.id
    mine = select(identity).where(DECISION.c.origin == "traffic", of_project(DECISION, project)).limit(1)
    with engine.connect() as connection:
        first = connection.scalar(mine.order_by(identity))
        last = connection.scalar(mine.order_by(identity.desc()))
    return (time_of(str(first)), time_of(str(last))) if first and last else None


def projects(engine: Engine) -> tuple[ProjectName, ...]:
    """Every project by name, for the operator to choose among."""
    project = METADATA.tables["project"].c
    with engine.connect() as connection:
        rows = connection.execute(select(project.id, project.name).order_by(project.name))
        return tuple(ProjectName(str(identity), name) for identity, name in rows)


def worker_names(engine: Engine) -> tuple[str, ...]:
    """Every worker there ever was, by name."""
    name = METADATA.tables["worker"].c.name
    with engine.connect() as connection:
        return tuple(connection.scalars(select(name).order_by(name)))


def _default_rows(connection: Connection) -> dict[str, int]:
    return {
        name: connection.execute(select(func.count()).select_from(table(f"{name}_default"))).scalar_one()
        for name in PARTITIONED
    }


def _newest_decision(connection: Connection) -> datetime | None:
    newest = connection.scalar(select(DECISION.c.id).order_by(DECISION.c.id.desc()).limit(1))
    return None if newest is None else time_of(str(newest))
