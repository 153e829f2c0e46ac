"""Doubly robust pseudo-outcomes: what traffic says of workers that were not asked, to search with.

    S_a = q̂_a + 1[a = A] (R − q̂_A) / max(p, `FLOOR`)

q̂ is cross-fitted by ridge regression, p the logged probability of the worker that was chosen. Without the floor S is an
unbiased estimate of every worker's reward whatever q̂ is (Dudík et al., arXiv 1103.4601, eq. 2); with it, nearly so,
at a bounded variance. Single rows are wild; means over rows are what a search compares. No certificate rests on them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.optimise.rows import Floats
from harness.optimise.teacher import DIMENSIONS, features, weighted
from pointsman.errors import UserError
from pointsman.statistics.off_policy import LoggedChoices
from pointsman.statistics.ridge import cross_fitted

FLOOR = 0.05
PROJECTED = 128
LEAST = 50


def pseudo_outcomes(texts: Sequence[str], log: LoggedChoices, rng: np.random.Generator) -> Floats:
    """S, shape (rows, workers); values may lie outside [0, 1]."""
    if len(texts) < LEAST:
        raise UserError(f"{len(texts)} logged decisions with a reward are too few: at least {LEAST} are needed")
    raw = features(texts)
    # A random projection keeps angles (Johnson & Lindenstrauss 1984) and makes the regression small.
    shown = weighted(raw, raw) @ rng.normal(size=(DIMENSIONS, PROJECTED)) / np.sqrt(PROJECTED)
    workers = log.probabilities.shape[1]
    predicted = cross_fitted(shown, log.actions, log.rewards, workers, rng, episodes=log.episodes)
    made = predicted.copy()
    at = np.arange(len(texts))
    correction = (log.rewards - predicted[at, log.actions]) / np.maximum(log.taken(log.probabilities), FLOOR)
    made[at, log.actions] += correction
    return made
