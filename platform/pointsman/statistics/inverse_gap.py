"""Exploration by inverse gap weighting (SquareCB; Foster & Rakhlin, arXiv 2002.04926, algorithm 1).

    p(a) = 1/(K + γ(q̂(b) − q̂(a)))  for a ≠ b = arg max q̂,     p(b) = the rest

Explicit probabilities that explore what looks nearly as good, once there is a reward model q̂; K counts eligible
workers. γ = 0 is uniform; the larger, the greedier. p(b) ≥ 1/K always.
"""

from __future__ import annotations

import numpy as np

from pointsman.errors import UserError
from pointsman.statistics.arrays import Booleans, Floats


def inverse_gap(q: Floats, gamma: float, eligible: Booleans | None = None) -> Floats:
    """Probabilities [n, K] for predicted rewards [n, K]; ineligible workers get 0, ties go to the first."""
    if gamma < 0:
        raise UserError(f"inverse gap weighting: gamma must be 0 or more, got {gamma:g}")
    allowed = np.ones(q.shape, dtype=np.bool_) if eligible is None else eligible
    if not allowed.any(axis=1).all():
        raise UserError("inverse gap weighting: a row has no eligible worker")
    seen = np.where(allowed, q, -np.inf)
    best = seen.argmax(axis=1)[:, None]
    gaps = np.take_along_axis(seen, best, axis=1) - np.where(allowed, q, 0.0)
    shares = np.where(allowed, 1 / (allowed.sum(axis=1, keepdims=True) + gamma * np.where(allowed, gaps, 0.0)), 0.0)
    np.put_along_axis(shares, best, 0.0, axis=1)
    np.put_along_axis(shares, best, 1 - shares.sum(axis=1, keepdims=True), axis=1)
    return shares
