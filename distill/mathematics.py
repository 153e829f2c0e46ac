"""Small numeric helpers that several parts of this room share."""

from __future__ import annotations

import numpy as np

from distill.arrays import Floats, Integers


def softmax(scores: Floats, axis: int = -1) -> Floats:
    """Shares that sum to 1 along `axis`."""
    shares = np.exp(scores - scores.max(axis=axis, keepdims=True))
    result: Floats = shares / shares.sum(axis=axis, keepdims=True)
    return result


def one_hot(numbers: Integers, size: int) -> Floats:
    """Rows of 0 and 1, [n, size]; a number of -1 gives a row of zeros."""
    result = np.zeros((len(numbers), size))
    known = np.flatnonzero(numbers >= 0)
    result[known, numbers[known]] = 1
    return result


def cell_weights(values: Floats, weights: Floats | None) -> Floats:
    """What every cell of `values` [n, k] counts: nothing where it is NaN, 1 elsewhere unless weights are given."""
    tried = ~np.isnan(values)
    result: Floats = tried.astype(np.float64) if weights is None else np.where(tried, weights, 0.0)
    return result


def group_sums(values: Floats, numbers: Integers, size: int, strength: float, weights: Floats | None = None) -> Floats:
    """Σ values ÷ (count + strength) per group, [size, k]; NaN counts nowhere."""
    members = one_hot(numbers, size)
    counted = cell_weights(values, weights)
    result: Floats = members.T @ (counted * np.nan_to_num(values)) / (members.T @ counted + strength)
    return result
