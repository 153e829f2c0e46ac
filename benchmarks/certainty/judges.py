"""Means from a biased judge: coverage of 95% intervals from the judge alone, from few true labels, and from PPI++."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointsman.statistics.arrays import Interval, normal_interval
from pointsman.statistics.judged import ppi_mean

TRUE_MEAN = 0.6


@dataclass(frozen=True)
class Judged:
    """Coverage and mean width, each of PPI++ and of the true labels alone; and the judge's own coverage."""

    ppi: float
    ppi_width: float
    labels: float
    labels_width: float
    judge: float


def coverage(reps: int, labelled: int, unlabelled: int, rng: np.random.Generator) -> Judged:
    """The judge sees success as .75 and failure as .3 on average: right in direction, wrong in level."""
    hits, widths = np.zeros(3), np.zeros(3)
    for _ in range(reps):
        truth = (rng.random(labelled + unlabelled) < TRUE_MEAN).astype(float)
        judge = np.clip(0.3 + 0.45 * truth + 0.15 * rng.normal(size=len(truth)), 0, 1)
        few = slice(0, labelled)
        intervals: tuple[Interval, ...] = (
            ppi_mean(truth[few], judge[few], judge[labelled:]),
            normal_interval(truth[few], 0.05, "labels"),
            normal_interval(judge, 0.05, "judge"),
        )
        hits += [i.low <= TRUE_MEAN <= i.high for i in intervals]
        widths += [i.high - i.low for i in intervals]
    shares, width = hits / reps, widths / reps
    return Judged(float(shares[0]), float(width[0]), float(shares[1]), float(width[1]), float(shares[2]))
