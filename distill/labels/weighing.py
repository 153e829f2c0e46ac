"""What each source counts against a verifier's score, and caps that no source and no rater exceeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from distill.labels.evidence import Evidence, Source


@dataclass(frozen=True)
class Weighing:
    """`source_cap`: the most that ratings, judges and verdicts may each weigh of all that is known.

    `rater_cap`: the most that one rater may weigh of all that raters said. A cap of 1 is none.
    """

    sources: Mapping[Source, float] = field(
        default_factory=lambda: {"verifier": 1.0, "feedback": 1.0, "judge": 0.5, "verdict": 0.5}
    )
    source_cap: float = 0.5
    rater_cap: float = 0.2


def weigh(evidence: Evidence, weighing: Weighing) -> tuple[Evidence, dict[str, float]]:
    """The evidence with its weights, and by what factor whom the caps cut: `rater NAME`, `source NAME`."""
    weights = np.array([weighing.sources[source] for source in evidence.sources], np.float64)
    cut: dict[str, float] = {}
    said = {rater: 0.0 for rater in evidence.raters if rater is not None}
    for rater, weight in zip(evidence.raters, weights.tolist(), strict=True):
        if rater is not None:
            said[rater] += weight
    most = most_each(list(said.values()), 0.0, weighing.rater_cap)
    for rater, total in said.items():
        if total > most:
            weights[[one == rater for one in evidence.raters]] *= most / total
            cut[f"rater {rater}"] = round(most / total, 4)
    sources = np.array(evidence.sources, dtype=np.str_)
    for source in ("feedback", "judge", "verdict"):
        who = sources == source
        mine, others = float(weights[who].sum()), float(weights[~who].sum())
        most = most_each([mine], others, weighing.source_cap) if others else mine
        if mine > most:
            weights[who] *= most / mine
            cut[f"source {source}"] = round(most / mine, 4)
    return evidence.weighted(weights), cut


def most_each(totals: list[float], others: float, cap: float) -> float:
    """The largest T so that min(total, T) is at most `cap` of others + Σ min(total, T).

    Where so few share that it cannot be, all weigh what the least does.
    """
    if not totals or cap >= 1:
        return max(totals, default=0.0)
    low, high = 0.0, max(totals)
    if cap * (others + sum(totals)) >= high:
        return high
    for _ in range(60):  # cap · (others + Σ min(total, T)) - T is concave in T and begins at or above 0
        middle = (low + high) / 2
        if cap * (others + sum(min(total, middle) for total in totals)) >= middle:
            low = middle
        else:
            high = middle
    return max(low, min(totals)) if low < 1e-9 * max(totals) else low
