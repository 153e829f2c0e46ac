"""From estimates to soft labels, and to what each request counts in training."""

from __future__ import annotations

from typing import Literal

import numpy as np

from distill.arrays import Floats
from distill.mathematics import softmax
from pointsman.errors import UserError

Target = Literal["softmax", "best"]
DRAWS = 400
FLOOR = 0.25
"""What a request counts at least, however alike its workers are."""


def probability_best(mean: Floats, deviation: Floats, rng: np.random.Generator, draws: int = DRAWS) -> Floats:
    """How often each arm is the best of draws from N(mean, deviation²), [n, k]; ties go to the first arm drawn."""
    wins = np.zeros(mean.shape)
    rows = np.arange(len(mean))
    for _ in range(draws):
        best = (mean + deviation * rng.standard_normal(mean.shape)).argmax(axis=1)
        wins[rows, best] += 1
    result: Floats = wins / draws
    return result


def soft_targets(mean: Floats, best: Floats, target: Target, temperature: float) -> Floats:
    """softmax(mean ÷ τ) over arms, or the probability of being best; rows sum to 1."""
    if temperature <= 0:
        raise UserError(f"labels: expected a temperature above 0, got {temperature:g}")
    return softmax(mean / temperature) if target == "softmax" else best


def row_weights(best: Floats) -> Floats:
    """1 where it is certain who is best, `FLOOR` where all are alike, [n]."""
    arms = best.shape[1]
    sure = (best.max(axis=1) - 1 / arms) / (1 - 1 / arms)
    result: Floats = FLOOR + (1 - FLOOR) * np.clip(sure, 0, 1)
    return result
