"""The flywheel's turns, to be read: the newest, and one with its links."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Engine

from pointsman.config import Config
from pointsman.flywheel.job import wanted
from pointsman.flywheel.rule import Need
from pointsman.flywheel.store import Turn, turns


def newest_turns(engine: Engine, project: str, limit: int = 20) -> list[Turn]:
    """Newest first."""
    with engine.connect() as connection:
        return turns(connection, project, limit)


def needed(engine: Engine, project: str, config: Config) -> Need:
    """Whether enough has come in for a turn to pay."""
    with engine.connect() as connection:
        return wanted(connection, project, config)


def seconds_of(began: str, ended: str | None, now: datetime) -> float:
    """How long a link took, or has taken until `now`."""
    until = datetime.fromisoformat(ended) if ended else now
    return max((until - datetime.fromisoformat(began)).total_seconds(), 0.0)
