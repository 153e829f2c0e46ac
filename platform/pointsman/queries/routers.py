"""Router versions with their lineage and how they did, certificates, promotions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, select, text

from pointsman.queries.proportion import Proportion
from pointsman.queries.scope import bound, of_project
from pointsman.tables import METADATA

VERSION = METADATA.tables["router_version"]
CERTIFICATE = METADATA.tables["certificate"]
PROMOTION = METADATA.tables["promotion"]
LOOKED_AT = 20_000

# What each version's drawn decisions cost and how they ended, of the newest ones.
_RECORD = text("""
WITH newest AS (
    SELECT id, router_version_id, chosen FROM decision
    WHERE origin = 'traffic' AND kind = 'route' AND parent_id IS NULL AND router_version_id IS NOT NULL
        AND (CAST(:project AS uuid) IS NULL OR project_id = CAST(:project AS uuid))
    ORDER BY id DESC LIMIT :limit
)
SELECT n.router_version_id AS id, count(*) AS n,
    count(*) FILTER (WHERE o.status = 'ok' AND coalesce(o.worker, n.chosen) = n.chosen) AS ok,
    count(o.status) AS ended, avg(o.cost)::float AS cost, count(o.cost) AS costed,
    avg(r.value) AS reward, count(r.value) AS rewarded
FROM newest n LEFT JOIN outcome o ON o.id = n.id AND o.id >= (SELECT id FROM newest ORDER BY id LIMIT 1)
LEFT JOIN LATERAL (
    SELECT value FROM reward WHERE outcome_id = n.id AND value IS NOT NULL ORDER BY computed_at DESC LIMIT 1
) r ON true
GROUP BY 1
""")
_PLANE = text("""
WITH newest AS (
    SELECT id FROM decision WHERE origin IN ('audit', 'probe', 'replay')
        AND (CAST(:project AS uuid) IS NULL OR project_id = CAST(:project AS uuid))
    ORDER BY id DESC LIMIT :limit
), cell AS (
    SELECT o.decision_id, o.worker, avg(o.score) AS score, avg(o.cost)::float AS cost
    FROM outcome o JOIN newest n ON n.id = o.decision_id
    WHERE o.score IS NOT NULL AND o.worker IS NOT NULL GROUP BY 1, 2
)
SELECT decision_id, worker, score, cost FROM cell ORDER BY decision_id, worker
""")


@dataclass(frozen=True)
class VersionLine:
    id: str
    kind: str
    parent_id: str | None
    state: str
    artifact_hash: str
    created_at: datetime
    config: Mapping[str, Any]


@dataclass(frozen=True)
class VersionRecord:
    """Of a version's newest decisions: USD and reward are means over `costed` and `rewarded` of them."""

    decisions: int
    success: Proportion
    cost: float | None
    costed: int
    reward: float | None
    rewarded: int


@dataclass(frozen=True)
class PlanePoint:
    """Mean score and USD per request over full-information rows; `cost` None where no price is known."""

    name: str
    score: float
    cost: float | None
    n: int


def router_versions(engine: Engine, limit: int = 100) -> tuple[VersionLine, ...]:
    """The newest first. Versions belong to no project: what serves one is said by its promotions."""
    v = VERSION.c
    query = select(VERSION).order_by(v.created_at.desc(), v.id).limit(limit)
    with engine.connect() as connection:
        return tuple(_version(row) for row in connection.execute(query))


def version_records(engine: Engine, project: str | None) -> dict[str, VersionRecord]:
    """By version, of the newest decisions."""
    with engine.connect() as connection:
        rows = connection.execute(_RECORD, {"project": bound(project), "limit": LOOKED_AT}).mappings()
        return {
            str(row["id"]): VersionRecord(
                row["n"],
                Proportion(row["ok"], row["ended"]),
                row["cost"],
                row["costed"],
                row["reward"],
                row["rewarded"],
            )
            for row in rows
        }


def plane(engine: Engine, project: str | None, limit: int = 5_000) -> tuple[PlanePoint, ...]:
    """Each worker as if it answered everything, and `oracle`: each request's best score, the cheapest among equals.

    Over the newest full-information rows in which every worker of them all has a score.
    """
    cells: dict[Any, dict[str, tuple[float, float | None]]] = {}
    with engine.connect() as connection:
        for row in connection.execute(_PLANE, {"project": bound(project), "limit": limit}):
            cells.setdefault(row.decision_id, {})[row.worker] = (float(row.score), row.cost)
    workers = sorted({worker for found in cells.values() for worker in found})
    whole = [found for found in cells.values() if len(found) == len(workers)]
    if not whole:
        return ()
    points = [_point(worker, [found[worker] for found in whole]) for worker in workers]
    return (*points, _point("oracle", [_best(found) for found in whole]))


def certificates(engine: Engine, project: str | None, limit: int = 50) -> tuple[Mapping[str, Any], ...]:
    """Rows of `certificate`, newest first."""
    c = CERTIFICATE
    return _table(engine, select(c).where(of_project(c, project)).order_by(c.c.id.desc()).limit(limit))


def promotion_history(engine: Engine, project: str | None, limit: int = 50) -> tuple[Mapping[str, Any], ...]:
    """Rows of `promotion`, newest first: the first one says what serves its project."""
    p = PROMOTION
    return _table(engine, select(p).where(of_project(p, project)).order_by(p.c.id.desc()).limit(limit))


def _table(engine: Engine, query: Any) -> tuple[Mapping[str, Any], ...]:
    with engine.connect() as connection:
        return tuple(dict(row) for row in connection.execute(query).mappings())


def _version(row: Any) -> VersionLine:
    parent = None if row.parent_id is None else str(row.parent_id)
    return VersionLine(
        str(row.id), row.kind, parent, row.state, row.artifact_hash, row.created_at, dict(row.config or {})
    )


def _best(found: Mapping[str, tuple[float, float | None]]) -> tuple[float, float | None]:
    return max(found.values(), key=lambda cell: (cell[0], -(cell[1] if cell[1] is not None else float("inf"))))


def _point(name: str, cells: list[tuple[float, float | None]]) -> PlanePoint:
    costs = [cost for _, cost in cells if cost is not None]
    mean = sum(costs) / len(costs) if len(costs) == len(cells) else None
    return PlanePoint(name, sum(score for score, _ in cells) / len(cells), mean, len(cells))
