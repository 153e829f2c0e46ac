"""A recorded data set's folder as a reward table; several repeats of one cell are averaged.

The layout is that of `pointsman import` (`pointsman.replay.source`); prices come from `models.json`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from distill.table import Arm, RewardTable
from pointsman.pool import Worker
from pointsman.replay.models import read_models, replay_pool
from pointsman.replay.source import Folder


def read_table(path: Path) -> RewardTable:
    """Every query that has an outcome. Raises `UserError` naming the first fault of the files."""
    folder = Folder(path)
    queries = list(folder.queries())
    place = {query.id: number for number, query in enumerate(queries)}
    cells: dict[tuple[int, str], list[float]] = {}
    for outcome in folder.outcomes(place):
        cells.setdefault((place[outcome.query_id], outcome.model), []).append(outcome.score)
    names = sorted({name for _, name in cells})
    pool = replay_pool(names, read_models(path), path.name)
    column = {worker.name: number for number, worker in enumerate(pool.workers)}
    rewards = np.full((len(queries), len(names)), np.nan)
    for (row, name), scores in cells.items():
        rewards[row, column[name]] = sum(scores) / len(scores)
    table = RewardTable(
        ids=tuple(query.id for query in queries),
        texts=tuple(query.text for query in queries),
        arms=tuple(_arm(worker) for worker in pool.workers),
        rewards=rewards,
        tasks=tuple(query.task for query in queries),
        splits=tuple(query.split for query in queries),
    )
    return table.rows(~np.isnan(rewards).all(axis=1))


def _arm(worker: Worker) -> Arm:
    price = None if worker.price is None else float(worker.price.input + worker.price.output)
    return Arm(worker.endpoint_hash, worker.name, worker.card, price)
