"""Cost at matched quality: the cheapest mix that is no more than a margin below the best single worker.

A mix decides by score - λ · price. λ is the largest whose lower bound against the best single worker stays
above the margin on rows held apart from training; what it costs and earns is then told on the judged rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distill.arrays import Floats
from distill.classic.means import arm_means
from distill.evaluate.values import picks, realised
from pointsman.statistics.episodes import paired_bootstrap

PRICE_STEPS = 40


@dataclass(frozen=True, eq=False)
class Mix:
    """`earned` and `paid` per judged row, `paid` in the unit of `prices`; `weight` is λ."""

    weight: float
    earned: Floats
    paid: Floats


def price_weights(scores: Floats, prices: Floats) -> Floats:
    """λ from 0 to where price alone decides, on a geometric grid."""
    widest = float(scores.max() - scores.min())
    step = float(np.ptp(prices)) or 1.0
    top = 10 * max(widest, 1e-6) / step
    return np.concatenate([[0.0], np.geomspace(top * 1e-4, top, PRICE_STEPS)])


def cheapest_mix(
    training_scores: Floats,
    training_rewards: Floats,
    scores: Floats,
    rewards: Floats,
    prices: Floats,
    *,
    margin: float = 0.01,
    seed: int = 1,
) -> Mix:
    """λ chosen on `training_scores` [m, k] (out of fold), applied to `scores` [n, k]."""
    single = int(arm_means(training_rewards).argmax())
    chosen = 0.0
    for weight in price_weights(training_scores, prices):
        earned = realised(training_rewards, training_scores - weight * prices)
        rng = np.random.default_rng(seed)
        bound = paired_bootstrap(earned, training_rewards[:, single], rng, draws=300)
        if bound.low > -margin:
            chosen = float(weight)
    decided = scores - chosen * prices
    return Mix(chosen, realised(rewards, decided), prices[picks(decided)])
