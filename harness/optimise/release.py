"""What a search leaves in the log: the winner as a router version, the opened certification set, the certificates.

Nothing here makes anything serve. A certification set is entered in the project's α ledger before it is opened, and is
spent from then on, whatever comes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import Connection, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from harness.optimise.certify import Certificate
from harness.optimise.rows import Rows
from harness.routing.base import RouterVersion
from pointsman.errors import UserError
from pointsman.hashing import content_hash
from pointsman.ids import new_id
from pointsman.pool import Pool, Worker
from pointsman.promotion.offline import Evidence
from pointsman.promotion.serving import announce
from pointsman.statistics.alpha_ledger import AlphaLedger
from pointsman.tables import METADATA
from pointsman.words import RouterState

LEDGER = METADATA.tables["alpha_ledger"]
CERTIFICATE = METADATA.tables["certificate"]
VERSION = METADATA.tables["router_version"]
CARD = METADATA.tables["card"]


@dataclass(frozen=True)
class Opened:
    """An entry of the α ledger: the error that this certification set may spend."""

    id: str
    alpha: float


@dataclass(frozen=True)
class Place:
    """Where a release belongs. `epoch` names the workers at their endpoints, `incumbent` the version it follows.

    `endpoints` {worker: hash} are those that the rows are of; None: recorded elsewhere, at no endpoint.
    """

    project: str
    epoch: str
    incumbent: str
    spec_hash: str | None = None
    judge_units: bool = False
    endpoints: Mapping[str, str] | None = None


def pool_epoch(workers: Sequence[Worker]) -> str:
    """Changes when a worker comes, goes or changes its endpoint: certificates then start over."""
    return Pool(tuple(workers)).epoch


def last_window(connection: Connection, project: str) -> float | None:
    """The time up to which certification rows are spent, in seconds; None where no set was opened yet."""
    query = select(func.max(CERTIFICATE.c.window_end)).where(CERTIFICATE.c.project_id == UUID(project))
    found = connection.execute(query).scalar()
    return None if found is None else float(found.timestamp())


def open_certification(
    connection: Connection, place: Place, version: str, rows: Rows, now: datetime, alpha: float = 0.05
) -> Opened:
    """Enters the set in the ledger. One that was opened for this very version is given back; else it is spent."""
    project = UUID(place.project)
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": f"alpha {place.project}"})
    known = connection.execute(
        select(LEDGER.c.id, LEDGER.c.alpha, LEDGER.c.router_version_id).where(
            LEDGER.c.project_id == project, LEDGER.c.data_hash == rows.hash
        )
    ).first()
    if known is not None and str(known.router_version_id) == version:
        return Opened(str(known.id), float(known.alpha))
    if known is not None:
        raise UserError("this certification set was opened for another candidate and is spent: collect fresh rows")
    own = (LEDGER.c.project_id == project) & (LEDGER.c.pool_epoch == place.epoch)
    opened = connection.execute(
        select(func.count()).select_from(LEDGER).where(own, LEDGER.c.purpose == "certification")
    ).scalar_one()
    share, after = AlphaLedger(alpha, place.epoch, certifications=opened).open_certification()
    entry = Opened(new_id(), share)
    connection.execute(
        insert(LEDGER).values(
            id=UUID(entry.id),
            project_id=project,
            pool_epoch=place.epoch,
            purpose="certification",
            index=after.certifications,
            alpha=share,
            spent=after.spent,
            router_version_id=UUID(version),
            data_hash=rows.hash,
            opened_at=now,
            retired_at=now,
        )
    )
    return entry


def write_version(connection: Connection, version: RouterVersion, state: RouterState, now: datetime) -> None:
    """The version with its cards. One that is known keeps its state, but for a draft that becomes a candidate."""
    values = {
        "id": UUID(version.id),
        "kind": version.kind,
        "parent_id": None if version.parent_id is None else UUID(version.parent_id),
        "artifact_hash": version.artifact_hash,
        "config": dict(version.config),
        "state": state,
        "created_at": now,
    }
    connection.execute(insert(VERSION).values(**values).on_conflict_do_nothing(index_elements=["id"]))
    announce(connection, "a candidate")
    if state == "candidate":
        draft = (VERSION.c.id == UUID(version.id)) & (VERSION.c.state == "draft")
        connection.execute(update(VERSION).where(draft).values(state=state))
    for worker, card in version.config["cards"].items():
        row = {
            "hash": content_hash({"worker": worker, "card": card}),
            "worker": worker,
            "text": card,
            "source": "optimised",
            "created_at": now,
        }
        connection.execute(insert(CARD).values(**row).on_conflict_do_nothing(index_elements=["hash"]))


def write_certificates(
    connection: Connection,
    place: Place,
    version: str,
    certificate: Certificate,
    rows: Rows,
    opened: Opened,
    now: datetime,
) -> list[str]:
    """A row per statement; their ids."""
    moments = [row.moment for row in rows.rows]
    window = {"window_start": _at(min(moments)), "window_end": _at(max(moments))}
    made = []
    for statement in certificate.statements:
        values: dict[str, Any] = {
            "id": UUID(new_id()),
            "project_id": UUID(place.project),
            "claim": statement.claim,
            "router_version_id": UUID(version),
            "incumbent_id": UUID(place.incumbent),
            "alpha_id": UUID(opened.id),
            "alpha": statement.alpha,
            "method": statement.method,
            "assumptions": list(certificate.assumptions),
            "numbers": {
                **statement.numbers,
                "said": statement.said,
                "best_single": asdict(certificate.beside),
                "rows": [row.id for row in rows.rows],
            },
            "data_hash": certificate.data_hash,
            "spec_hash": place.spec_hash,
            "pool_epoch": place.epoch,
            "judge_units": place.judge_units,
            "evidence": _evidence(place, certificate, rows),
            "holds": statement.holds,
            "created_at": now,
            "checked_at": now,
            **window,
        }
        connection.execute(insert(CERTIFICATE).values(**values))
        made.append(str(values["id"]))
    return made


def _evidence(place: Place, certificate: Certificate, rows: Rows) -> dict[str, Any] | None:
    if place.endpoints is None:
        return None
    endpoints = {worker: place.endpoints[worker] for worker in rows.workers}
    policies, objective = np.array(certificate.policies), certificate.objective
    identities = tuple(row.id for row in rows.rows)
    evidence = Evidence(
        identities, endpoints, policies, 0, certificate.incumbent, objective.trade_off, objective.cap
    )  # fmt: skip
    return evidence.to_json()


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)
