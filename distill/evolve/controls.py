"""Controls: what a result must beat to mean anything, at equal cost.

Shuffled θ: the found change with its entries permuted (same norm, no knowledge). Random search: as many
candidates as the search evaluated, drawn around the start at its first step size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distill.arrays import Floats
from distill.evolve.replay import Problem


@dataclass(frozen=True)
class Controls:
    """Mean held-out rewards."""

    start: float
    evolved: float
    shuffled: float
    random_search: float


def run_controls(
    train: Problem, held_out: Problem, start: Floats, chosen: Floats, *, evaluations: int, sigma: float, seed: int
) -> Controls:
    rng = np.random.default_rng([seed, 2])
    shuffled = start + rng.permutation(chosen - start)
    found = random_search(train, start, evaluations=evaluations, sigma=sigma, rng=rng)

    def value(point: Floats) -> float:
        return float(held_out.rewards(point).mean())

    return Controls(value(start), value(chosen), value(shuffled), value(found))


def random_search(
    train: Problem, start: Floats, *, evaluations: int, sigma: float, rng: np.random.Generator, at_once: int = 32
) -> Floats:
    """The fittest of `evaluations` draws from N(start, σ²), the start among them."""
    best, best_fitness = start, float(train.fitness(start[None], 0).shaped[0])
    for first in range(0, evaluations, at_once):
        size = min(at_once, evaluations - first)
        candidates = start + sigma * rng.standard_normal((size, len(start)))
        fitness = train.fitness(candidates, 0).shaped
        winner = int(np.nanargmax(fitness)) if np.isfinite(fitness).any() else 0
        if fitness[winner] > best_fitness:
            best, best_fitness = candidates[winner], float(fitness[winner])
    return best
