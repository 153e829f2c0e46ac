"""A worker's card, written anew by a person: it becomes a candidate router version, and serves nothing yet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert

from pointsman.actions.actor import Actor, record, require
from pointsman.errors import UserError
from pointsman.hashing import content_hash
from pointsman.ids import content_id
from pointsman.promotion.serving import incumbent
from pointsman.promotion.versions import ROUTER_VERSION, StoredVersion, find_version
from pointsman.tables import METADATA

CARD = METADATA.tables["card"]
MAX_CHARS = 20_000


def draft_card(
    connection: Connection,
    actor: Actor,
    project: str,
    worker: str,
    text: str,
    now: datetime,
    *,
    parent: str | None = None,
    reason: str | None = None,
) -> StoredVersion:
    """The candidate: `parent` (else the version that serves) with this one card changed. `UserError` where it cannot.

    Only a prompted router reads cards at serving time; a classic or learned one would have to be trained again.
    """
    require(actor, "operator", "edit a card")
    base = find_version(connection, parent or incumbent(connection, project))
    card = _checked(base, worker, text)
    config = {**base.config, "cards": {**base.config["cards"], worker: card}}
    digest = content_hash(config)
    version = StoredVersion(content_id("router_version", base.kind, digest), base.kind, config, base.id, "candidate")
    _insert(connection, version, digest, worker, card, now)
    detail = {"worker": worker, "parent_id": base.id, "card_hash": _hash(worker, card)}
    record(connection, actor, project, "card_draft", now, subject=version.id, reason=reason, detail=detail)
    return version


def _checked(base: StoredVersion, worker: str, text: str) -> str:
    cards = base.config.get("cards")
    if not isinstance(cards, Mapping):
        raise UserError(f"router version {base.id} is a {base.kind} router: it has no cards of its own to edit")
    if worker not in cards:
        raise UserError(f"router version {base.id} has no card of a worker {worker[:60]!r}")
    card = text.strip()
    if not 0 < len(card) <= MAX_CHARS:
        raise UserError(f"card: expected 1 to {MAX_CHARS} characters, got {len(card)}")
    if card == cards[worker]:
        raise UserError("card: this is the text that it has already")
    return card


def _insert(connection: Connection, version: StoredVersion, digest: str, worker: str, card: str, now: datetime) -> None:
    values: dict[str, Any] = {
        "id": version.id, "kind": version.kind, "parent_id": version.parent_id, "artifact_hash": digest,
        "config": version.config, "state": version.state, "created_at": now,
    }  # fmt: skip
    connection.execute(insert(ROUTER_VERSION).values(values).on_conflict_do_nothing(index_elements=["id"]))
    row = {"hash": _hash(worker, card), "worker": worker, "text": card, "source": "person", "created_at": now}
    connection.execute(insert(CARD).values(row).on_conflict_do_nothing(index_elements=["hash"]))


def _hash(worker: str, card: str) -> str:
    """As `pointsman.pool.Worker.card_hash`."""
    return content_hash({"worker": worker, "card": card})
