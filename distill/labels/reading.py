"""The log as evidence: full-information rows, traffic with its rewards, and words that another worker is better.

Read are requests that may be learned from. Of traffic the worker counts that answered, at its endpoint then; where a
fallback answered for the intended worker the row says nothing of skill and is left out. A decision that was forced
counts as evidence but was not drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

import numpy as np
from sqlalchemy import Connection, Table, and_, or_, select
from sqlalchemy.dialects.postgresql import distinct_on

from distill.arrays import Floats
from distill.labels.evidence import Asked, Cell, Evidence, Source, gather
from distill.table import Arm
from pointsman.pool import Worker
from pointsman.probing.matrix import Matrix, full_information
from pointsman.queries.scope import DECISION, FEEDBACK, REQUEST, of_project, standing
from pointsman.tables import METADATA
from pointsman.words import Origin

REWARD: Table = METADATA.tables["reward"]
SNAPSHOT: Table = METADATA.tables["pool_snapshot"]
CARD: Table = METADATA.tables["card"]
PRICE: Table = METADATA.tables["price"]
LEAST_ANSWERS = 10
"""An arm of which less is known gets no labels."""
_PAGE = 2_000


@dataclass(frozen=True)
class Wanted:
    """`workers` are the configuration's: their endpoints are the arms, beside those of recorded answers.

    None of them: every endpoint on record is. `tags` keep full-information rows that have one of them.
    """

    origins: tuple[Origin, ...]
    spec_hash: str
    workers: tuple[Worker, ...] = ()
    tags: tuple[str, ...] = ()
    least: int = LEAST_ANSWERS


@dataclass
class _Found:
    asked: list[Asked] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    reruns: list[tuple[float, float]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def read_evidence(connection: Connection, project: str, wanted: Wanted) -> Evidence:
    """Oldest first. Raises `UserError` where fewer than two workers are known well enough."""
    found = _Found()
    full = tuple(origin for origin in wanted.origins if origin != "traffic")
    if full:
        matrix = full_information(connection, project, full, tags=wanted.tags)
        _add_matrix(found, matrix)
    recorded = dict(found.names) if "replay" in full else {}
    if "traffic" in wanted.origins:
        _add_traffic(connection, project, wanted, found)
    arms = _arms(connection, wanted.workers, recorded, found.names)
    return gather(
        found.asked,
        found.cells,
        arms,
        least=wanted.least,
        reruns=np.array(found.reruns, np.float64).reshape(-1, 2),
        left_out=dict(found.left_out),
    )


def _add_matrix(found: _Found, matrix: Matrix) -> None:
    found.names |= dict(zip(matrix.workers, matrix.names, strict=True))
    source: Source = "judge" if matrix.judge_units else "verifier"
    means = matrix.means
    for n, text in enumerate(matrix.texts):
        known = np.flatnonzero(np.isfinite(means[n]))
        if not text or not len(known):
            found.left_out["no text, or no answer with a score"] += 1
            continue
        row = len(found.asked)
        found.asked.append(
            Asked(
                matrix.ids[n], text, matrix.episodes[n], matrix.moments[n], matrix.origins[n],
                matrix.tasks[n], matrix.splits[n],
            )
        )  # fmt: skip
        found.cells += [Cell(row, matrix.workers[k], _unit(means[n, k]), source) for k in known.tolist()]
        found.reruns += _pairs(matrix.scores[n])


def _pairs(scores: Floats) -> list[tuple[float, float]]:
    """The first two runs of every cell that was run twice, [k, r]."""
    if scores.shape[1] < 2:
        return []
    both = np.isfinite(scores[:, 0]) & np.isfinite(scores[:, 1])
    return [(float(first), float(again)) for first, again in scores[both, :2]]


def _add_traffic(connection: Connection, project: str, wanted: Wanted, found: _Found) -> None:
    rows = _decisions(connection, project, wanted.spec_hash)
    pools = snapshots(connection, {row.pool_hash for row in rows if row.pool_hash is not None})
    raters = _raters(connection, project, [row.id for row in rows if row.source == "feedback"])
    place: dict[UUID, int] = {}
    for row in rows:
        endpoint = pools.get(row.pool_hash, {}).get(row.worker or "")
        if endpoint is None:
            found.left_out["the answering worker's endpoint is not on record"] += 1
            continue
        if row.worker != row.chosen:
            found.left_out["a fallback answered"] += 1
            continue
        place[row.id] = len(found.asked)
        found.names.setdefault(endpoint, row.worker)
        found.asked.append(_asked(row))
        drawn = None if row.forced is not None else (row.probabilities or {}).get(row.chosen)
        found.cells.append(
            Cell(place[row.id], endpoint, _unit(row.skill), cast(Source, row.source), drawn, raters.get(row.id))
        )
    _add_verdicts(connection, project, found, place, pools)


def _add_verdicts(
    connection: Connection,
    project: str,
    found: _Found,
    place: dict[UUID, int],
    pools: Mapping[str, Mapping[str, str]],
) -> None:
    """A word that another worker would have been better: that worker counts as right, by the verdict's weight."""
    d, r, f = DECISION.c, REQUEST.c, FEEDBACK.c
    joined = FEEDBACK.join(DECISION, and_(d.id == f.decision_id, d.project_id == f.project_id)).join(
        REQUEST, r.id == d.request_id
    )
    query = (
        select(
            d.id, d.episode_id, d.decided_at, d.origin, d.chosen, d.pool_hash, r.text, r.task, r.split,
            f.better_worker, f.rater, f.key_id,
        )
        .select_from(joined)
        .where(
            of_project(FEEDBACK, project), d.origin == "traffic", f.better_worker.is_not(None), r.learn,
            r.text.is_not(None), standing(),
        )
        .order_by(f.id)
    )  # fmt: skip
    rows = connection.execute(query).all()
    known = {**pools, **snapshots(connection, {row.pool_hash for row in rows if row.pool_hash is not None})}
    for row in rows:
        endpoint = known.get(row.pool_hash, {}).get(row.better_worker)
        if endpoint is None or row.better_worker == row.chosen:
            found.left_out["a verdict that names no other worker of its pool"] += 1
            continue
        if row.id not in place:
            place[row.id] = len(found.asked)
            found.asked.append(_asked(row))
        found.cells.append(Cell(place[row.id], endpoint, 1.0, "verdict", None, _who(row)))


def _decisions(connection: Connection, project: str, spec_hash: str) -> Sequence[Any]:
    """Routed traffic whose answer's skill is known under the spec."""
    d, r, w = DECISION.c, REQUEST.c, REWARD.c
    joined = DECISION.join(REQUEST, r.id == d.request_id).join(
        REWARD, and_(w.outcome_id == d.id, w.spec_hash == spec_hash, w.skill.is_not(None), w.source.is_not(None))
    )
    query = (
        select(
            d.id, d.episode_id, d.decided_at, d.origin, d.chosen, d.probabilities, d.pool_hash, d.forced,
            w.skill, w.source, w.worker, r.text, r.task, r.split,
        )
        .select_from(joined)
        .where(
            of_project(DECISION, project), d.origin == "traffic", d.kind == "route", d.parent_id.is_(None), r.learn,
            r.text.is_not(None),
        )
        .order_by(d.id)
    )  # fmt: skip
    return connection.execute(query).all()


def _raters(connection: Connection, project: str, decisions: Sequence[UUID]) -> dict[UUID, str]:
    """Who rated each decision: the first word's rater, else its key. Words given to an episode count for none."""
    f = FEEDBACK.c
    found: dict[UUID, str] = {}
    for start in range(0, len(decisions), _PAGE):
        some = list(decisions[start : start + _PAGE])
        said = or_(f.rater.is_not(None), f.key_id.is_not(None))
        query = select(f.decision_id, f.rater, f.key_id).where(
            of_project(FEEDBACK, project), f.decision_id.in_(some), standing(), said
        )
        for row in connection.execute(query.order_by(f.id)):
            found.setdefault(row.decision_id, _who(row) or "")
    return found


def _who(row: Any) -> str | None:
    return row.rater or (f"key {row.key_id}" if row.key_id is not None else None)


def snapshots(connection: Connection, hashes: set[str]) -> dict[str, dict[str, str]]:
    """By pool hash, each worker's endpoint version."""
    query = select(SNAPSHOT.c.hash, SNAPSHOT.c.content).where(SNAPSHOT.c.hash.in_(sorted(hashes)))
    return {
        row.hash: {worker: versions["endpoint"] for worker, versions in row.content.items()}
        for row in connection.execute(query)
    }


def _arms(
    connection: Connection, workers: Sequence[Worker], recorded: Mapping[str, str], names: Mapping[str, str]
) -> list[Arm]:
    """The configuration's workers at their endpoints now, and what was recorded; all that is known without either."""
    mine = [arm_of(worker) for worker in workers]
    known = {arm.endpoint for arm in mine}
    others = recorded if workers else names
    rest = {endpoint: name for endpoint, name in others.items() if endpoint not in known}
    cards, prices = _cards(connection, set(rest.values())), _prices(connection, set(rest.values()))
    stored = [Arm(endpoint, name, cards.get(name, ""), prices.get(name)) for endpoint, name in rest.items()]
    return [*mine, *sorted(stored, key=lambda arm: (arm.worker, arm.endpoint))]


def arm_of(worker: Worker) -> Arm:
    """A worker of the configuration as it is now."""
    price = None if worker.price is None else float(worker.price.input + worker.price.output)
    return Arm(worker.endpoint_hash, worker.name, worker.card, price)


def _cards(connection: Connection, workers: set[str]) -> dict[str, str]:
    c = CARD.c
    newest = select(c.worker, c.text).where(c.worker.in_(sorted(workers)))
    query = newest.ext(distinct_on(c.worker)).order_by(c.worker, c.created_at.desc(), c.hash)
    return {row.worker: row.text for row in connection.execute(query)}


def _prices(connection: Connection, workers: set[str]) -> dict[str, float]:
    p = PRICE.c
    newest = select(p.worker, p.input, p.output).where(p.worker.in_(sorted(workers)))
    query = newest.ext(distinct_on(p.worker)).order_by(p.worker, p.created_at.desc(), p.hash)
    return {row.worker: float(row.input + row.output) for row in connection.execute(query)}


def _asked(row: Any) -> Asked:
    return Asked(
        str(row.id), row.text, str(row.episode_id or row.id), row.decided_at, row.origin, row.task, row.split
    )  # fmt: skip


def _unit(value: float) -> float:
    return float(min(max(value, 0.0), 1.0))
