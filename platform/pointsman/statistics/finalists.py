"""Within ε of the best of N finalists, from one certification set on which all of them were evaluated.

ε = max over the other finalists j of the upper bound of V_j − V_chosen, each a one-sided betting bound at α/(N − 1)
on paired items (Bonferroni), so that P(best − chosen > ε) ≤ α whichever was chosen, provided that it was chosen without
these items. It speaks of these N, not of all prompts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pointsman.errors import UserError
from pointsman.statistics.arrays import level, some, within
from pointsman.statistics.bounded_mean import upper_bound
from pointsman.statistics.episodes import Episodes, episode_means


@dataclass(frozen=True)
class NearBest:
    """`epsilon` ≥ 0 holds with probability 1 − α; `margins` are the upper bounds of V_j − V_chosen (0 for itself)."""

    epsilon: float
    margins: tuple[float, ...]
    means: tuple[float, ...]
    n: int
    alpha: float


def within_best(
    values: ArrayLike,
    chosen: int,
    alpha: float = 0.05,
    *,
    episodes: Episodes | None = None,
    horizon: int | None = None,
) -> NearBest:
    """`values` [items, finalists] in [0, 1]; `horizon` for a set of known size that is looked at once."""
    table = within(values, 0, 1, "finalists' values")
    if table.ndim != 2 or not 0 <= chosen < table.shape[1]:
        raise UserError(f"finalists: expected items × finalists that hold finalist {chosen}, got shape {table.shape}")
    columns = np.stack([episode_means(column, episodes) for column in table.T])
    gaps = some(np.delete(columns - columns[chosen], chosen, axis=0), "finalists")
    share = level(alpha) / max(1, len(gaps))
    margins = 2 * upper_bound((1 + gaps) / 2, share, horizon) - 1
    everyone = [float(margin) for margin in np.insert(margins, chosen, 0.0)]
    means = tuple(float(mean) for mean in columns.mean(axis=1))
    return NearBest(max(0.0, *everyone), tuple(everyone), means, columns.shape[1], alpha)
