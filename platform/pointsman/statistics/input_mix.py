"""Are today's requests like those the router learned from? A classifier two-sample test.

A logistic regression learns on one half to tell reference from recent requests by their features; on the other half,
which it never saw, its area under the curve is the Mann–Whitney statistic of its scores. If both samples come from
one distribution, their order there is random whatever the classifier learned, so for large samples

    z = (AUC − ½) / √((n₀ + n₁ + 1)/(12 n₀ n₁))

is standard normal (Lopez-Paz & Oquab, arXiv 1610.06545). One-sided: only AUC above ½ says anything.

Assumes independent rows: give one per episode. An alarm does not make routing wrong; it says that estimates
extrapolate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointsman.errors import UserError
from pointsman.statistics.arrays import Floats, level, normal_quantile

LEAST = 40


@dataclass(frozen=True)
class MixTest:
    """`changed` when `auc`, on held-out rows, is above what chance allows at α."""

    auc: float
    z: float
    p_value: float
    changed: bool
    reference: int
    recent: int


def input_mix_test(
    reference: Floats, recent: Floats, rng: np.random.Generator, alpha: float = 0.01, penalty: float = 1.0
) -> MixTest:
    """`reference` [n₀, d] and `recent` [n₁, d] are features of requests, such as embeddings."""
    from scipy.special import ndtr

    if min(len(reference), len(recent)) < LEAST:
        raise UserError(f"input mix: expected at least {LEAST} rows each, got {len(reference)} and {len(recent)}")
    learn0, held0 = _halves(reference, rng)
    learn1, held1 = _halves(recent, rng)
    weights = logistic(np.concatenate([learn0, learn1]), np.repeat([0.0, 1.0], [len(learn0), len(learn1)]), penalty)
    value = auc(held0 @ weights[:-1], held1 @ weights[:-1])
    n0, n1 = len(held0), len(held1)
    z = (value - 0.5) / ((n0 + n1 + 1) / (12 * n0 * n1)) ** 0.5
    return MixTest(value, z, float(ndtr(-z)), z > normal_quantile(1 - level(alpha)), len(reference), len(recent))


def logistic(features: Floats, labels: Floats, penalty: float = 1.0, steps: int = 25) -> Floats:
    """Ridge logistic regression by Newton's method on standardised features; weights [d + 1] for the raw ones.

    The intercept comes last and is not penalised.
    """
    centre, scale = features.mean(axis=0), features.std(axis=0) + 1e-9
    design = np.column_stack([(features - centre) / scale, np.ones(len(features))])
    ridge = penalty * np.diag([1.0] * features.shape[1] + [1e-9])
    weights = np.zeros(design.shape[1])
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (labels - chance) - ridge @ weights
        hessian = (design * (chance * (1 - chance))[:, None]).T @ design + ridge
        move = np.linalg.solve(hessian, gradient)
        weights = weights + move
        if float(np.abs(move).max()) < 1e-8:
            break
    raw = weights[:-1] / scale
    return np.append(raw, weights[-1] - float(raw @ centre))


def auc(negatives: Floats, positives: Floats) -> float:
    """P(a positive scores above a negative), ties counted half (Mann & Whitney 1947)."""
    ordered = np.sort(negatives)
    below = np.searchsorted(ordered, positives, side="left")
    up_to = np.searchsorted(ordered, positives, side="right")
    return float((below + up_to).mean()) / (2 * len(negatives))


def _halves(rows: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    order = rng.permutation(len(rows))
    middle = len(rows) // 2
    return rows[order[:middle]], rows[order[middle:]]
