"""A bound on a policy's value from adaptively logged data that may be looked at at every moment.

Empirical-Bernstein confidence sequence on doubly robust pseudo-outcomes (Waudby-Smith, Wu, Ramdas, Karampatziakis &
Mineiro, arXiv 2210.10768, §2). With q̂ cut at k/w, φ = Σ_a π(a) q̂(a) + w (R − q̂(A)) never falls below −k, so with
ξ = φ/(k + 1) and the running mean ξ̂ ≤ 1/(k + 1) of earlier rows

    L_t = [Σ λξ − ln(1/α) − Σ (ξ − ξ̂)² ψ(λ)] / Σ (λ/(k + 1)),      ψ(λ) = −ln(1 − λ) − λ
    λ_t = √(2 ln(1/α) / (σ̂²_{t−1} · t ln(1 + t))) ≤ ½

is a lower bound of the policy's value at every t at once, and so is its running maximum. An upper bound is the mirror:
R → 1 − R, q̂ → 1 − q̂. The prior variance of ξ is that of a weighted reward under 1/p_min, p_min/4, where k + 1 = 1/p_min
(with ¼ the bound is useless for thousands of rows). `horizon` puts the bets' best at that n.

Assumes: p as drawn from and at least `p_min` wherever the target puts mass, a number known beforehand (the floor of
exploration); q̂ fitted on earlier rows only (`ridge.past_only`); rewards in [0, 1] with constant mean value. Weights
need no other bound. It pays only where exploration is aimed at the candidate: screen with it, certify with the gate.
"""

from __future__ import annotations

import numpy as np

from pointsman.errors import UserError
from pointsman.statistics.arrays import Floats, Interval, level, some
from pointsman.statistics.off_policy import LoggedChoices, distributions
from pointsman.statistics.overlap import require_overlap

LARGEST_BET = 0.5


def lower_path(
    log: LoggedChoices, target: Floats, q: Floats, alpha: float, p_min: float, horizon: int | None = None
) -> Floats:
    """L_t for every t (running maximum, at least 0)."""
    require_overlap(distributions(target, "target policy"), log.probabilities)
    if (np.where(target > 0, log.probabilities, 1.0) < p_min - 1e-12).any():
        raise UserError(f"anytime bound: some logged probabilities are below p_min = {p_min:g}")
    scale = 1 / p_min
    xi = some(_pseudo_outcomes(log, target, q, scale - 1), "anytime bound") / scale
    return np.maximum(np.maximum.accumulate(_bounds(xi, level(alpha), p_min, horizon)), 0)


def anytime_interval(
    log: LoggedChoices, target: Floats, q: Floats, alpha: float, p_min: float, horizon: int | None = None
) -> Interval:
    """Both bounds after the whole log, each at α/2."""
    mirrored = LoggedChoices(log.probabilities, log.actions, 1 - log.rewards, log.episodes)
    low = float(lower_path(log, target, q, alpha / 2, p_min, horizon)[-1])
    high = 1 - float(lower_path(mirrored, target, 1 - q, alpha / 2, p_min, horizon)[-1])
    estimate = float(_pseudo_outcomes(log, target, q, 1 / p_min - 1).mean())
    return Interval(estimate, low, high, len(log.rewards), alpha, "empirical-Bernstein DR, anytime")


def _pseudo_outcomes(log: LoggedChoices, target: Floats, q: Floats, k: float) -> Floats:
    """φ with q̂ cut at k/w for every worker, so that φ ≥ −k and stays unbiased."""
    limit = np.divide(k * log.probabilities, target, out=np.full_like(target, np.inf), where=target > 0)
    cut = np.minimum(q, limit)
    values: Floats = (target * cut).sum(axis=1) + log.weights(target) * (log.rewards - log.taken(cut))
    return values


def _bounds(xi: Floats, alpha: float, p_min: float, horizon: int | None) -> Floats:
    time = np.arange(1, len(xi) + 1, dtype=np.float64)
    means = np.minimum((p_min / 2 + np.cumsum(xi)) / (time + 1), p_min)
    before = np.concatenate([[p_min / 2], means[:-1]])
    surprise = (xi - before) ** 2
    variances = (p_min / 4 + np.cumsum(surprise)) / (time + 1)
    past = np.concatenate([[p_min / 4], variances[:-1]])
    spread = time * np.log1p(time) if horizon is None else float(horizon)
    bets = np.minimum(np.sqrt(2 * np.log(1 / alpha) / (past * spread)), LARGEST_BET)
    penalty = np.cumsum(surprise * (-np.log1p(-bets) - bets))
    bounds: Floats = (np.cumsum(bets * xi) - np.log(1 / alpha) - penalty) / (np.cumsum(bets) * p_min)
    return bounds
