"""May a log answer the question at all? Overlap and effective sample size, before any off-policy estimate.

A policy can be evaluated from logged draws only where the logging policy might have done the same. Where it could
not, no estimator is unbiased, so the answer is `NotEvaluable`: explore, or use full-information rows.
"""

from __future__ import annotations

import numpy as np

from pointsman.errors import NotEvaluable
from pointsman.statistics.arrays import Floats

LEAST_ESS = 50.0


def effective_sample_size(weights: Floats) -> float:
    """(Σw)²/Σw² (Kish): how many equally weighted rows would carry as much; 0 without any weight."""
    squares = float((weights**2).sum())
    return float(np.abs(weights).sum()) ** 2 / squares if squares else 0.0


def uncovered_mass(target: Floats, probabilities: Floats) -> float:
    """The mean probability that the target puts where the log could never have gone (p = 0)."""
    return float(np.where(probabilities > 0, 0.0, target).sum(axis=-1).mean())


def require_overlap(target: Floats, probabilities: Floats) -> None:
    """Refuses where any mass of the target [n, K] lies where p = 0."""
    mass = uncovered_mass(np.abs(target), probabilities)
    if mass > 0:
        rows = int((np.where(probabilities > 0, 0.0, np.abs(target)).sum(axis=-1) > 0).sum())
        raise NotEvaluable(
            f"not evaluable; explore: in {rows} of {len(target)} rows the policy chooses workers that were never"
            f" possible in the log ({mass:.3f} of its mass), so no estimate of it is honest"
        )


def require_sample(weights: Floats, least: float = LEAST_ESS) -> float:
    """The effective sample size; refuses below `least`."""
    size = effective_sample_size(weights)
    if size < least:
        raise NotEvaluable(
            f"not evaluable; explore: the {len(weights)} logged rows are worth {size:.1f} rows of this policy"
            f" (effective sample size), and {least:g} are needed"
        )
    return size
