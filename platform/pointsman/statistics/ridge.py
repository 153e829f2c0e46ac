"""Reward models in closed form: a ridge regression per worker, cross-fitted or fitted on the past only.

β = (X'X + κI)⁻¹ X'y on centred data, the intercept unpenalised. An estimator needs a q̂ that has not seen the row it
speaks about: `cross_fitted` leaves out the row's fold (episodes stay together), for a fixed log; `past_only` uses
earlier rows, which is what an anytime bound under adaptive logging needs.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.random import Generator

from pointsman.errors import UserError
from pointsman.statistics.arrays import Booleans, Floats, Integers
from pointsman.statistics.episodes import Episodes, episode_numbers

PENALTY = 1.0


def cross_fitted(
    features: Floats,
    actions: Integers,
    rewards: Floats,
    workers: int,
    rng: Generator,
    *,
    episodes: Episodes | None = None,
    folds: int = 5,
    penalty: float = PENALTY,
) -> Floats:
    """q̂ [n, workers] in [0, 1]: every row's predictions come from models of the other folds."""
    units = np.arange(len(actions)) if episodes is None else episode_numbers(episodes)
    count = int(units.max()) + 1 if len(units) else 0
    if count < folds:
        raise UserError(f"cross-fitting: expected at least {folds} episodes, got {count}")
    fold = rng.permutation(count)[units] % folds
    predictions = np.empty((len(actions), workers))
    for number in range(folds):
        held = fold == number
        predictions[held] = _fit_predict(features, actions, rewards, workers, ~held, features[held], penalty)
    return predictions


def past_only(
    features: Floats, actions: Integers, rewards: Floats, workers: int, *, blocks: int = 20, penalty: float = PENALTY
) -> Floats:
    """q̂ [n, workers]: each of `blocks` stretches of the log is predicted from everything before it, ½ in the first.

    Rows are in time's order. An episode that spans two blocks leaks a little; give one row per episode where that
    matters.
    """
    n = len(actions)
    predictions = np.full((n, workers), 0.5)
    edges = np.linspace(0, n, blocks + 1).astype(int)
    for begin, end in pairwise(edges[1:]):
        known = np.arange(n) < begin
        predictions[begin:end] = _fit_predict(features, actions, rewards, workers, known, features[begin:end], penalty)
    return predictions


def ridge(features: Floats, targets: Floats, penalty: float = PENALTY) -> tuple[Floats, float]:
    """Coefficients [d] and intercept."""
    centre, mean = features.mean(axis=0), float(targets.mean())
    centred = features - centre
    gram = centred.T @ centred + penalty * np.eye(features.shape[1])
    coefficients: Floats = np.linalg.solve(gram, centred.T @ (targets - mean))
    return coefficients, mean - float(centre @ coefficients)


def _fit_predict(
    features: Floats, actions: Integers, rewards: Floats, workers: int, known: Booleans, ask: Floats, penalty: float
) -> Floats:
    """Predictions [len(ask), workers]; a worker that was never chosen gets the mean reward."""
    everyone = float(rewards[known].mean()) if known.any() else 0.5
    predictions = np.full((len(ask), workers), everyone)
    for worker in range(workers):
        rows = known & (actions == worker)
        if rows.any():
            coefficients, intercept = ridge(features[rows], rewards[rows], penalty)
            predictions[:, worker] = ask @ coefficients + intercept
    clipped: Floats = np.clip(predictions, 0, 1)
    return clipped
