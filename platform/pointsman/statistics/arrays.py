"""Checked arrays, and the interval that every estimate is reported with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointsman.errors import UserError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

ROUNDING = 1e-9
"""How far outside its bounds a value may lie through floating-point arithmetic; it is clipped."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval; `n` counts what was averaged (episodes, where they are known).

    A one-sided bound leaves the other end at the edge of what is possible.
    """

    estimate: float
    low: float
    high: float
    n: int
    alpha: float
    method: str


def within(values: ArrayLike, low: float, high: float, what: str) -> Floats:
    """`values` as floats that lie in [low, high]; raises `UserError` naming the first that does not."""
    array = np.asarray(values, dtype=np.float64)
    wrong = ~((array >= low - ROUNDING) & (array <= high + ROUNDING))
    if wrong.any():
        raise UserError(f"{what}: expected values from {low:g} to {high:g}, got {array[wrong].flat[0]:g}")
    return np.clip(array, low, high)


def level(alpha: float) -> float:
    """An error probability, strictly between 0 and 1."""
    if not 0 < alpha < 1:
        raise UserError(f"alpha: expected a number between 0 and 1, got {alpha:g}")
    return alpha


def some(values: Floats, what: str) -> Floats:
    """`values`, of which there is at least one along the last axis."""
    if values.shape[-1] == 0:
        raise UserError(f"{what}: expected at least one row, got none")
    return values


def normal_quantile(p: float) -> float:
    """The standard normal quantile."""
    from scipy.special import ndtri

    return float(ndtri(p))


def normal_interval(values: Floats, alpha: float, method: str) -> Interval:
    """Mean ± z·s/√n over independent units: asymptotic, for one look at a fixed n."""
    n = values.shape[-1]
    mean = float(values.mean())
    spread = float(values.std(ddof=1)) / n**0.5 if n > 1 else float("inf")
    half = normal_quantile(1 - level(alpha) / 2) * spread
    return Interval(mean, mean - half, mean + half, n, alpha, method)
