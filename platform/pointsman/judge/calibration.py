"""What a judge's scores say of the truth: each worker's mean verified score, with an interval (PPI++).

Rows that have both a verifier's score and the judge's correct the judge; the rest, which have the judge's alone,
narrow the interval. That holds where the verified rows are a random sample of all of them: rows of one origin, one
kind of request, verified at random. A judge's bias may be as large as it likes, but not differ between the two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table, and_, func, select

from pointsman.queries.scope import DECISION, OUTCOME, REQUEST, of_project
from pointsman.tables import METADATA
from pointsman.words import Origin

if TYPE_CHECKING:
    from pointsman.statistics.arrays import Interval

JUDGE_SCORE: Table = METADATA.tables["judge_score"]


@dataclass(frozen=True)
class Calibrated:
    """One worker. `judge_units` is the judge's own mean, for comparison; `verified` of `rows` rows have the truth."""

    worker: str
    mean: Interval
    judge_units: float
    verified: int
    rows: int


def calibrate(
    connection: Connection,
    project: str | None,
    judge_hash: str,
    origin: Origin,
    *,
    tags: Collection[str] = (),
    alpha: float = 0.05,
) -> dict[str, Calibrated]:
    """By worker, from the rows of one origin (and of requests with one of `tags`). One number per episode enters."""
    from pointsman.statistics.judged import ppi_mean

    made: dict[str, Calibrated] = {}
    for worker, pairs in _pairs(connection, project, judge_hash, origin, tags).items():
        truth = [known for known, _ in pairs if known is not None]
        judge = [judged for known, judged in pairs if known is not None]
        others = [judged for known, judged in pairs if known is None]
        mean = ppi_mean(truth, judge, others, alpha)
        made[worker] = Calibrated(worker, mean, fmean(judged for _, judged in pairs), len(truth), len(pairs))
    return made


def _pairs(
    connection: Connection, project: str | None, judge_hash: str, origin: Origin, tags: Collection[str]
) -> dict[str, list[tuple[float | None, float]]]:
    """By worker, an episode's mean verified score (None where it has none) and mean judge's score."""
    j, o, d = JUDGE_SCORE.c, OUTCOME.c, DECISION.c
    episode: Any = func.coalesce(d.episode_id, d.id)
    joined = (
        JUDGE_SCORE.join(OUTCOME, and_(o.call_id == j.call_id, o.decision_id == j.decision_id))
        .join(DECISION, d.id == j.decision_id)
        .join(REQUEST, REQUEST.c.id == d.request_id)
    )
    query = (
        select(j.worker, func.avg(o.score).label("truth"), func.avg(j.score).label("judge"))
        .select_from(joined)
        .where(j.judge_hash == judge_hash, j.score.is_not(None), d.origin == origin, of_project(DECISION, project))
        .group_by(j.worker, episode)
        .order_by(j.worker, episode)
    )
    if tags:
        query = query.where(REQUEST.c.tags.overlap(list(tags)))
    pairs: dict[str, list[tuple[float | None, float]]] = defaultdict(list)
    for row in connection.execute(query):
        pairs[row.worker].append((row.truth, row.judge))
    return pairs
