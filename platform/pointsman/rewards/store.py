"""Specs and rewards in Postgres. A reward is written again only where it has changed; what has closed stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, case, or_, select
from sqlalchemy.dialects.postgresql import insert

from pointsman.errors import UserError
from pointsman.rewards.spec import RewardSpec
from pointsman.tables import METADATA

REWARD: Table = METADATA.tables["reward"]
REWARD_SPEC: Table = METADATA.tables["reward_spec"]

_OF_NOW = ("arm", "worker", "value", "skill", "source", "reason", "terms")


def save_spec(connection: Connection, spec: RewardSpec, now: datetime) -> str:
    """Makes the spec known by its hash, which is returned."""
    values = {"hash": spec.hash, "name": spec.name, "content": spec.content, "created_at": now}
    connection.execute(insert(REWARD_SPEC).values(values).on_conflict_do_nothing())
    return spec.hash


def load_spec(connection: Connection, spec_hash: str) -> RewardSpec:
    """The spec of that hash. Raises `UserError` where it is not known."""
    content = connection.scalar(select(REWARD_SPEC.c.content).where(REWARD_SPEC.c.hash == spec_hash))
    if content is None:
        raise UserError(f"no reward spec with hash {spec_hash} is known here")
    return RewardSpec.from_json(content)


def save_rewards(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
    """Inserts and updates; returns how many rows are new or have changed."""
    if not rows:
        return 0
    statement = insert(REWARD)
    fresh = statement.excluded
    closed = REWARD.c.closed
    changed = [REWARD.c[name].is_distinct_from(fresh[name]) for name in _OF_NOW]
    update = statement.on_conflict_do_update(
        index_elements=[REWARD.c.spec_hash, REWARD.c.outcome_id],
        set_={
            **{name: fresh[name] for name in _OF_NOW},
            "closed": or_(closed, fresh.closed),
            "closed_value": case((closed, REWARD.c.closed_value), else_=fresh.closed_value),
            "computed_at": fresh.computed_at,
        },
        where=or_(*changed, ~closed & fresh.closed),
    ).returning(REWARD.c.outcome_id)
    return len(connection.execute(update, list(rows)).all())
