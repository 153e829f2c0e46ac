"""The episode is the unit: decisions of one conversation share their outcome, so they are no independent rows.

Every interval here averages within episodes first; what is estimated is the mean over episodes of an
episode's mean decision.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointsman.errors import UserError
from pointsman.statistics.arrays import Floats, Integers, Interval, level, some

Episodes = Sequence[Hashable] | NDArray[Any]
"""The name of each row's episode."""

_CELLS = 2_000_000
"""Resampled values held at a time."""


def episode_numbers(episodes: Episodes) -> Integers:
    """A number per row, 0 for the episode that comes first, in order of appearance."""
    seen: dict[Hashable, int] = {}
    return np.fromiter((seen.setdefault(name, len(seen)) for name in episodes), dtype=np.int64, count=len(episodes))


def episode_means(values: ArrayLike, episodes: Episodes | None) -> Floats:
    """The mean of every episode, in order of appearance; the values themselves where no episodes are given."""
    array = np.asarray(values, dtype=np.float64)
    if episodes is None:
        return array
    if len(episodes) != len(array):
        raise UserError(f"episodes: expected one per row ({len(array)}), got {len(episodes)}")
    numbers = episode_numbers(episodes)
    counts = np.bincount(numbers)
    return np.bincount(numbers, weights=array) / counts


def paired_bootstrap(
    new: ArrayLike,
    old: ArrayLike,
    rng: np.random.Generator,
    *,
    episodes: Episodes | None = None,
    alpha: float = 0.05,
    draws: int = 2_000,
) -> Interval:
    """Mean difference of paired values with the percentile interval over resampled episodes (Efron, 1979).

    Approximate: for reports. Certificates use `paired.paired_interval`.
    """
    differences = np.asarray(new, dtype=np.float64) - np.asarray(old, dtype=np.float64)
    units = some(episode_means(differences, episodes), "bootstrap")
    at_once = max(1, _CELLS // len(units))
    means: list[Floats] = []
    for start in range(0, draws, at_once):
        picks = rng.integers(0, len(units), size=(min(at_once, draws - start), len(units)))
        means.append(units[picks].mean(axis=1))
    low, high = np.quantile(np.concatenate(means), [level(alpha) / 2, 1 - alpha / 2])
    return Interval(float(units.mean()), float(low), float(high), len(units), alpha, "paired bootstrap")
