"""Two routers on the same items: the mean difference with a betting interval, and the evidence that it is above 0.

Differences of two values in [0, 1] lie in [−1, 1] and are bet on as (1 + difference)/2; formulas and assumptions are in
`bounded_mean`. Items answered by both routers are paired, so what makes an item hard for both costs no width. Rows of
one episode are averaged first.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import ArrayLike

from pointsman.statistics.arrays import Floats, Interval, level, some, within
from pointsman.statistics.bounded_mean import betting_interval, log_capital, lower_bound
from pointsman.statistics.episodes import Episodes, episode_means


def differences(new: ArrayLike, old: ArrayLike, episodes: Episodes | None = None) -> Floats:
    """new − old per episode, for values in [0, 1]."""
    gap = within(new, 0, 1, "new values") - within(old, 0, 1, "old values")
    return some(episode_means(gap, episodes), "paired comparison")


def paired_interval(
    new: ArrayLike,
    old: ArrayLike,
    alpha: float = 0.05,
    *,
    episodes: Episodes | None = None,
    horizon: int | None = None,
) -> Interval:
    """Two-sided interval of the mean difference; `horizon` for a set of known size that is looked at once."""
    return betting_interval(differences(new, old, episodes), alpha, support=(-1.0, 1.0), horizon=horizon)


def paired_lower_bound(
    new: ArrayLike,
    old: ArrayLike,
    alpha: float = 0.05,
    *,
    episodes: Episodes | None = None,
    horizon: int | None = None,
) -> Interval:
    """One-sided: with probability 1 − α the new router's mean exceeds the old one's by at least `low`."""
    gap = differences(new, old, episodes)
    low = 2 * float(lower_bound((1 + gap) / 2, level(alpha), horizon)) - 1
    return Interval(float(gap.mean()), low, 1.0, len(gap), alpha, "betting, one-sided")


def paired_p_value(new: ArrayLike, old: ArrayLike, alpha: float = 0.05, *, episodes: Episodes | None = None) -> float:
    """An anytime-valid p-value of H0: the mean difference is 0 or less; `alpha` only tunes the bets.

    1 over the largest capital so far (Ville): P(p ≤ a at any moment) ≤ a.
    """
    capital = log_capital((1 + differences(new, old, episodes)) / 2, 0.5, level(alpha))
    return float(exp(-max(0.0, float(np.max(capital)))))
