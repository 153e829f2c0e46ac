"""A mean from a few true labels and many that a judge gave (PPI++; Angelopoulos, Duchi & Zrnic, arXiv 2311.01453).

With n rows that have both truth Y and judge J, and N others that have J only,

    θ = λ̂ · mean_N(J) + mean_n(Y − λ̂ J),     λ̂ = cov(Y, J) / ((1 + n/N) · var J)          (eq. 4, §6)
    var θ = λ̂² var_N(J)/N + var_n(Y − λ̂ J)/n

The judge may be as biased as it likes: when it is useless λ̂ is near 0 and nothing is lost. The judge's mean alone is
not the truth's mean ("judge units"). Assumes that the labelled rows are a random sample; a normal interval over
independent rows, so give one row per episode.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pointsman.errors import UserError
from pointsman.statistics.arrays import Floats, Interval, level, normal_quantile


def ppi_mean(truth: ArrayLike, judge: ArrayLike, judge_only: ArrayLike, alpha: float = 0.05) -> Interval:
    """The truth's mean: `truth` and `judge` [n] of the labelled rows, `judge_only` [N] of the others."""
    y, j, others = (np.asarray(values, dtype=np.float64) for values in (truth, judge, judge_only))
    n, unlabelled = len(y), len(others)
    if n < 2 or len(j) != n:
        raise UserError(f"PPI++: expected two or more labelled rows, each with a judgement, got {n} and {len(j)}")
    weight = _weight(y, j, n, unlabelled)
    rectified = y - weight * j
    estimate = float(rectified.mean()) + (weight * float(others.mean()) if unlabelled else 0.0)
    variance = float(rectified.var(ddof=1)) / n
    if unlabelled > 1:
        variance += weight**2 * float(others.var(ddof=1)) / unlabelled
    half = normal_quantile(1 - level(alpha) / 2) * variance**0.5
    return Interval(estimate, estimate - half, estimate + half, n + unlabelled, alpha, "PPI++")


def verified_rewards(judge: ArrayLike, truth: ArrayLike, verified: ArrayLike, rate: ArrayLike) -> Floats:
    """Ỹ = J + (ξ/ρ)(Y − J): unbiased row by row, for rows verified (ξ) with the known probability ρ.

    `truth` is ignored where not verified (it may be NaN there). Values may leave [0, 1].
    """
    j, chance = np.asarray(judge, dtype=np.float64), np.asarray(rate, dtype=np.float64)
    if (chance <= 0).any() or (chance > 1).any():
        raise UserError("verified rewards: the rate of verification must lie above 0 and at most at 1")
    corrections = (np.asarray(truth, dtype=np.float64) - j) / chance
    return j + np.where(np.asarray(verified, dtype=np.bool_), corrections, 0.0)


def _weight(y: Floats, j: Floats, n: int, unlabelled: int) -> float:
    """λ̂; 0 where the judge never varies or there is nothing but labelled rows."""
    variance = float(j.var(ddof=1))
    if unlabelled == 0 or variance == 0:
        return 0.0
    return float(np.cov(y, j)[0, 1]) / ((1 + n / unlabelled) * variance)
