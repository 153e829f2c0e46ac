"""Has a worker changed silently? A fixed set of requests is run again every day and compared with its stored scores.

For one day's pass over the set, item i scores X_i and its stored mean is s_i; for each direction and bet λ

    e = Π_i (1 + λ(s_i − X_i − δ)),      and the same with X_i − s_i − δ,      λ ∈ {.05, .1, .25, .5}

Items differ, so the single factors do not have mean 1; but λ is fixed within a day and items are independent, so by the
arithmetic–geometric mean inequality E[e] = Π(1 + λμ_i) ≤ (1 + λ·mean μ)ⁿ ≤ 1 whenever the set's *mean* shift is at most
δ. Days multiply into a Shiryaev–Roberts detector: without a shift the average time to an alarm is at least the run
length, in days.

δ covers the noise of the stored scores themselves. They are a sample too, and a set that is compared with one lucky run
every day for ever will one day look worse than it: with δ = 0 a false alarm is only a matter of time. `tolerance` takes
it from repeats at enrolment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pointsman.errors import UserError
from pointsman.statistics.arrays import Floats, level, normal_quantile, within
from pointsman.statistics.guardrails import log_mean_exp

BETS = (0.05, 0.1, 0.25, 0.5)


def tolerance(repeats: ArrayLike, alpha: float = 0.01) -> float:
    """δ from scores [items, runs] of two or more runs at enrolment: z·√(Σ s²_i/runs)/items, normal approximation."""
    runs = within(repeats, 0, 1, "canary scores")
    if runs.ndim != 2 or runs.shape[1] < 2:
        raise UserError("canary: expected scores of two or more runs of every item, to know how much they vary")
    items, count = runs.shape
    variance = float(runs.var(axis=1, ddof=1).sum()) / count
    return normal_quantile(1 - level(alpha) / 2) * sqrt(variance) / int(items)


@dataclass
class CanarySet:
    """`stored`: the mean score of every item at enrolment. `down`, `up`: ln M per bet; `alarm` stays.

    `run_length`: days to a false alarm, at least, on average.
    """

    stored: list[float]
    delta: float
    run_length: float
    days: int
    down: list[float]
    up: list[float]
    alarm: bool

    @classmethod
    def enrol(cls, repeats: ArrayLike, run_length: float = 1_000, alpha: float = 0.01) -> CanarySet:
        """From scores [items, runs]."""
        delta = tolerance(repeats, alpha)
        stored = [float(mean) for mean in within(repeats, 0, 1, "canary scores").mean(axis=1)]
        return cls(stored, delta, run_length, 0, [0.0] * len(BETS), [0.0] * len(BETS), False)

    def observe(self, scores: ArrayLike) -> bool:
        """Takes one day's scores, one per item in the order of `stored`; says whether there has been an alarm."""
        today = within(scores, 0, 1, "canary scores")
        if today.shape != (len(self.stored),):
            raise UserError(f"canary: expected {len(self.stored)} scores, one per item, got shape {today.shape}")
        fall = np.array(self.stored) - today
        self.down = _next(self.down, fall - self.delta, self.days)
        self.up = _next(self.up, -fall - self.delta, self.days)
        self.days += 1
        self.alarm = self.alarm or self.log_e >= log(self.run_length)
        return self.alarm

    @property
    def log_e(self) -> float:
        """ln of the average over directions and bets."""
        return log_mean_exp(self.down + self.up)

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> CanarySet:
        return cls(**stored)


def _next(log_m: list[float], shifts: Floats, days: int) -> list[float]:
    """(M + 1)·e per bet; M is 0 before the first day."""
    before = np.logaddexp(np.array(log_m), 0.0) if days else np.zeros(len(BETS))
    gains = np.log1p(np.multiply.outer(np.array(BETS), shifts)).sum(axis=1)
    return [float(value) for value in before + gains]
