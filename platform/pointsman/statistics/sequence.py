"""The betting confidence sequence as a state that grows by one observation and can be put away as JSON.

Means are tried on a grid, so that the state does not grow with the data; an end is reported at the last grid
point that was rejected, which is never inside the exact interval of `bounded_mean`. Formulas and assumptions are
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointsman.statistics.arrays import Floats, Interval, level, within
from pointsman.statistics.bounded_mean import TRUNCATION, bet_size

POINTS = 1_000


@dataclass
class BettingSequence:
    """`up[i]` is ln K⁺ at the mean (rejected_low + i)/points; `down[i]` is ln K⁻ at i/points. Rejected points are gone.

    `contradicted` says that the two ends have passed each other: the mean was not constant.
    """

    alpha: float
    points: int
    n: int
    total: float
    squares: float
    up: Floats
    down: Floats

    @classmethod
    def start(cls, alpha: float = 0.05, points: int = POINTS) -> BettingSequence:
        return cls(level(alpha), points, 0, 0.0, 0.0, np.zeros(points + 1), np.zeros(points + 1))

    def observe(self, x: float) -> None:
        """Takes the next value, in [0, 1]."""
        value = float(within(x, 0, 1, "values"))
        stake = self._stake()
        self.up = self.up + _gain(stake, value, self._means_up())
        self.down = self.down + _gain(stake, 1 - value, 1 - self._means_down())
        limit = np.log(2 / self.alpha)
        self.up = self.up[int((self.up >= limit).sum()) :]
        self.down = self.down[: len(self.down) - int((self.down >= limit).sum())]
        self._remember(value)

    @property
    def interval(self) -> Interval:
        estimate = self.total / self.n if self.n else 0.5
        low = max(0.0, (self.points - len(self.up)) / self.points)
        high = min(1.0, len(self.down) / self.points)
        return Interval(estimate, low, high, self.n, self.alpha, "betting, on a grid")

    @property
    def contradicted(self) -> bool:
        return self.interval.low > self.interval.high

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"up": self.up.tolist(), "down": self.down.tolist()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> BettingSequence:
        return cls(**{**stored, "up": np.array(stored["up"]), "down": np.array(stored["down"])})

    def _stake(self) -> Floats:
        variance = np.asarray((0.25 + self.squares) / (self.n + 1))
        return bet_size(variance, np.asarray(self.n + 1.0), self.alpha / 2, None)

    def _means_up(self) -> Floats:
        return np.arange(self.points + 1 - len(self.up), self.points + 1) / self.points

    def _means_down(self) -> Floats:
        return np.arange(len(self.down)) / self.points

    def _remember(self, value: float) -> None:
        self.n += 1
        self.total += value
        mean = (0.5 + self.total) / (self.n + 1)
        self.squares += (value - mean) ** 2


def _gain(stake: Floats, value: float, means: Floats) -> Floats:
    truncated = np.minimum(stake, TRUNCATION / np.maximum(means, 1e-12))
    return np.log1p(truncated * (value - means))
