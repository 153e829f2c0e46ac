"""How far is a router from the oracle of its pool? From full-information rows, which give every worker's utility.

Per request G = max_a U_a − Σ_a π(a) U_a, with U in [0, 1]. E[max of noisy outcomes] ≥ max of expectations, so the
mean of G bounds the distance to the per-request oracle from above, and a betting upper bound of it is a certificate:
"within ε of the oracle of this pool". Luck makes it large where outcomes are noisy. Where requests were repeated, the
arg max of one run valued on another is the value of a policy, hence at most the oracle's: a lower estimate of the
distance. The truth lies between the two.

Assumes: audit rows chosen at random at a known rate, every worker on every row, runs independent given the request.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pointsman.errors import UserError
from pointsman.statistics.arrays import Floats, Interval, level, normal_interval, some, within
from pointsman.statistics.bounded_mean import upper_bound
from pointsman.statistics.episodes import Episodes, episode_means
from pointsman.statistics.off_policy import distributions


def utility(rewards: ArrayLike, costs: ArrayLike, price: float, cap: float) -> Floats:
    """U = reward − price·cost, moved and scaled to [0, 1]; costs above `cap` USD count as the cap."""
    if price < 0 or cap <= 0:
        raise UserError(f"utility: expected a price of 0 or more and a cap above 0, got {price:g} and {cap:g}")
    paid = np.clip(np.asarray(costs, dtype=np.float64), 0, cap)
    return (within(rewards, 0, 1, "rewards") + price * (cap - paid)) / (1 + price * cap)


def policy_values(utilities: Floats, policy: Floats) -> Floats:
    """What `policy` [n, K] earns on every row of `utilities` [n, K]: exact, no weights."""
    earned: Floats = (distributions(policy, "policy") * utilities).sum(axis=1)
    return earned


def distance_bound(
    utilities: ArrayLike,
    policy: Floats,
    alpha: float = 0.05,
    *,
    episodes: Episodes | None = None,
    horizon: int | None = None,
) -> Interval:
    """[0, ε]: with probability 1 − α the policy is within ε of the oracle; `estimate` is the mean of G."""
    table = within(utilities, 0, 1, "utilities")
    gaps = some(episode_means(table.max(axis=1) - policy_values(table, policy), episodes), "audit rows")
    high = float(upper_bound(gaps, level(alpha), horizon))
    return Interval(float(gaps.mean()), 0.0, high, len(gaps), alpha, "betting on the maximum of outcomes")


def distance_lower(
    first: ArrayLike, second: ArrayLike, policy: Floats, alpha: float = 0.05, *, episodes: Episodes | None = None
) -> Interval:
    """The cross-fitted lower estimate of the distance, from two independent runs [n, K], each choosing for the other.

    It may be negative: then nothing shows that a better choice was possible. The interval is normal.
    """
    one, two = within(first, 0, 1, "first run"), within(second, 0, 1, "second run")
    if one.shape != two.shape:
        raise UserError(f"oracle: expected two runs of one shape, got {one.shape} and {two.shape}")
    gains = [
        _chosen_by(chooser, valued) - policy_values(valued, policy) for chooser, valued in ((one, two), (two, one))
    ]
    units = some(episode_means((gains[0] + gains[1]) / 2, episodes), "repeated rows")
    return normal_interval(units, alpha, "cross-fitted over two runs")


def _chosen_by(chooser: Floats, valued: Floats) -> Floats:
    """The value in one run of what was best in the other; ties share."""
    best = chooser == chooser.max(axis=1, keepdims=True)
    shared: Floats = (best * valued).sum(axis=1) / best.sum(axis=1)
    return shared
