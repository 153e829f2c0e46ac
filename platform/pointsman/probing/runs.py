"""Named runs of probes and audits. A name that is known goes on with what it was started with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Engine, Table, func, select, update
from sqlalchemy.dialects.postgresql import insert

from pointsman.errors import UserError
from pointsman.ids import new_id
from pointsman.probing.asking import Asked
from pointsman.tables import METADATA
from pointsman.upstream.price import add
from pointsman.words import AuditKind

AUDIT_RUN: Table = METADATA.tables["audit_run"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")


@dataclass(frozen=True)
class Run:
    """A run as it stands. `cost` and `counted` are those of its earlier starts (`audit_run`)."""

    id: str
    name: str
    settings: Mapping[str, Any]
    started_at: datetime
    cost: Decimal | None
    counted: Decimal
    resumed: bool

    def note(self, connection: Connection, asked: Asked) -> None:
        """Writes down how far it is, in the transaction that writes the answers."""
        values = {
            "rows": asked.subjects,
            "cells": asked.cells,
            "done": asked.done,
            "failed": asked.failed,
            "cost": add(self.cost, asked.cost),
            "counted": self.counted + asked.counted,
        }
        connection.execute(update(AUDIT_RUN).where(AUDIT_RUN.c.id == self.id).values(values))


def begin(
    engine: Engine, project_id: str, kind: AuditKind, name: str, settings: Mapping[str, Any], now: datetime
) -> Run:
    """The run of that name, begun or taken up again. Raises `UserError` where it was started with other settings."""
    if not _NAME.fullmatch(name):
        raise UserError(f"name: expected letters, digits and ._:- (100 at most), got {name!r}")
    r = AUDIT_RUN.c
    values = {
        "id": new_id(), "project_id": project_id, "kind": kind, "name": name, "settings": dict(settings),
        "state": "running", "rows": 0, "cells": 0, "done": 0, "failed": 0, "cost": Decimal(0),
        "counted": Decimal(0), "started_at": now,
    }  # fmt: skip
    with engine.begin() as connection:
        made = connection.execute(insert(AUDIT_RUN).values(values).on_conflict_do_nothing()).rowcount == 1
        mine = (r.project_id == project_id, r.kind == kind, r.name == name)
        row = connection.execute(select(AUDIT_RUN).where(*mine)).one()
        if row.settings != dict(settings):
            raise UserError(f"{kind} {name!r}: {_difference(row.settings, settings)}; give it another name")
        connection.execute(update(AUDIT_RUN).where(*mine).values(state="running", reason=None, ended_at=None))
    return Run(str(row.id), name, row.settings, row.started_at, row.cost, row.counted, not made)


@contextmanager
def alone(engine: Engine, run: Run) -> Iterator[None]:
    """Nobody else asks for this run meanwhile. Raises `UserError` where somebody does: answers would be paid twice."""
    key = func.hashtextextended(run.id, 0)
    with engine.connect() as connection:
        mine = connection.scalar(select(func.pg_try_advisory_lock(key)))
        connection.commit()  # the lock is the session's; no transaction is kept open for it
        if not mine:
            raise UserError(f"{run.name!r} is under way elsewhere; wait for it, or give this run another name")
        try:
            yield
        finally:
            connection.execute(select(func.pg_advisory_unlock(key)))
            connection.commit()


def end(engine: Engine, run: Run, asked: Asked, now: datetime) -> None:
    """Closes a run that came to its end, or says what stopped it."""
    given_up = f"given up: {', '.join(asked.given_up)}" if asked.given_up else None
    reason = asked.stopped or given_up or (f"{asked.left} answers are missing" if asked.left else None)
    values = {"state": "stopped" if reason else "done", "reason": reason, "ended_at": now}
    with engine.begin() as connection:
        run.note(connection, asked)
        connection.execute(update(AUDIT_RUN).where(AUDIT_RUN.c.id == run.id).values(values))


def charge(engine: Engine, project_id: str, kind: AuditKind, name: str, amount: Decimal) -> None:
    """Counts money that was spent for a run besides its answers: a judge's."""
    r = AUDIT_RUN.c
    mine = update(AUDIT_RUN).where(r.project_id == project_id, r.kind == kind, r.name == name)
    with engine.begin() as connection:
        connection.execute(mine.values(counted=r.counted + amount))


def break_off(engine: Engine, run: Run, reason: str, now: datetime) -> None:
    """Says that something ended a run before its time."""
    values = {"state": "stopped", "reason": reason, "ended_at": now}
    with engine.begin() as connection:
        connection.execute(update(AUDIT_RUN).where(AUDIT_RUN.c.id == run.id).values(values))


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    names = sorted({*before, *now}, key=str)
    name = next(name for name in names if before.get(name) != now.get(name))
    return f"it was started with {name} = {before.get(name)!r}, not {now.get(name)!r}"
