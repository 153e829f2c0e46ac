"""Which arm of a gate an episode was given."""

from __future__ import annotations

from sqlalchemy import Engine, select

from pointsman.queries.scope import DECISION
from pointsman.words import GateArm


def arm_of_episode(engine: Engine, gate_id: str, episode_id: str) -> GateArm | None:
    """That of its first disagreement; None where there was none, or it is not in Postgres yet."""
    d = DECISION.c
    query = select(d.shadow_picks).where(d.gate_id == gate_id, d.episode_id == episode_id).order_by(d.id).limit(1)
    with engine.connect() as connection:
        picks = connection.execute(query).scalar()
    arm: GateArm | None = picks["gate"]["arm"] if picks else None
    return arm
