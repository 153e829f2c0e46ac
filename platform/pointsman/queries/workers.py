"""Workers one by one: their cards and prices through time, how their calls go, what they are good at, who beats whom.

Everything but the histories looks at the newest `LOOKED_AT` rows, so that a log of any size answers in a moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Engine, func, select, text

from pointsman.ids import lowest_id
from pointsman.queries.proportion import Proportion
from pointsman.queries.scope import bound, of_project
from pointsman.queries.summaries import Percentiles
from pointsman.tables import METADATA

CARD = METADATA.tables["card"]
PRICE = METADATA.tables["price"]
LOOKED_AT = 20_000
EVEN = 1e-9  # scores closer than this are a tie

_HEALTH = text("""
WITH newest AS (
    SELECT worker, status, fault, latency_ms, first_token_ms FROM call
    WHERE id >= CAST(:low AS uuid) AND purpose = 'serve'
        AND (CAST(:project AS uuid) IS NULL OR project_id = CAST(:project AS uuid))
    ORDER BY id DESC LIMIT :limit
)
SELECT worker, count(*) AS n, count(*) FILTER (WHERE status = 'ok') AS ok,
    mode() WITHIN GROUP (ORDER BY fault) FILTER (WHERE fault IS NOT NULL) AS fault,
    count(latency_ms) AS timed,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY latency_ms) AS p50,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY latency_ms) AS p95,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY latency_ms) AS p99
FROM newest GROUP BY worker ORDER BY worker
""")
# Lower bounds of ids: without them the planner reads both tables whole.
_BY_TAG = text("""
WITH newest AS (
    SELECT id, request_id, chosen FROM decision
    WHERE origin = 'traffic' AND kind = 'route' AND parent_id IS NULL AND chosen IS NOT NULL
        AND (CAST(:project AS uuid) IS NULL OR project_id = CAST(:project AS uuid))
    ORDER BY id DESC LIMIT :limit
)
SELECT t.tag, n.chosen AS worker, count(*) AS n,
    count(*) FILTER (WHERE o.status = 'ok' AND coalesce(o.worker, n.chosen) = n.chosen) AS ok
FROM newest n
JOIN outcome o ON o.id = n.id AND o.id >= (SELECT id FROM newest ORDER BY id LIMIT 1)
JOIN request r ON r.id = n.request_id AND r.id >= (SELECT request_id FROM newest ORDER BY request_id LIMIT 1)
CROSS JOIN LATERAL unnest(r.tags) AS t(tag)
GROUP BY 1, 2
""")
_WINS = text("""
WITH newest AS (
    SELECT id FROM decision WHERE origin IN ('audit', 'probe', 'replay')
        AND (CAST(:project AS uuid) IS NULL OR project_id = CAST(:project AS uuid))
    ORDER BY id DESC LIMIT :limit
), scored AS (
    SELECT o.decision_id, o.worker, avg(o.score) AS score
    FROM outcome o JOIN newest n ON n.id = o.decision_id
    WHERE o.score IS NOT NULL AND o.worker IS NOT NULL GROUP BY 1, 2
)
SELECT a.worker, b.worker AS other, count(*) AS n,
    count(*) FILTER (WHERE a.score > b.score + :even) AS wins,
    count(*) FILTER (WHERE abs(a.score - b.score) <= :even) AS ties
FROM scored a JOIN scored b ON b.decision_id = a.decision_id AND b.worker <> a.worker
GROUP BY 1, 2 ORDER BY 1, 2
""")


@dataclass(frozen=True)
class CardLine:
    hash: str
    worker: str
    text: str
    source: str
    created_at: datetime


@dataclass(frozen=True)
class PriceLine:
    """USD per million tokens."""

    worker: str
    input: Decimal
    output: Decimal
    cached_input: Decimal
    created_at: datetime


@dataclass(frozen=True)
class Health:
    """A worker's calls that served traffic: how many went well, and the commonest fault of the others."""

    worker: str
    ok: Proportion
    fault: str | None
    latency: Percentiles


@dataclass(frozen=True)
class TagLine:
    """Requests with this tag that chose the worker, and how many it answered well itself."""

    tag: str
    worker: str
    ok: Proportion


@dataclass(frozen=True)
class Duel:
    """Requests that both workers answered with a score: how often `worker` did better than `other`, and as well."""

    worker: str
    other: str
    wins: int
    ties: int
    n: int

    @property
    def share(self) -> float:
        """A tie is half a win."""
        return (self.wins + self.ties / 2) / self.n


def card_history(engine: Engine, worker: str, limit: int = 50) -> tuple[CardLine, ...]:
    """The newest first."""
    query = select(CARD).where(CARD.c.worker == worker).order_by(CARD.c.created_at.desc(), CARD.c.hash).limit(limit)
    with engine.connect() as connection:
        return tuple(CardLine(**row) for row in connection.execute(query).mappings())


def price_history(engine: Engine, worker: str, limit: int = 20) -> tuple[PriceLine, ...]:
    """The newest first."""
    p = PRICE.c
    columns = (p.worker, p.input, p.output, p.cached_input, p.created_at)
    query = select(*columns).where(p.worker == worker).order_by(p.created_at.desc(), p.hash).limit(limit)
    with engine.connect() as connection:
        return tuple(PriceLine(**row) for row in connection.execute(query).mappings())


def health(engine: Engine, project: str | None, since: datetime) -> tuple[Health, ...]:
    """By worker, of the newest calls since then."""
    rows = _read(engine, _HEALTH, project, low=lowest_id(since), limit=LOOKED_AT)
    return tuple(
        Health(
            row["worker"],
            Proportion(row["ok"], row["n"]),
            row["fault"],
            Percentiles(row["timed"], row["p50"], row["p95"], row["p99"]),
        )
        for row in rows
    )


def success_by_tag(engine: Engine, project: str | None) -> tuple[TagLine, ...]:
    """The commonest tags first."""
    rows = _read(engine, _BY_TAG, project, limit=LOOKED_AT)
    size: dict[str, int] = {}
    for row in rows:
        size[row["tag"]] = size.get(row["tag"], 0) + row["n"]
    lines = [TagLine(row["tag"], row["worker"], Proportion(row["ok"], row["n"])) for row in rows]
    return tuple(sorted(lines, key=lambda line: (-size[line.tag], line.tag, line.worker)))


def duels(engine: Engine, project: str | None) -> tuple[Duel, ...]:
    """Every ordered pair that met, of the newest rows in which every worker was asked."""
    rows = _read(engine, _WINS, project, limit=LOOKED_AT, even=EVEN)
    return tuple(Duel(row["worker"], row["other"], row["wins"], row["ties"], row["n"]) for row in rows)


def watched(engine: Engine, project: str | None) -> tuple[tuple[str, str, datetime], ...]:
    """What is watched for drift: (kind, worker or empty, when it was looked at last)."""
    detector = METADATA.tables["detector"]
    d = detector.c
    query = select(d.kind, d.subject, func.max(d.updated_at)).group_by(d.kind, d.subject).order_by(d.kind, d.subject)
    query = query.where(of_project(detector, project))
    with engine.connect() as connection:
        return tuple((row[0], row[1], row[2]) for row in connection.execute(query))


def _read(engine: Engine, query: Any, project: str | None, **values: Any) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.execute(query, {"project": bound(project), **values}).mappings())
