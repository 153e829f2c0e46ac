"""Traces from the log: roots of workflows and trinities with their rewards, plans, turns, and the cards of then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Table, and_, select

from distill.conductor.traces import Trace
from harness.engine.learned import context_of
from pointsman.queries.scope import CALL, DECISION, OUTCOME, REQUEST, of_project
from pointsman.tables import METADATA
from pointsman.words import Origin

REWARD: Table = METADATA.tables["reward"]
SNAPSHOT: Table = METADATA.tables["pool_snapshot"]
CARD: Table = METADATA.tables["card"]
_PAGE = 1_000


def read_traces(
    connection: Connection, project: str, spec_hash: str, origins: Sequence[Origin] = ("traffic",)
) -> list[Trace]:
    """All runs of both patterns with a known reward and a stored text, oldest first."""
    roots = _roots(connection, project, spec_hash, origins)
    below: dict[UUID, list[Row[Any]]] = defaultdict(list)
    for page in _pages([root.request_id for root in roots]):
        for row in connection.execute(_children(project, page)):
            below[row.request_id].append(row)
    cards = _cards(connection, {row.pool_hash for rows in below.values() for row in rows if row.pool_hash})
    found = (_trace(root, below[root.request_id], cards) for root in roots)
    return [trace for trace in found if trace is not None]


def _roots(connection: Connection, project: str, spec_hash: str, origins: Sequence[Origin]) -> list[Any]:
    d, r, w, o = DECISION.c, REQUEST.c, REWARD.c, OUTCOME.c
    joined = (
        DECISION.join(REQUEST, and_(r.id == d.request_id, r.project_id == d.project_id))
        .join(REWARD, and_(w.outcome_id == d.id, w.spec_hash == spec_hash))
        .join(OUTCOME, o.id == d.id)
    )
    query = (
        select(d.request_id, d.pattern, r.text, w.value, o.cost)
        .select_from(joined)
        .where(
            of_project(DECISION, project),
            d.kind == "pattern",
            d.pattern.in_(("workflow", "trinity")),
            d.origin.in_(origins),
            w.value.is_not(None),
            r.text.is_not(None),
            r.learn,
        )
        .order_by(d.id)
    )
    return list(connection.execute(query).all())


def _children(project: str, requests: Sequence[UUID]) -> Any:
    """Plans with the prompt that they answer, and trinity's turns."""
    d, c = DECISION.c, CALL.c
    joined = DECISION.outerjoin(CALL, and_(c.decision_id == d.id, c.purpose == "route"))
    columns = (d.request_id, d.kind, d.plan, d.eligible, d.pool_hash, d.chosen, d.role, d.router_cost, c.messages)
    return (
        select(*columns)
        .select_from(joined)
        .where(of_project(DECISION, project), d.request_id.in_(requests), d.kind.in_(("delegate", "role")))
        .order_by(d.id)
    )


def _trace(root: Row[Any], rows: Sequence[Row[Any]], cards: Mapping[str, Mapping[str, str]]) -> Trace | None:
    cost = float(root.cost or 0) + sum(float(row.router_cost or 0) for row in rows)
    if root.pattern == "workflow":
        # The last that was written is the one that was carried out: those before it could not be.
        planned = [row for row in rows if row.kind == "delegate" and row.plan is not None]
        if not planned or planned[-1].messages is None:
            return None
        row = planned[-1]
        context = context_of(row.messages)
        return Trace(root.text, context, _offered(row, cards), float(root.value), cost, plan=row.plan)
    turns = tuple((str(row.chosen), str(row.role)) for row in rows if row.kind == "role" and row.chosen and row.role)
    if not turns:
        return None
    offered = {name: card for row in rows for name, card in _offered(row, cards).items()}
    return Trace(root.text, "", offered, float(root.value), cost, turns=turns)


def _offered(row: Row[Any], cards: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    known = cards.get(row.pool_hash or "", {})
    return {name: known[name] for name, why_not in row.eligible.items() if why_not is None and name in known}


def _cards(connection: Connection, hashes: Iterable[str]) -> dict[str, dict[str, str]]:
    """Pool hash → worker → card."""
    wanted = list(hashes)
    pools = connection.execute(select(SNAPSHOT.c.hash, SNAPSHOT.c.content).where(SNAPSHOT.c.hash.in_(wanted))).all()
    named = {version["card"] for pool in pools for version in pool.content.values()}
    texts: dict[str, str] = {
        row.hash: row.text for row in connection.execute(select(CARD.c.hash, CARD.c.text).where(CARD.c.hash.in_(named)))
    }
    return {
        pool.hash: {name: texts[v["card"]] for name, v in pool.content.items() if v["card"] in texts} for pool in pools
    }


def _pages(ids: Sequence[UUID]) -> Iterable[Sequence[UUID]]:
    for start in range(0, len(ids), _PAGE):
        yield ids[start : start + _PAGE]
