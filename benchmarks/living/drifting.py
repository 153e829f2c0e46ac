"""A pool that changes under the router: workers are replaced, the flywheel earns its routing again.

Requests come in clusters, a worker's quality differs by cluster; in a changing turn one worker becomes another one, as
if its provider had changed the model (a new endpoint: rewards start anew, the α ledger too). Each turn has audit rows:
from the first half a candidate is fitted (shrunk means per cluster), on the second it is certified against what
serves, and how far what serves is from the oracle is bounded. A candidate serves by its certificate alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointsman.statistics.alpha_ledger import AlphaLedger
from pointsman.statistics.arrays import Floats
from pointsman.statistics.oracle import distance_bound
from pointsman.statistics.paired import paired_lower_bound


@dataclass(frozen=True)
class World:
    clusters: int = 6
    workers: int = 4
    audits: int = 1_200
    change: float = 0.3
    shrink: float = 20.0
    turns: int = 20
    alpha: float = 0.05


@dataclass(frozen=True)
class Turn:
    """True regrets of what serves after the turn, of the first router kept for ever, and the certified ε."""

    regret: float
    kept: float
    bound: float
    promoted: bool
    worse: bool


def drift(world: World, rng: np.random.Generator) -> list[Turn]:
    """One life; the routers are a worker per cluster."""
    quality = rng.uniform(0.3, 0.95, (world.clusters, world.workers))
    sums, rows = np.zeros_like(quality), np.zeros_like(quality)
    serving = np.full(world.clusters, int(quality.mean(axis=0).argmax()))
    first, ledger, told = serving.copy(), AlphaLedger(world.alpha), []
    for number in range(world.turns):
        if number and rng.random() < world.change:
            changed = int(rng.integers(world.workers))
            quality[:, changed] = rng.uniform(0.3, 0.95, world.clusters)
            sums[:, changed] = rows[:, changed] = 0
            ledger = AlphaLedger(world.alpha, str(number))
        told.append(_turn(world, quality, sums, rows, serving, first, ledger, rng))
        ledger = told[-1][1]
        serving = told[-1][2]
    return [turn for turn, _, _ in told]


def _turn(
    world: World, quality: Floats, sums: Floats, rows: Floats, serving: np.ndarray, first: np.ndarray,
    ledger: AlphaLedger, rng: np.random.Generator,
) -> tuple[Turn, AlphaLedger, np.ndarray]:  # fmt: skip
    cluster, outcomes = _audit(world, quality, rng)
    half = world.audits // 2
    np.add.at(sums, cluster[:half], outcomes[:half])
    np.add.at(rows, cluster[:half], np.ones_like(outcomes[:half]))
    candidate = _fitted(world, sums, rows)
    before, promoted = serving, False
    held, table = cluster[half:], outcomes[half:]
    if (candidate != serving).any():
        alpha, ledger = ledger.open_certification()
        index = np.arange(len(held))
        gap = paired_lower_bound(table[index, candidate[held]], table[index, serving[held]], alpha, horizon=len(held))
        promoted = gap.low > 0
        serving = candidate if promoted else serving
    fresh_cluster, fresh = _audit(world, quality, rng)
    policy = np.eye(world.workers)[serving[fresh_cluster]]
    bound = distance_bound(fresh, policy, world.alpha, horizon=len(fresh)).high
    worse = promoted and _value(quality, serving) < _value(quality, before)
    told = Turn(_regret(quality, serving), _regret(quality, first), float(bound), promoted, worse)
    return told, ledger, serving


def _audit(world: World, quality: Floats, rng: np.random.Generator) -> tuple[np.ndarray, Floats]:
    cluster = rng.integers(world.clusters, size=world.audits)
    return cluster, (rng.random((world.audits, world.workers)) < quality[cluster]).astype(float)


def _fitted(world: World, sums: Floats, rows: Floats) -> np.ndarray:
    """The best worker of each cluster by means that are drawn toward the worker's own overall mean."""
    overall = (sums.sum(axis=0) + 1) / (rows.sum(axis=0) + 2)
    return ((sums + world.shrink * overall) / (rows + world.shrink)).argmax(axis=1)


def _value(quality: Floats, router: np.ndarray) -> float:
    return float(quality[np.arange(len(router)), router].mean())


def _regret(quality: Floats, router: np.ndarray) -> float:
    """To the oracle that knows every quality, not to the luckier one that knows every outcome."""
    return float(quality.max(axis=1).mean()) - _value(quality, router)
