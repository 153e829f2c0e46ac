"""Making a version serve a project, and undoing it: effects on one connection, so that nothing is half done.

Who may do this, and the record of who did, are `pointsman.actions`' part.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select
from sqlalchemy.dialects.postgresql import distinct_on

from pointsman.errors import UserError
from pointsman.ids import new_id
from pointsman.promotion.serving import PROMOTION, announce, file_cards, newest_promotion, promotions
from pointsman.promotion.versions import StoredVersion, set_state, versions_of
from pointsman.words import PromotionKind, RouterKind

TRAINED: tuple[RouterKind, ...] = ("learned", "classic")


@dataclass(frozen=True)
class Why:
    """What a promotion is made for. `cards_hash` is of the file's descriptions; None: as the log tells."""

    actor: str
    reason: str | None = None
    gate_id: str | None = None
    certificate_id: str | None = None
    cards_hash: str | None = None


def promote(
    connection: Connection,
    project: str,
    version: StoredVersion,
    why: Why,
    now: datetime,
    *,
    fallback: str | None = None,
    previous: str | None = None,
) -> str:
    """Makes `version` serve `project` on every gateway; returns the promotion's id.

    `fallback` is the version that decides where it cannot; where none is named, of a trained router the prompted one
    that was promoted last: it reads cards, so it can decide when workers have changed. `previous` is the one that
    served, where that was the file's own. Raises `UserError` where it serves already, or could never serve.
    """
    before = newest_promotion(connection, project)
    was = before.version if before and before.version else previous
    if was == version.id:
        raise UserError(f"router version {version.id} serves already")
    if version.state == "draft":
        raise UserError(f"router version {version.id} is a draft: it is not finished")
    if fallback == version.id:
        raise UserError("fallback: a version cannot be its own fallback")
    if fallback is None and version.kind in TRAINED:
        fallback = _last_prompted(connection, project)
    made = _insert(connection, project, "promote", version.id, was, fallback, why, now)
    set_state(connection, version.id, "serving")
    if was != fallback:
        _retire(connection, was)
    announce(connection, f"promote {version.id}")
    return made


def roll_back(connection: Connection, project: str, why: Why, now: datetime) -> tuple[str | None, str]:
    """Undoes the promotion that holds: the version before it serves again, None where that is the file's.

    Returns (the version that serves now, the promotion's id). Raises `UserError` where nothing was promoted.
    """
    history = promotions(connection, project, limit=1_000)
    if not history or history[0].version is None:
        raise UserError("nothing was promoted here: the routers of the configuration file serve")
    current = history[0].version
    back = next((one.version for one in history[1:] if one.version != current), None)
    fallback = next((one.fallback for one in history[1:] if one.version == back), None) if back else None
    made = _insert(connection, project, "roll_back", back, current, fallback, why, now)
    _retire(connection, current)
    if back is not None:
        set_state(connection, back, "serving")
    announce(connection, f"roll_back {current}")
    return back, made


def _insert(
    connection: Connection,
    project: str,
    kind: PromotionKind,
    version: str | None,
    previous: str | None,
    fallback: str | None,
    why: Why,
    now: datetime,
) -> str:
    identity = new_id()
    values = {
        "id": identity, "project_id": project, "kind": kind, "router_version_id": version, "previous_id": previous,
        "fallback_id": fallback, "gate_id": why.gate_id, "certificate_id": why.certificate_id, "actor": why.actor,
        "cards_hash": why.cards_hash or file_cards(connection, project), "reason": why.reason, "made_at": now,
    }  # fmt: skip
    connection.execute(insert(PROMOTION).values(values))
    return identity


def _last_prompted(connection: Connection, project: str) -> str | None:
    """The prompted router that was promoted last, if any was."""
    history = [one.version for one in promotions(connection, project, limit=100) if one.version is not None]
    known = versions_of(connection, history) if history else {}
    return next((version for version in history if version in known and known[version].kind == "harness"), None)


def _retire(connection: Connection, version: str | None) -> None:
    """A version that serves no project any more."""
    if version is None:
        return
    p = PROMOTION.c
    newest = select(p.project_id, p.router_version_id).ext(distinct_on(p.project_id))
    serving = newest.order_by(p.project_id, p.id.desc()).subquery()
    elsewhere = connection.scalar(select(serving.c.project_id).where(serving.c.router_version_id == version).limit(1))
    if elsewhere is None:
        set_state(connection, version, "retired")
