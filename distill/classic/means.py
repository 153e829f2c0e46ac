"""Shrunk means: what each arm earns on each task or cluster, with little data pulled toward its overall mean."""

from __future__ import annotations

import numpy as np

from distill.arrays import Floats
from distill.mathematics import cell_weights

STRENGTH = 20.0


def arm_means(rewards: Floats, weights: Floats | None = None) -> Floats:
    """Each arm's mean over the requests it was tried on, [k]; an arm never tried has the mean of the others.

    `weights` [n, k] say what each reward counts; by default all count alike.
    """
    counted = cell_weights(rewards, weights)
    totals = counted.sum(axis=0)
    sums = (counted * np.nan_to_num(rewards)).sum(axis=0)
    overall = sums.sum() / max(totals.sum(), 1e-12)
    result: Floats = np.where(totals > 0, sums / np.where(totals > 0, totals, 1), overall)
    return result


def shrunk_means(shares: Floats, rewards: Floats, strength: float = STRENGTH, weights: Floats | None = None) -> Floats:
    """Means by group [t, k] = (Σ share · reward + strength · arm's mean) / (Σ share + strength).

    `shares` [n, t] says how much of each request belongs to each group (rows of a task posterior, or 0 and
    1); NaN rewards count nowhere, others by `weights` [n, k]. Empirical Bayes with a prior worth `strength`
    requests.
    """
    counted = cell_weights(rewards, weights)
    totals = shares.T @ counted
    sums = shares.T @ (counted * np.nan_to_num(rewards))
    result: Floats = (sums + strength * arm_means(rewards, weights)) / (totals + strength)
    return result
