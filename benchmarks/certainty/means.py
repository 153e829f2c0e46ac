"""How often does an interval of a mean ever miss it, when it is looked at after every observation?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pointsman.statistics.arrays import Floats, normal_quantile
from pointsman.statistics.bounded_mean import log_capital, lower_bound, upper_bound

Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]

DISTRIBUTIONS: dict[str, tuple[float, Draw]] = {
    "bernoulli .1": (0.1, lambda rng, shape: (rng.random(shape) < 0.1).astype(float)),
    "bernoulli .5": (0.5, lambda rng, shape: (rng.random(shape) < 0.5).astype(float)),
    "beta 10, 30": (0.25, lambda rng, shape: rng.beta(10, 30, shape)),
}
FIRST_LOOK = 30
AT_ONCE = 250


@dataclass(frozen=True)
class Missed:
    """Shares of repetitions: the betting sequence, and a z-interval that is looked at after every observation."""

    betting: float
    peeking: float


def ever_missed(name: str, reps: int, n: int, rng: np.random.Generator, alpha: float = 0.05) -> Missed:
    """Over `reps` streams of `n` observations."""
    mean, draw = DISTRIBUTIONS[name]
    betting = peeking = 0
    for start in range(0, reps, AT_ONCE):
        x = draw(rng, (min(AT_ONCE, reps - start), n))
        betting += int(betting_misses(x, mean, alpha).sum())
        peeking += int(z_misses(x, mean, alpha).sum())
    return Missed(betting / reps, peeking / reps)


def betting_misses(x: Floats, mean: float, alpha: float) -> np.ndarray:
    """The mean is ever outside exactly when either gambler's capital at it ever reaches 2/α."""
    limit = np.log(2 / alpha)
    above = log_capital(x, mean, alpha / 2).max(axis=1) >= limit
    return above | (log_capital(1 - x, 1 - mean, alpha / 2).max(axis=1) >= limit)


def z_misses(x: Floats, mean: float, alpha: float) -> np.ndarray:
    """The textbook interval mean ± z·s/√t, looked at from the thirtieth observation on."""
    time = np.arange(1, x.shape[1] + 1)
    means = x.cumsum(axis=1) / time
    variances = np.maximum((x**2).cumsum(axis=1) / time - means**2, 0) * time / np.maximum(time - 1, 1)
    outside = np.abs(means - mean) > normal_quantile(1 - alpha / 2) * np.sqrt(variances / time)
    return outside[:, FIRST_LOOK - 1 :].any(axis=1)


def mean_width(name: str, reps: int, n: int, rng: np.random.Generator, alpha: float = 0.05) -> float:
    """The mean width of the two-sided betting interval at n."""
    x = DISTRIBUTIONS[name][1](rng, (reps, n))
    return float((upper_bound(x, alpha / 2) - lower_bound(x, alpha / 2)).mean())
