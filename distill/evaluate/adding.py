"""What a new worker brings without retraining: by its card alone, and by its rewards on probes.

Per worker w the router is fitted without w (V_without), then w is added to it (V_added), and fitted with w
(V_retrained). The ratio is Σ (V_added - V_without) ÷ Σ (V_retrained - V_without): 0 is what never using a
new worker gives, 1 what retraining gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distill.arrays import Floats, Integers
from distill.router_model.fingerprint import adaptive_probes


@dataclass(frozen=True, eq=False)
class MixtureFold:
    """A mixture router on one fold: type shares of the judged rows, values [J, k], and both sets of rewards.

    `types` [m] are those of the training rows; `cards` [k, e] unit embeddings of the workers' cards.
    """

    shares: Floats
    values: Floats
    rewards: Floats
    types: Integers
    training: Floats
    cards: Floats


@dataclass(frozen=True, eq=False)
class Added:
    """Rewards per judged row, summed over workers: gains [draws, n] of adding, gain [n] of retraining.

    `harmful` is the share of (worker, draw) pairs whose mean gain is below 0; `without` the mean value of
    the routers without the worker.
    """

    gains: Floats
    retrained: Floats
    harmful: Floats
    without: float


def add_by_probes(fold: MixtureFold, count: int, draws: int, seed: int) -> Added:
    """Each worker in turn, `draws` samples of `count` probes from the training rows."""
    values = [_values_by_probes(fold, worker, count, draws, seed) for worker in range(fold.values.shape[1])]
    return _added(fold, values)


def add_by_card(fold: MixtureFold) -> Added:
    """Each worker in turn, its values guessed from the likeness of its card to the others'."""
    from distill.router_model.fingerprint import values_from_card

    found = []
    for worker in range(fold.values.shape[1]):
        others = np.delete(np.arange(fold.values.shape[1]), worker)
        guess = values_from_card(fold.cards[worker], fold.cards[others], fold.values[:, others].T)
        found.append([guess.mean])
    return _added(fold, found)


def _values_by_probes(fold: MixtureFold, worker: int, count: int, draws: int, seed: int) -> list[Floats]:
    others = np.delete(np.arange(fold.values.shape[1]), worker)
    known, held = fold.training[:, others], fold.values[:, others].T
    found = []
    for draw in range(draws):
        rng = np.random.default_rng([seed, worker, draw])
        _, values = adaptive_probes(fold.types, fold.training[:, worker], known, held, count, rng)
        found.append(values.mean)
    return found


def _added(fold: MixtureFold, values: list[list[Floats]]) -> Added:
    rows = np.arange(len(fold.rewards))
    scores = fold.shares @ fold.values
    full = fold.rewards[rows, scores.argmax(axis=1)]
    gains = np.zeros((len(values[0]), len(rows)))
    retrained, without, harmful = np.zeros(len(rows)), 0.0, []
    for worker, guesses in enumerate(values):
        rest = scores.copy()
        rest[:, worker] = -np.inf
        picked = rest.argmax(axis=1)
        before = fold.rewards[rows, picked]
        retrained += full - before
        without += float(before.mean()) / len(values)
        for draw, guess in enumerate(guesses):
            chosen = np.where(fold.shares @ guess > rest.max(axis=1), worker, picked)
            gain = fold.rewards[rows, chosen] - before
            gains[draw] += gain
            harmful.append(gain.mean() < 0)
    return Added(gains, retrained, np.array(harmful, np.float64), without)


@dataclass(frozen=True)
class Ratio:
    value: float
    low: float
    high: float
    harmful: float
    without: float


def pooled_ratio(parts: list[Added], rng: np.random.Generator, *, resamples: int = 2000, alpha: float = 0.05) -> Ratio:
    """Over the rows of all folds; the interval resamples rows, and one draw of probes per fold."""
    retrained = np.concatenate([part.retrained for part in parts])
    mean = np.concatenate([part.gains.mean(axis=0) for part in parts])
    found = []
    for _ in range(resamples):
        gains = np.concatenate([part.gains[rng.integers(len(part.gains))] for part in parts])
        rows = rng.integers(0, len(retrained), len(retrained))
        found.append(gains[rows].sum() / _away_from_zero(float(retrained[rows].sum())))
    low, high = np.quantile(found, [alpha / 2, 1 - alpha / 2])
    harmful = float(np.concatenate([part.harmful for part in parts]).mean())
    without = float(np.mean([part.without for part in parts]))
    return Ratio(float(mean.sum() / _away_from_zero(float(retrained.sum()))), float(low), float(high), harmful, without)


def _away_from_zero(total: float) -> float:
    return total if abs(total) > 1e-9 else 1e-9
