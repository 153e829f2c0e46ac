"""Full-information rows as arrays: what every worker earned on every request, for optimisers, bounds and labels.

A row is a decision of an origin that is no traffic, a column is an endpoint (not a name: a worker whose endpoint
has changed is another arm), and the third axis are repeats. What is not known is NaN: it is never imputed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Table, and_, select

from pointsman.queries.scope import CALL, DECISION, OUTCOME, REQUEST, in_time, of_project
from pointsman.rewards.compute import FULL_INFORMATION, Window
from pointsman.rewards.reward import Ended, rewards_of_row
from pointsman.rewards.spec import RewardSpec
from pointsman.tables import METADATA
from pointsman.words import Origin

JUDGE_SCORE: Table = METADATA.tables["judge_score"]
Floats = NDArray[np.float64]
Failures = Literal["unknown", "poor"]
PAGE = 500


@dataclass(frozen=True, eq=False)
class Matrix:
    """`n` rows, `K` workers, `R` repeats. `workers` are endpoint hashes, `names` the workers they belong to.

    `scores`, `costs` (USD) and `seconds` have the shape (n, K, R), NaN where not known. `episodes` is a row's own id
    where it belongs to none. `failed` marks the cells in which only failures are on record. `judge_units` says
    whether any score is a judge's.
    """

    ids: tuple[str, ...]
    requests: tuple[str, ...]
    texts: tuple[str | None, ...]
    episodes: tuple[str, ...]
    tasks: tuple[str | None, ...]
    splits: tuple[str | None, ...]
    origins: tuple[str, ...]
    moments: tuple[datetime, ...]
    rates: tuple[float | None, ...]
    workers: tuple[str, ...]
    names: tuple[str, ...]
    scores: Floats
    costs: Floats
    seconds: Floats
    failed: NDArray[np.bool_]
    judge_units: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def means(self) -> Floats:
        """Each cell's mean over its repeats, (n, K); NaN where none is known."""
        return _mean(self.scores)

    @property
    def mean_costs(self) -> Floats:
        return _mean(self.costs)

    @property
    def complete(self) -> NDArray[np.bool_]:
        """The rows in which every worker has a score, (n,)."""
        return np.asarray(np.isfinite(self.means).all(axis=1), dtype=np.bool_)

    def take(self, rows: Sequence[int] | NDArray[np.intp] | NDArray[np.bool_]) -> Matrix:
        """These rows, in this order; or those that a mask marks."""
        at = np.flatnonzero(rows) if np.asarray(rows).dtype == np.bool_ else np.asarray(rows, dtype=np.intp)
        labels: dict[str, Any] = {name: tuple(getattr(self, name)[i] for i in at) for name in _LABELS}
        arrays: dict[str, Any] = {name: getattr(self, name)[at] for name in _ARRAYS}
        return replace(self, **labels, **arrays)


_LABELS = ("ids", "requests", "texts", "episodes", "tasks", "splits", "origins", "moments", "rates")
_ARRAYS = ("scores", "costs", "seconds", "failed")


def full_information(
    connection: Connection,
    project: str | None,
    origins: Collection[Origin] = FULL_INFORMATION,
    window: Window | None = None,
    *,
    workers: Mapping[str, str] | None = None,
    spec: RewardSpec | None = None,
    judge: str | None = None,
    failures: Failures = "unknown",
    tags: Collection[str] = (),
    learn_only: bool = True,
    page: int = PAGE,
) -> Matrix:
    """Reads the rows of a project (None: of all), oldest first.

    `workers` {endpoint hash: name} says which columns, in their order (None: all that are on record, by name).
    `spec` None takes the verifiers' scores as they are; with one, scores are rewards, comparable within a row, with
    a judge's scores where `judge` (a hash) names one. `failures` says what a worker that gave no answer earned:
    nothing is known (for skill), or 0 (for the value of choosing it). `tags` keeps rows whose request has one of
    them, such as `probe:NAME`; `learn_only` leaves out what may not be learned from.
    """
    found = _Found()
    for rows in _pages(connection, project, origins, window or Window(), tags, learn_only, page):
        found.add(rows, _outcomes(connection, [row.id for row in rows]), _judged(connection, rows, judge))
    return found.matrix(workers, spec, failures)


@dataclass(frozen=True)
class _Outcome:
    endpoint: str
    worker: str
    repeat: int
    ended: Ended


class _Found:
    """What was read, row by row."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.outcomes: list[list[_Outcome]] = []
        self.names: dict[str, str] = {}

    def add(self, rows: Sequence[Any], outcomes: Mapping[UUID, list[Any]], judged: Mapping[UUID, float]) -> None:
        for row in rows:
            cells = [_outcome(found, judged) for found in _latest(outcomes.get(row.id, []))]
            if cells:
                self.rows.append(row)
                self.outcomes.append(cells)
                self.names |= {cell.endpoint: cell.worker for cell in cells}

    def matrix(self, workers: Mapping[str, str] | None, spec: RewardSpec | None, failures: Failures) -> Matrix:
        order = workers or dict(sorted(self.names.items(), key=lambda item: (item[1], item[0])))
        columns = {endpoint: position for position, endpoint in enumerate(order)}
        repeats = max((cell.repeat for cells in self.outcomes for cell in cells), default=0) + 1
        shape = (len(self.rows), len(columns), repeats)
        scores, costs, seconds = (np.full(shape, np.nan) for _ in range(3))
        failed = np.zeros(shape, dtype=np.bool_)
        judge_units = False
        for n, cells in enumerate(self.outcomes):
            wanted = [cell for cell in cells if cell.endpoint in columns]
            for cell, (score, judged) in zip(wanted, _scores(wanted, spec, failures), strict=True):
                at = (n, columns[cell.endpoint], cell.repeat)
                scores[at], failed[at] = score, cell.ended.status != "ok"
                costs[at] = np.nan if cell.ended.cost is None else float(cell.ended.cost)
                seconds[at] = np.nan if cell.ended.seconds is None else cell.ended.seconds
                judge_units |= judged
        return Matrix(
            **_labels(self.rows),
            workers=tuple(order),
            names=tuple(order.values()),
            scores=scores,
            costs=costs,
            seconds=seconds,
            failed=failed,
            judge_units=judge_units,
        )


def _scores(cells: Sequence[_Outcome], spec: RewardSpec | None, failures: Failures) -> list[tuple[float, bool]]:
    """Score, and whether it is a judge's, of the outcomes of one row."""
    rewards = rewards_of_row([cell.ended for cell in cells], spec) if spec is not None else [None] * len(cells)
    made: list[tuple[float, bool]] = []
    for cell, one in zip(cells, rewards, strict=True):
        if cell.ended.status != "ok":
            made.append((0.0 if failures == "poor" else np.nan, False))
        elif one is None:
            made.append((np.nan if cell.ended.score is None else cell.ended.score, False))
        else:
            made.append((np.nan if one.skill is None else one.skill, one.judge_units))
    return made


def _outcome(row: Any, judged: Mapping[UUID, float]) -> _Outcome:
    ended = Ended(
        status=row.status,
        arm=row.worker,
        worker=row.worker,
        ended_at=row.ended_at,
        score=row.score,
        judge=judged.get(row.call_id),
        cost=row.cost,
        seconds=None if row.latency_ms is None else row.latency_ms / 1000,
    )
    return _Outcome(row.endpoint_hash or row.worker, row.worker, row.repeat, ended)


def _latest(outcomes: Sequence[Any]) -> list[Any]:
    """One outcome per worker and repeat: the answer where there is one, else the last failure."""
    best: dict[tuple[str, int], Any] = {}
    for row in sorted(outcomes, key=lambda row: (row.status == "ok", row.ended_at)):
        best[row.endpoint_hash or row.worker, row.repeat] = row
    return list(best.values())


def _labels(rows: Sequence[Any]) -> dict[str, Any]:
    return {
        "ids": tuple(str(row.id) for row in rows),
        "requests": tuple(str(row.request_id) for row in rows),
        "texts": tuple(row.text for row in rows),
        "episodes": tuple(str(row.episode_id or row.id) for row in rows),
        "tasks": tuple(row.task for row in rows),
        "splits": tuple(row.split for row in rows),
        "origins": tuple(row.origin for row in rows),
        "moments": tuple(row.decided_at for row in rows),
        "rates": tuple(row.audit_rate for row in rows),
    }


def _pages(
    connection: Connection,
    project: str | None,
    origins: Collection[Origin],
    window: Window,
    tags: Collection[str],
    learn_only: bool,
    size: int,
) -> Iterator[Sequence[Any]]:
    d, r = DECISION.c, REQUEST.c
    columns = (
        d.id, d.request_id, d.episode_id, d.origin, d.decided_at, d.audit_rate, r.text, r.task, r.split,
    )  # fmt: skip
    joined = DECISION.join(REQUEST, and_(r.id == d.request_id, r.project_id == d.project_id))
    query = select(*columns).select_from(joined).where(
        of_project(DECISION, project), d.origin.in_(list(origins)), in_time(d.id, window.since, window.until)
    )  # fmt: skip
    if tags:
        query = query.where(r.tags.overlap(list(tags)))
    if learn_only:
        query = query.where(r.learn)
    after: UUID | None = None
    while True:
        page = query if after is None else query.where(d.id > after)
        rows = connection.execute(page.order_by(d.id).limit(size)).all()
        if not rows:
            return
        yield rows
        after = rows[-1].id


def _outcomes(connection: Connection, ids: Sequence[UUID]) -> dict[UUID, list[Any]]:
    o, c = OUTCOME.c, CALL.c
    columns = (
        o.decision_id, o.call_id, o.worker, o.status, o.score, o.cost, o.latency_ms, o.ended_at,
        c.endpoint_hash, c.repeat,
    )  # fmt: skip
    joined = OUTCOME.join(CALL, and_(c.id == o.call_id, c.decision_id == o.decision_id))
    query = select(*columns).select_from(joined).where(o.decision_id.in_(ids), o.call_id.is_not(None))
    by_decision: dict[UUID, list[Any]] = defaultdict(list)
    for row in connection.execute(query):
        by_decision[row.decision_id].append(row)
    return by_decision


def _judged(connection: Connection, rows: Sequence[Any], judge: str | None) -> dict[UUID, float]:
    """Judge's scores by call."""
    if judge is None:
        return {}
    j = JUDGE_SCORE.c
    query = select(j.call_id, j.score).where(
        j.judge_hash == judge, j.decision_id.in_([row.id for row in rows]), j.score.is_not(None)
    )
    return {row.call_id: row.score for row in connection.execute(query)}


def _mean(values: Floats) -> Floats:
    """Over the last axis, of what is known."""
    known = np.isfinite(values)
    counts = known.sum(axis=2)
    sums = np.where(known, values, 0.0).sum(axis=2)
    means = np.full(counts.shape, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means
