"""Guardrails: e-processes that fire when the candidate's errors, slowness or cost pass a limit set beforehand.

For one observation X in [0, 1] per episode that the candidate served, and H0: E[X | past] ≤ m,

    E_t = mean over f of Π (1 + f·(X_s − m)/m),    f ∈ {.01, .03, .1, .3, .9}

fires at 1/α. A factor is at least 1 − f, so E stays positive; under H0 it is a supermartingale, so P(ever firing)
≤ α (Ville). The mixture needs no guess of how bad it will be (arXiv 2010.09686, §4.3's diversified bets).

Errors: X = 1 for an error. Latency: X = 1 above the limit in seconds, m = .05 makes it the 95th percentile. Cost:
X = cost ÷ cap, at most 1. Assumes the limit was fixed before the first row, and rows in order of assignment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log, log1p
from typing import Any

from pointsman.errors import UserError

FRACTIONS = (0.01, 0.03, 0.1, 0.3, 0.9)


@dataclass(frozen=True)
class Limit:
    """The mean of X that `name` may not pass, with the probability of firing although it does not."""

    name: str
    mean: float
    alpha: float

    def __post_init__(self) -> None:
        if not 0 < self.mean < 1:
            raise UserError(f"guardrail {self.name}: the limit must lie between 0 and 1, got {self.mean:g}")
        if not 0 < self.alpha < 1:
            raise UserError(f"guardrail {self.name}: alpha must lie between 0 and 1, got {self.alpha:g}")


@dataclass
class Guard:
    """`log_wealth`: ln of each fraction's product. `fired` stays."""

    limit: Limit
    rows: int
    log_wealth: list[float]
    fired: bool

    @classmethod
    def start(cls, limit: Limit) -> Guard:
        return cls(limit, 0, [0.0] * len(FRACTIONS), False)

    def observe(self, x: float) -> bool:
        """Takes one observation of the candidate and says whether the guardrail has fired, now or earlier."""
        if not 0 <= x <= 1:
            raise UserError(f"guardrail {self.limit.name}: expected an observation from 0 to 1, got {x:g}")
        excess = (x - self.limit.mean) / self.limit.mean
        self.log_wealth = [wealth + log1p(f * excess) for wealth, f in zip(self.log_wealth, FRACTIONS, strict=True)]
        self.rows += 1
        self.fired = self.fired or self.log_e >= -log(self.limit.alpha)
        return self.fired

    @property
    def log_e(self) -> float:
        """ln E."""
        return log_mean_exp(self.log_wealth)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Guard:
        return cls(Limit(**stored["limit"]), stored["rows"], list(stored["log_wealth"]), stored["fired"])


def latency_observation(seconds: float, limit: float) -> float:
    """1 above the limit: with mean .05 the guardrail watches the 95th percentile."""
    return float(seconds > limit)


def cost_observation(usd: float, cap: float) -> float:
    """The share of a cap; dearer requests count as the cap, so choose it generously."""
    return min(1.0, usd / cap)


def log_mean_exp(logs: Sequence[float]) -> float:
    """ln of the mean of e^x, without overflow."""
    top = max(logs)
    return top + log(sum(exp(x - top) for x in logs) / len(logs))
