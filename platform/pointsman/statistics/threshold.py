"""When may the cheap worker answer? A threshold on a score whose failure rate is guaranteed (Learn then Test).

Angelopoulos, Bates, Candès, Jordan & Lei, arXiv 2110.01052, with fixed-sequence testing: thresholds λ from strict to
loose; at each, H_λ: P(failure | score ≥ λ) > a is rejected when the Clopper–Pearson upper bound (1934) of the failures
among those routed cheap is at most a; the first that is not rejected ends the walk. P(the last rejected λ violates a)
≤ δ, however many thresholds there are.

The start rule matters: at the strictest thresholds a handful of rows proves nothing and the walk would end at once. It
starts at the first λ with `least` routed rows, which looks at scores only, not at failures, and so is allowed.

Assumes exchangeable rows whose labels were gathered at random (audits), and recalibration when drift alarms. A naive
"empirical rate ≤ a" violates a about half the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

import numpy as np
from numpy.typing import ArrayLike

from pointsman.errors import UserError
from pointsman.statistics.arrays import Floats, level


@dataclass(frozen=True)
class Threshold:
    """Scores of at least `value` may go to the cheap worker; None: no threshold could be certified, none may.

    `routed` of `n` calibration rows lie there, `failures` of them failed, `upper` bounds their rate.
    """

    value: float | None
    routed: int
    failures: int
    n: int
    upper: float
    limit: float
    delta: float

    @property
    def cheap_share(self) -> float:
        return self.routed / self.n if self.n and self.value is not None else 0.0


def clopper_pearson_upper(failures: ArrayLike, n: ArrayLike, delta: float) -> Floats:
    """The exact upper bound of a rate: the (1 − δ) quantile of Beta(k + 1, n − k); 1 where all failed."""
    from scipy.special import betaincinv

    k, total = np.asarray(failures, dtype=np.float64), np.asarray(n, dtype=np.float64)
    bound: Floats = np.where(k >= total, 1.0, betaincinv(k + 1, np.maximum(total - k, 1e-12), 1 - level(delta)))
    return bound


def least_routed(limit: float, delta: float) -> int:
    """The default start: four times what a record without any failure would need, 4·ln(1/δ)/−ln(1 − a)."""
    return ceil(4 * log(delta) / log(1 - limit))


def cheap_threshold(
    scores: ArrayLike,
    failed: ArrayLike,
    limit: float,
    delta: float = 0.05,
    *,
    grid: ArrayLike | None = None,
    least: int | None = None,
) -> Threshold:
    """The loosest certified threshold. `grid`: thresholds fixed beforehand; None takes 50 quantiles of the scores.

    Quantiles look at scores only. `least` defaults to `least_routed`.
    """
    if not 0 < limit < 1:
        raise UserError(f"threshold: the tolerated failure rate must lie between 0 and 1, got {limit:g}")
    values, bad = np.asarray(scores, dtype=np.float64), np.asarray(failed, dtype=np.bool_)
    steps = np.quantile(values, np.linspace(0, 1, 51)[:-1]) if grid is None else np.asarray(grid, dtype=np.float64)
    found = Threshold(None, 0, 0, len(values), 1.0, limit, delta)
    for step in np.unique(steps)[::-1]:
        cheap = values >= step
        routed, failures = int(cheap.sum()), int(bad[cheap].sum())
        if routed < (least_routed(limit, delta) if least is None else least):
            continue
        upper = float(clopper_pearson_upper(failures, routed, delta))
        if upper > limit:
            break
        found = Threshold(float(step), routed, failures, len(values), upper, limit, delta)
    return found
