"""Betting confidence sequence of a mean in [0, 1] (Waudby-Smith & Ramdas, arXiv 2010.09686).

For a candidate mean m two gamblers bet on every observation, one that the mean is above m, one that it is below:

    K⁺_t(m) = Π_i (1 + λ⁺_i (X_i − m)),   K⁻_t(m) = Π_i (1 − λ⁻_i (X_i − m))                          (eq. 24)
    λ_i = √(2 ln(1/level) / (σ̂²_{i−1} · i ln(1 + i))),   λ⁺ ≤ c/m,  λ⁻ ≤ c/(1 − m),  c = ½            (eq. 26)
    μ̂_i = (½ + ΣX)/(i + 1),   σ̂²_i = (¼ + Σ(X_j − μ̂_j)²)/(i + 1)

At the true mean both are martingales from 1, so each ever reaches 1/level with probability ≤ level (Ville). A
two-sided sequence spends α/2 on each, which is Theorem 3's hedged capital with θ = ½. K⁺ falls in m: what it
has rejected is [0, L].

Holds at every moment at once, under any stopping rule. Assumes values in [0, 1] whose mean given the past is
constant; under a drifting mean it is a test of that and no estimate. With `horizon` the bets are those that are
best at that n (√(2 ln(1/level) / (σ̂² · horizon)), the paper's fixed-n interval): narrower there, still valid
everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pointsman.statistics.arrays import Floats, Interval, level, some, within

TRUNCATION = 0.5
"""c: no bet risks more than this share of the capital."""

_HALVINGS = 40


def bet_size(variance: Floats, time: Floats, error: float, horizon: int | None) -> Floats:
    """λ before truncation, from the variance estimated of the past (eq. 26)."""
    spread = time * np.log1p(time) if horizon is None else float(horizon)
    size: Floats = np.sqrt(2 * np.log(1 / error) / (variance * spread))
    return size


def bets(x: Floats, error: float, horizon: int | None = None) -> Floats:
    """λ before truncation for every observation of `x` [..., n], from those before it."""
    time = np.arange(1, x.shape[-1] + 1, dtype=np.float64)
    means = (0.5 + np.cumsum(x, axis=-1)) / (time + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2, axis=-1)) / (time + 1)
    first = np.full((*x.shape[:-1], 1), 0.25)
    past = np.concatenate([first, variances[..., :-1]], axis=-1)
    return bet_size(past, time, error, horizon)


def log_capital(x: ArrayLike, mean: ArrayLike, error: float, horizon: int | None = None) -> Floats:
    """ln K⁺_t(mean) for every t; `x` is [..., n], `mean` one per sequence. K⁻(m) of x is K⁺(1 − m) of 1 − x."""
    array = within(x, 0, 1, "values")
    return _log_capital(array, bets(array, error, horizon), np.asarray(mean, dtype=np.float64)[..., None])


def lower_bound(x: ArrayLike, alpha: float, horizon: int | None = None) -> Floats:
    """The one-sided lower bound after all of `x` [..., n], one per sequence: everything below was ever rejected."""
    array = some(within(x, 0, 1, "values"), "values")
    stakes = bets(array, level(alpha), horizon)
    low, high = np.zeros(array.shape[:-1]), np.ones(array.shape[:-1])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rejected = _log_capital(array, stakes, middle[..., None]).max(axis=-1) >= np.log(1 / alpha)
        low, high = np.where(rejected, middle, low), np.where(rejected, high, middle)
    return low


def upper_bound(x: ArrayLike, alpha: float, horizon: int | None = None) -> Floats:
    """The one-sided upper bound, by the mirror image."""
    return 1 - lower_bound(1 - within(x, 0, 1, "values"), alpha, horizon)


def betting_interval(
    x: ArrayLike, alpha: float = 0.05, *, support: tuple[float, float] = (0.0, 1.0), horizon: int | None = None
) -> Interval:
    """The two-sided interval after all of `x` [n], whose values lie in `support`."""
    bottom, top = support
    scaled = (within(x, bottom, top, "values") - bottom) / (top - bottom)
    low = bottom + (top - bottom) * float(lower_bound(scaled, alpha / 2, horizon))
    high = bottom + (top - bottom) * float(upper_bound(scaled, alpha / 2, horizon))
    estimate = bottom + (top - bottom) * float(scaled.mean())
    return Interval(estimate, low, high, scaled.shape[-1], alpha, "betting")


def _log_capital(x: Floats, stakes: Floats, mean: Floats) -> Floats:
    truncated = np.minimum(stakes, TRUNCATION / np.maximum(mean, 1e-12))
    return np.cumsum(np.log1p(truncated * (x - mean)), axis=-1)
