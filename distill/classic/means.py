"""Shrunk means: what each arm earns on each task or cluster, with little data pulled toward its overall mean."""

from __future__ import annotations

import numpy as np

from distill.arrays import Floats

STRENGTH = 20.0


def arm_means(rewards: Floats) -> Floats:
    """Each arm's mean over the requests it was tried on, [k]; an arm never tried has the mean of the others."""
    tried = ~np.isnan(rewards)
    counts = tried.sum(axis=0)
    sums = np.where(tried, rewards, 0).sum(axis=0)
    overall = sums.sum() / max(counts.sum(), 1)
    result: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), overall)
    return result


def shrunk_means(shares: Floats, rewards: Floats, strength: float = STRENGTH) -> Floats:
    """Means by group [t, k] = (Σ share · reward + strength · arm's mean) / (Σ share + strength).

    `shares` [n, t] says how much of each request belongs to each group (rows of a task posterior, or 0 and
    1); NaN rewards count nowhere. Empirical Bayes with a prior worth `strength` requests.
    """
    tried = (~np.isnan(rewards)).astype(np.float64)
    weights = shares.T @ tried
    sums = shares.T @ np.where(tried > 0, rewards, 0)
    result: Floats = (sums + strength * arm_means(rewards)) / (weights + strength)
    return result
