"""The runner of `flywheel` jobs: opens a turn where enough has come in, and looks at those that are open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, select

from pointsman.config import Config
from pointsman.flywheel.rule import Need, information, need
from pointsman.flywheel.store import OPEN, TURN, Turn, current_turn, last_turn, open_turn
from pointsman.flywheel.turn import advance
from pointsman.flywheel.waits import THE_FLYWHEEL
from pointsman.jobs.context import JobContext
from pointsman.jobs.kinds import Flywheel
from pointsman.pool import Pool


def run(context: JobContext, params: Flywheel) -> dict[str, Any]:
    with context.stage("look"):
        return look(context.engine, context.project_id, context.config, datetime.now(UTC), force=params.force)


def look(engine: Engine, project: str, config: Config, now: datetime, *, force: bool = False) -> dict[str, Any]:
    """Opens the project's next turn where that is due, and takes every open turn as far as it goes."""
    with engine.begin() as connection:
        opened, why = _opened(connection, project, config, now, force)
        ids = [str(found) for found in connection.scalars(select(TURN.c.id).where(TURN.c.state.in_(OPEN)))]
    looked = [turn for turn in (advance(engine, turn, config, now) for turn in ids) if turn is not None]
    return {"opened": opened, "why": why, "turns": [_told(turn) for turn in looked]}


def _told(turn: Turn) -> dict[str, Any]:
    return {"id": turn.id, "state": turn.state, "link": turn.links[-1].name if turn.links else None}


def start(
    connection: Connection, project: str, config: Config, by: str, now: datetime, *, force: bool = False
) -> Turn | Need:
    """The turn that was opened, or why none was. `force` opens one of however little."""
    found = wanted(connection, project, config)
    if not found.enough and not force:
        return found
    because = found.why if found.enough else f"{by} asked for it: {found.why}"
    section, since = config.flywheel, _since(connection, project)
    came, epoch = information(connection, project, since), Pool.of(config).epoch
    return open_turn(connection, project, section.mode, by, because, came, epoch, section.budget, now)


def wanted(connection: Connection, project: str, config: Config) -> Need:
    """Whether enough has come in since the last turn was opened."""
    section, last = config.flywheel, last_turn(connection, project)
    if last is None:
        return need(information(connection, project), None, section.rows, section.growth)
    new = information(connection, project, last.opened_at)
    before = information(connection, project).effective - new.effective
    changed = last.information.get("pool_epoch") != Pool.of(config).epoch
    return need(new, before, section.rows, section.growth, changed=changed)


def _opened(
    connection: Connection, project: str, config: Config, now: datetime, force: bool
) -> tuple[str | None, str | None]:
    if current_turn(connection, project) is not None or not (force or config.flywheel.enabled):
        return None, None
    last = last_turn(connection, project)
    least = timedelta(hours=config.flywheel.hours)
    if not force and last is not None and last.ended_at is not None and now - last.ended_at < least:
        return None, f"the last turn ended less than {config.flywheel.hours:g} hours ago"
    found = start(connection, project, config, THE_FLYWHEEL.name, now, force=force)
    return (found.id, found.opened_because) if isinstance(found, Turn) else (None, found.why)


def _since(connection: Connection, project: str) -> datetime | None:
    last = last_turn(connection, project)
    return None if last is None else last.opened_at
