"""Rows of the log as a search reads them: full-information rows of this pool's endpoints, or traffic with rewards.

A row counts where every worker of the pool has a reward at its present endpoint; others are left out and counted.
Answers that were recorded elsewhere (origin `replay`) have no address: they are taken by the worker's name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, and_, select

from harness.gateway.surfaces.base import Surface
from harness.gateway.surfaces.served import SURFACES
from harness.optimise.pseudo import pseudo_outcomes
from harness.optimise.rows import Comment, Floats, Row, Rows
from harness.routing.base import Ask
from pointsman.errors import RequestError, UserError
from pointsman.pool import Worker
from pointsman.probing.matrix import Matrix, full_information
from pointsman.queries.scope import DECISION, FEEDBACK, REQUEST, of_project, standing
from pointsman.rewards.spec import RewardSpec
from pointsman.statistics.off_policy import LoggedChoices
from pointsman.tables import METADATA
from pointsman.words import Origin

REWARD = METADATA.tables["reward"]
PAGE = 2_000
_BY_NAME: Mapping[str, Surface] = {surface.name: surface for surface in SURFACES.values()}


@dataclass(frozen=True, eq=False)
class Read:
    """Rows, and how many rows were left out for what reason. `judge_units`: a judge's scores are among the rewards."""

    rows: Rows
    left_out: Mapping[str, int]
    judge_units: bool = False


def read_full(
    connection: Connection,
    project: str,
    workers: Sequence[Worker],
    origins: Collection[Origin],
    *,
    tags: Collection[str] = (),
    spec: RewardSpec | None = None,
    judge: str | None = None,
) -> Read:
    """Full-information rows, oldest first. A failed call earned 0: a router that chooses such a worker gets that."""
    by_endpoint = {worker.endpoint_hash: worker.name for worker in workers}
    recorded = "replay" in origins
    matrix = full_information(
        connection,
        project,
        origins,
        workers=None if recorded else by_endpoint,
        spec=spec,
        judge=judge,
        failures="poor",
        tags=tags,
    )
    columns = _columns(matrix, workers, recorded)
    scores = matrix.scores[:, columns, :]
    means, costs = _means(scores), _means(matrix.costs[:, columns, :])
    keep = [i for i in range(len(matrix)) if np.isfinite(means[i]).all() and matrix.texts[i]]
    details = _details(connection, project, [matrix.requests[i] for i in keep])
    rows = tuple(_row(matrix, i, details) for i in keep)
    first, again = _runs(scores[keep], means[keep])
    made = Rows(tuple(worker.name for worker in workers), rows, first, costs[keep], "full", again)
    left = len(matrix) - len(keep)
    reasons = {"not every worker has a reward, or the text is not stored": left} if left else {}
    return Read(made, reasons, matrix.judge_units)


def read_traffic(
    connection: Connection, project: str, workers: Sequence[Worker], spec_hash: str, rng: np.random.Generator
) -> Read:
    """Traffic whose reward is known, as doubly robust pseudo-outcomes: decisions that any worker could have had."""
    names = [worker.name for worker in workers]
    d, r, w = DECISION.c, REQUEST.c, REWARD.c
    joined = DECISION.join(REQUEST, r.id == d.request_id).join(
        REWARD, and_(w.outcome_id == d.id, w.spec_hash == spec_hash, w.value.is_not(None))
    )
    query = select(
        d.id, d.request_id, d.episode_id, d.decided_at, d.chosen, d.probabilities, w.value, r.text, r.task
    ).select_from(joined).where(
        of_project(DECISION, project), d.origin == "traffic", d.kind == "route", d.parent_id.is_(None),
        d.forced.is_(None), r.learn, r.text.is_not(None),
    )  # fmt: skip
    found = list(connection.execute(query.order_by(d.id)))
    kept = [row for row in found if row.chosen in names and all((row.probabilities or {}).get(n, 0) > 0 for n in names)]
    if not kept:
        raise UserError(
            "the log has no traffic with rewards that any worker could have had: rewards and exploration are needed"
        )
    log = LoggedChoices(
        np.array([_normal([row.probabilities[name] for name in names]) for row in kept]),
        np.array([names.index(row.chosen) for row in kept]),
        np.array([row.value for row in kept]),
        [str(row.episode_id or row.id) for row in kept],
    )
    rewards = pseudo_outcomes([row.text for row in kept], log, rng)
    details = _details(connection, project, [str(row.request_id) for row in kept])
    rows = tuple(
        _with(
            details.get(str(row.request_id)),
            str(row.id),
            str(row.episode_id or row.id),
            row.text,
            row.decided_at,
            row.task,
        )
        for row in kept
    )
    left = {"a worker could not have had it, or would not": len(found) - len(kept)} if len(found) > len(kept) else {}
    return Read(Rows(tuple(names), rows, rewards, np.full(rewards.shape, np.nan), "dr"), left)


@dataclass(frozen=True)
class _Details:
    context: str
    key: str | None
    comments: tuple[Comment, ...]


def _columns(matrix: Matrix, workers: Sequence[Worker], recorded: bool) -> NDArray[np.intp]:
    found = [_column(matrix, worker, recorded) for worker in workers]
    missing = [worker.name for worker, column in zip(workers, found, strict=True) if column is None]
    if missing:
        raise UserError(
            f"the log has no full-information rows of {', '.join(missing)} at the present endpoint: "
            "run `pointsman probe` or `pointsman audit` first"
        )
    return np.array(found, dtype=np.intp)


def _runs(scores: Floats, means: Floats) -> tuple[Floats, Floats | None]:
    """The first run of every cell (its mean where there was no first), and the second where anything was repeated."""
    if scores.shape[2] < 2:
        return means, None
    return np.where(np.isfinite(scores[:, :, 0]), scores[:, :, 0], means), scores[:, :, 1]


def _column(matrix: Matrix, worker: Worker, recorded: bool) -> int | None:
    """The worker's column: by endpoint, and of recorded answers by name."""
    if worker.endpoint_hash in matrix.workers:
        at = matrix.workers.index(worker.endpoint_hash)
        if np.isfinite(matrix.scores[:, at, :]).any():
            return at
    return matrix.names.index(worker.name) if recorded and worker.name in matrix.names else None


def _means(table: Floats) -> Floats:
    known = np.isfinite(table)
    counts = known.sum(axis=2)
    sums = np.where(known, table, 0.0).sum(axis=2)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _normal(probabilities: Sequence[float]) -> list[float]:
    total = sum(probabilities)
    return [value / total for value in probabilities]


def _row(matrix: Matrix, i: int, details: Mapping[str, _Details]) -> Row:
    found = details.get(matrix.requests[i])
    return _with(found, matrix.ids[i], matrix.episodes[i], matrix.texts[i] or "", matrix.moments[i], matrix.tasks[i])


def _with(details: _Details | None, identity: str, episode: str, text: str, moment: datetime, task: str | None) -> Row:
    known = details or _Details("", None, ())
    ask = Ask(text, known.context)
    return Row(identity, episode, ask, moment.timestamp(), task, known.key, known.comments)


def _details(connection: Connection, project: str, requests: Sequence[str]) -> dict[str, _Details]:
    """By request: what surrounded the ask, whose key it was, and what was said of its answers."""
    made: dict[str, _Details] = {}
    for start in range(0, len(requests), PAGE):
        ids = [UUID(one) for one in requests[start : start + PAGE]]
        comments = _comments(connection, project, ids)
        r = REQUEST.c
        query = select(r.id, r.key_id, r.surface, r.body).where(of_project(REQUEST, project), r.id.in_(ids))
        for row in connection.execute(query):
            key = None if row.key_id is None else str(row.key_id)
            made[str(row.id)] = _Details(_context(row.surface, row.body), key, comments.get(row.id, ()))
    return made


def _comments(connection: Connection, project: str, requests: Sequence[UUID]) -> dict[UUID, tuple[Comment, ...]]:
    d, f = DECISION.c, FEEDBACK.c
    query = (
        select(d.request_id, f.comment, f.key_id)
        .select_from(FEEDBACK.join(DECISION, and_(d.id == f.decision_id, d.project_id == f.project_id)))
        .where(of_project(FEEDBACK, project), d.request_id.in_(list(requests)), f.comment.is_not(None), standing())
        .order_by(f.id)
    )
    found: dict[UUID, list[Comment]] = {}
    for row in connection.execute(query):
        found.setdefault(row.request_id, []).append(
            Comment(row.comment, None if row.key_id is None else str(row.key_id))
        )
    return {request: tuple(comments) for request, comments in found.items()}


def _context(surface: str, body: Any) -> str:
    """What the router was shown around the ask, read from the stored body as the gateway reads it."""
    served = _BY_NAME.get(surface)
    if served is None or not isinstance(body, dict):
        return ""
    try:
        read = served.read(msgspec.json.encode(body), [], "", datetime.now(UTC))
    except RequestError:
        return ""
    context: str = read.request.conversation.context
    return context
