"""Everything that a gateway serves from the database, read at once: what is promoted, gates, shadows, dials, alarms.

A gateway keeps the last one in its data folder, so that after a start without Postgres it serves what it served.
Gateways read this module: it imports nothing that computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, Table, select
from sqlalchemy.dialects.postgresql import distinct_on

from pointsman.drift.alarms import alarms_on, described, doubted_endpoints
from pointsman.hashing import content_hash
from pointsman.identity import write_private
from pointsman.promotion.serving import PROMOTION
from pointsman.promotion.versions import StoredVersion, in_state, versions_of
from pointsman.statistics.ramp import Ramp
from pointsman.tables import METADATA

GATE: Table = METADATA.tables["gate"]
DIAL: Table = METADATA.tables["dial"]
SNAPSHOT: Table = METADATA.tables["pool_snapshot"]
FILE = "versions.json"
PINNABLE = 50
POOLS = 200
"""The newest candidates that requests may name by their version."""


class GatePlan(msgspec.Struct, frozen=True):
    """A gate that runs. `rho` is the candidate's share of the disagreements now."""

    id: str
    candidate: str
    incumbent: str
    rho: float
    pool_epoch: str


class DialPlan(msgspec.Struct, frozen=True):
    """Scores of `version` whose margin for `worker` is at least `threshold` go to it, while it is `endpoint`."""

    id: str
    worker: str
    endpoint: str
    version: str
    threshold: float


class Standing(msgspec.Struct, frozen=True):
    """One project. `promoted` None: the file's routers serve. `cards_hash` is of the file's cards then.

    `cards` are those behind that hash, by worker: a worker that has left is no change of another's description.
    `doubted` are the endpoints under a drift alarm: a trained router gives way where it would choose one of them.
    """

    promoted: str | None = None
    fallback: str | None = None
    cards_hash: str | None = None
    gate: GatePlan | None = None
    dial: DialPlan | None = None
    doubted: tuple[str, ...] = ()
    cards: dict[str, str] | None = None


class Plan(msgspec.Struct, frozen=True):
    """`versions` has every version that is named anywhere; `shadows` and `candidates` are ids."""

    versions: dict[str, StoredVersion] = {}
    projects: dict[str, Standing] = {}
    shadows: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()

    def save(self, home: Path) -> None:
        write_private(home / FILE, msgspec.json.encode(self))

    @classmethod
    def saved(cls, home: Path) -> Plan:
        """The plan of an earlier run; an empty one where there is none."""
        try:
            return msgspec.json.decode((home / FILE).read_bytes(), type=cls)
        except (FileNotFoundError, msgspec.MsgspecError):
            return cls()


def read_plan(engine: Engine) -> tuple[Plan, list[dict[str, Any]]]:
    """The plan, and the alarms that are on. Statement by statement, so that no lock is held meanwhile."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        projects = _projects(connection)
        shadows = [version.id for version in in_state(connection, ["shadow"], PINNABLE)]
        candidates = [version.id for version in in_state(connection, ["candidate", "canary"], PINNABLE)]
        named = {*shadows, *candidates, *_named(list(projects.values()))}
        found = versions_of(connection, sorted(named))
        alarms = [described(row) for row in alarms_on(connection)]
    return Plan(dict(sorted(found.items())), projects, tuple(sorted(shadows)), tuple(sorted(candidates))), alarms


def _projects(connection: Connection) -> dict[str, Standing]:
    promoted, gates, dials = _promoted(connection), _gates(connection), _dials(connection)
    doubted = doubted_endpoints(connection)
    cards = _cards(connection) if promoted else {}
    return {
        project: Standing(
            *promoted.get(project, (None, None, None)),
            gates.get(project),
            dials.get(project),
            doubted.get(project, ()),
            cards.get(promoted[project][2] or "") if project in promoted else None,
        )
        for project in sorted({*promoted, *gates, *dials})
    }


def _promoted(connection: Connection) -> dict[str, tuple[str | None, str | None, str | None]]:
    p = PROMOTION.c
    newest = select(PROMOTION).ext(distinct_on(p.project_id)).order_by(p.project_id, p.id.desc())
    return {
        str(row.project_id): (_text(row.router_version_id), _text(row.fallback_id), row.cards_hash)
        for row in connection.execute(newest)
        if row.router_version_id is not None
    }


def _cards(connection: Connection) -> dict[str, dict[str, str]]:
    """By the hash of a pool's cards, the hash of each worker's: of the pools that were seen last."""
    newest = select(SNAPSHOT.c.content).order_by(SNAPSHOT.c.created_at.desc()).limit(POOLS)
    found = ({worker: hashes["card"] for worker, hashes in row.items()} for row in connection.scalars(newest))
    return {content_hash(cards): cards for cards in found}


def _gates(connection: Connection) -> dict[str, GatePlan]:
    rows = connection.execute(select(GATE).where(GATE.c.state == "running").order_by(GATE.c.id))
    return {
        str(row.project_id): GatePlan(
            str(row.id),
            str(row.candidate_id),
            str(row.incumbent_id),
            Ramp.from_json(row.ramp).rho(row.rows),
            row.pool_epoch,
        )
        for row in rows
    }


def _dials(connection: Connection) -> dict[str, DialPlan]:
    rows = connection.execute(select(DIAL).where(DIAL.c.retired_at.is_(None)))
    return {
        str(row.project_id): DialPlan(
            str(row.id), row.worker, row.endpoint_hash, str(row.router_version_id), row.threshold
        )
        for row in rows
    }


def _named(standings: Sequence[Standing]) -> set[str]:
    ids: set[str | None] = set()
    for one in standings:
        ids |= {one.promoted, one.fallback}
        if one.gate is not None:
            ids |= {one.gate.candidate, one.gate.incumbent}
    return {identity for identity in ids if identity is not None}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
