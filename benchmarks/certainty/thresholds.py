"""Cheap-worker thresholds: how often the chosen one violates its limit, certified and by the naive rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointsman.statistics.arrays import Booleans, Floats
from pointsman.statistics.threshold import cheap_threshold


@dataclass(frozen=True)
class Violations:
    """Shares of repetitions above the limit, and the mean share of requests that may go to the cheap worker."""

    certified: float
    naive: float
    cheap_share: float
    oracle_share: float


def failure(score: Floats) -> Floats:
    """The cheap worker's chance to fail; scores are uniform on [0, 1]."""
    return 0.3 * (1 - score) ** 1.2 + 0.01


def rate_above(value: float) -> float:
    """P(failure | score ≥ value), exactly."""
    return 0.3 * (1 - value) ** 1.2 / 2.2 + 0.01


def violations(reps: int, n: int, limit: float, delta: float, rng: np.random.Generator) -> Violations:
    certified, naive, shares = 0, 0, 0.0
    for _ in range(reps):
        scores = rng.random(n)
        failed = rng.random(n) < failure(scores)
        found = cheap_threshold(scores, failed, limit, delta).value
        certified += found is not None and rate_above(found) > limit
        shares += 0 if found is None else 1 - found
        naive += rate_above(naive_threshold(scores, failed, limit)) > limit
    oracle = min(1.0, ((limit - 0.01) * 2.2 / 0.3) ** (1 / 1.2))
    return Violations(certified / reps, naive / reps, shares / reps, oracle)


def naive_threshold(scores: Floats, failed: Booleans, limit: float) -> float:
    """The loosest observed score above which the empirical rate is at most the limit; above 1 where there is none."""
    order = np.argsort(-scores)
    rates = failed[order].cumsum() / np.arange(1, len(scores) + 1)
    fine = np.flatnonzero(rates <= limit)
    return float(scores[order][fine[-1]]) if len(fine) else 1.0
