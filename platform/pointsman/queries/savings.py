"""What routing saved against always asking one worker, estimated from logged propensities, with its interval.

What always choosing worker s would have cost per decision is the self-normalised inverse-propensity mean
μ_s = Σ 1[chosen = s] cost/p ÷ Σ 1[chosen = s]/p; what it did cost is the plain mean of the same decisions. Only
drawn decisions with a known cost count (a forced one has no propensity). The interval is the delta method's with the
hour as the cluster: ψ_h = (wc_h − μ_s w_h)/W − (c_h − μ n_h)/N, variance Σ ψ_h² · H/(H − 1), so that the turns of one
conversation are not taken for independent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import sqrt

Z95 = 1.959964
LEAST_HOURS = 10
LEAST_CHOSEN = 30.0  # decisions' worth of weight below which nothing is said


@dataclass(frozen=True)
class CostHour:
    """One hour of one worker: decisions drawn for it, their cost in USD, Σ 1/p and Σ cost/p."""

    hour: datetime
    worker: str
    drawn: int
    cost: float
    weight: float
    weight_cost: float


@dataclass(frozen=True)
class Saved:
    """USD over `decisions` drawn decisions, negative where routing cost more; bounds at 95%. `share` of `instead`."""

    worker: str
    decisions: int
    usd: float
    low: float
    high: float
    instead: float

    @property
    def share(self) -> float | None:
        return self.usd / self.instead if self.instead > 0 else None


def saved_against(hours: Sequence[CostHour], worker: str) -> Saved | None:
    """None where there is too little to say: few hours, or the worker was hardly ever drawn."""
    drawn, cost = defaultdict[datetime, int](int), defaultdict[datetime, float](float)
    weight, weight_cost = defaultdict[datetime, float](float), defaultdict[datetime, float](float)
    for row in hours:
        drawn[row.hour] += row.drawn
        cost[row.hour] += row.cost
        if row.worker == worker:
            weight[row.hour] += row.weight
            weight_cost[row.hour] += row.weight_cost
    n, w = sum(drawn.values()), sum(weight.values())
    if len(drawn) < LEAST_HOURS or w < LEAST_CHOSEN:
        return None
    mean, instead = sum(cost.values()) / n, sum(weight_cost.values()) / w
    influence = [
        (weight_cost[hour] - instead * weight[hour]) / w - (cost[hour] - mean * drawn[hour]) / n for hour in drawn
    ]
    clusters = len(influence)
    error = sqrt(sum(one * one for one in influence) * clusters / (clusters - 1))
    each = instead - mean
    return Saved(worker, n, n * each, n * (each - Z95 * error), n * (each + Z95 * error), n * instead)
