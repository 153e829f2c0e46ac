"""Finding an older conversation by its fingerprint, for a gateway whose cache does not hold it."""

from __future__ import annotations

from sqlalchemy import Engine, select

from pointsman.tables import METADATA

_EPISODE = METADATA.tables["episode"]
_DECISION = METADATA.tables["decision"]
_OUTCOME = METADATA.tables["outcome"]


def newest_episode(engine: Engine, project_id: str, fingerprint: str) -> tuple[str, str | None] | None:
    """The newest episode of a project with this fingerprint, and the worker that answered last in it."""
    with engine.connect() as connection:
        episode = connection.execute(
            select(_EPISODE.c.id)
            .where(_EPISODE.c.project_id == project_id, _EPISODE.c.fingerprint == fingerprint)
            .order_by(_EPISODE.c.id.desc())
            .limit(1)
        ).scalar()
        if episode is None:
            return None
        worker = connection.execute(
            select(_OUTCOME.c.worker)
            .join(_DECISION, _DECISION.c.id == _OUTCOME.c.id)
            .where(_DECISION.c.episode_id == episode, _DECISION.c.project_id == project_id)
            .order_by(_DECISION.c.id.desc())
            .limit(1)
        ).scalar()
        return str(episode), worker
