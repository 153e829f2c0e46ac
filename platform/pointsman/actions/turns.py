"""Opening and ending turns of the flywheel."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Engine

from pointsman.actions.actor import Actor, record, require
from pointsman.config import Config
from pointsman.errors import UserError
from pointsman.flywheel import turn as looks
from pointsman.flywheel.job import start
from pointsman.flywheel.store import Turn


def start_turn(
    engine: Engine, actor: Actor, project: str, config: Config, now: datetime, *, force: bool = False
) -> Turn:
    """Opens a turn. Raises `UserError` where one is open, or where too little has come in and nobody forces it."""
    require(actor, "operator", "start a turn of the flywheel")
    with engine.begin() as connection:
        turn = start(connection, project, config, actor.name, now, force=force)
        if not isinstance(turn, Turn):
            raise UserError(f"no turn was opened: {turn.why}; --force opens one all the same")
        record(connection, actor, project, "turn_start", now, subject=turn.id)
    return turn


def stop_turn(
    engine: Engine, actor: Actor, project: str, turn_id: str, now: datetime, *, reason: str | None = None
) -> Turn:
    """Ends a turn: its jobs are cancelled, its gate stops; what serves serves on."""
    return looks.stop(engine, actor, project, turn_id, now, reason=reason)
