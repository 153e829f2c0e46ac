"""What a fitness may be and what is done where it is not: no NaN ranks, no update without a signal.

Reasons to stop, as they are logged: `non_finite` (more than half of a generation), `flat` (no spread for
several generations), `diverged` (the search's own state).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from distill.arrays import Floats
from pointsman.errors import BrokenInvariant

Stop = Literal["non_finite", "flat", "diverged"]
MOST_NON_FINITE = 0.5


@dataclass(frozen=True, eq=False)
class Ranked:
    """Fitness with every non-finite value put last; `flat` where all finite ones are equal."""

    fitness: Floats
    non_finite: int
    flat: bool

    @property
    def broken(self) -> bool:
        return self.non_finite > MOST_NON_FINITE * len(self.fitness)


def ranked(fitness: Floats) -> Ranked:
    """A candidate that failed gets less than the worst of the others (a NaN would break the sort)."""
    good = np.isfinite(fitness)
    if not good.any():
        return Ranked(np.zeros(len(fitness)), len(fitness), True)
    low, high = float(fitness[good].min()), float(fitness[good].max())
    below = np.nextafter(low, -np.inf) - (high - low)
    return Ranked(np.where(good, fitness, below), int((~good).sum()), high == low)


def check_candidates(candidates: Floats) -> None:
    """Raises before anything is evaluated on numbers that are none."""
    if not np.isfinite(candidates).all():
        raise BrokenInvariant("the search drew a candidate that is not finite")
