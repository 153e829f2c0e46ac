"""What serves a project: its newest promotion, else what the configuration file declares.

Every change is announced on a channel, once its transaction commits; every gateway listens there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Table, and_, select, text

from pointsman.errors import UserError
from pointsman.queries.scope import DECISION, REQUEST, in_time
from pointsman.tables import METADATA

PROMOTION: Table = METADATA.tables["promotion"]
CHANNEL = "pointsman_versions"
_OURS = "pointsman"
_SEEN = 200


@dataclass(frozen=True)
class Promotion:
    """The promotion that holds. `version` None: the file's routers serve."""

    id: str
    version: str | None
    previous: str | None
    fallback: str | None
    cards_hash: str | None


def announce(connection: Connection, what: str) -> None:
    """Tells every gateway, once the transaction commits, that what serves may have changed."""
    connection.execute(text("SELECT pg_notify(:channel, :payload)"), {"channel": CHANNEL, "payload": what})


def file_cards(connection: Connection, project: str) -> str | None:
    """The hash of the file's descriptions by which the project's newest request was decided."""
    d = DECISION.c
    newest = select(d.cards_hash).where(d.project_id == project, d.cards_hash.is_not(None), d.origin == "traffic")
    return connection.scalar(newest.order_by(d.id.desc()).limit(1))


def newest_promotion(connection: Connection, project: str) -> Promotion | None:
    """The promotion that holds for a project."""
    p = PROMOTION.c
    row = connection.execute(select(PROMOTION).where(p.project_id == project).order_by(p.id.desc()).limit(1)).first()
    return None if row is None else _promotion(row)


def promotions(connection: Connection, project: str, limit: int = 20) -> list[Promotion]:
    """Newest first."""
    p = PROMOTION.c
    rows = connection.execute(select(PROMOTION).where(p.project_id == project).order_by(p.id.desc()).limit(limit))
    return [_promotion(row) for row in rows]


def incumbent(connection: Connection, project: str) -> str:
    """The version that serves a project now: the promoted one, else the one that lately decided.

    Raises `UserError` where nothing tells.
    """
    found = newest_promotion(connection, project)
    if found is not None and found.version is not None:
        return found.version
    seen = lately_deciding(connection, project)
    if seen is None:
        raise UserError(
            "it is not known which router serves: no request was decided by the first router of the chain yet; "
            "send one, or name the version with --incumbent"
        )
    return seen


def lately_deciding(connection: Connection, project: str, since: datetime | None = None) -> str | None:
    """The router version of the newest request for the model `pointsman` that no fallback decided."""
    d, r = DECISION.c, REQUEST.c
    newest = (
        select(d.id, d.request_id, d.router_version_id, d.fail_open, d.shadow_picks)
        .where(
            d.project_id == project,
            d.origin == "traffic",
            d.kind == "route",
            d.router_version_id.is_not(None),
            in_time(d.id, since, None),
        )
        .order_by(d.id.desc())
        .limit(_SEEN)
        .subquery()
    )
    joined = newest.join(REQUEST, and_(r.id == newest.c.request_id, r.model == _OURS))
    found = connection.execute(
        select(newest.c.router_version_id, newest.c.shadow_picks)
        .select_from(joined)
        .where(newest.c.fail_open.is_(None))
        .order_by(newest.c.id.desc())
        .limit(1)
    ).first()
    return None if found is None else _base(found)


def _base(row: Any) -> str:
    """Under a gate the candidate may have decided: then the incumbent stands beside it."""
    picks = row.shadow_picks["picks"] if row.shadow_picks else ()
    return next((pick["version"] for pick in picks if pick["part"] == "incumbent"), str(row.router_version_id))


def _promotion(row: Any) -> Promotion:
    return Promotion(
        str(row.id), _text(row.router_version_id), _text(row.previous_id), _text(row.fallback_id), row.cards_hash
    )


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)
