"""Empirical-Bayes clusters: a label-free stand-in for tasks.

k-means at 8, 16, 32, 64, 128 in turn, each level adding its clusters' residual sums ÷ (n + strength); the
mean over several seeds. What is fitted is flat: a list of groups of centroids with a residual each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from distill.arrays import Floats, Integers
from distill.classic.means import STRENGTH, arm_means
from distill.mathematics import group_sums


@dataclass(frozen=True)
class ClusterConfig:
    sizes: Sequence[int] = (8, 16, 32, 64, 128)
    seeds: int = 5
    strength: float = STRENGTH


@dataclass(frozen=True, eq=False)
class Clusters:
    """Group i is the centroids groups[i] to groups[i + 1]; a point takes the nearest of each group."""

    base: Floats
    groups: Integers
    centroids: Floats
    residuals: Floats

    def scores(self, points: Floats) -> Floats:
        """[n, k]: the base plus a residual of every group."""
        result = np.tile(self.base, (len(points), 1))
        for first, end in pairwise(self.groups.tolist()):
            nearest = nearest_centroid(points, self.centroids[first:end])
            result += self.residuals[first:end][nearest]
        return result

    def tensors(self) -> dict[str, Floats | Integers]:
        halves = (self.centroids * self.centroids).sum(axis=1) / 2
        return {
            "base": self.base,
            "groups": self.groups,
            "centroids": self.centroids,
            "halves": halves,
            "residuals": self.residuals,
        }


def fit_clusters(
    points: Floats,
    rewards: Floats,
    seed: int,
    config: ClusterConfig = ClusterConfig(),
    weights: Floats | None = None,
) -> Clusters:
    """On points [n, d] and rewards [n, k] (NaN where not tried), each counting by `weights` [n, k]."""
    base = arm_means(rewards, weights)
    centroids: list[Floats] = []
    residuals: list[Floats] = []
    for number in range(config.seeds):
        left = rewards - base
        for size in config.sizes:
            if size >= len(points):
                break
            centres = kmeans(points, size, seed + number)
            nearest = nearest_centroid(points, centres)
            step = group_sums(left, nearest, size, config.strength, weights)
            left = left - step[nearest]
            centroids.append(centres)
            residuals.append(step / config.seeds)
    groups = np.cumsum([0, *(len(group) for group in centroids)])
    empty = np.empty((0, points.shape[1]))
    return Clusters(base, groups, np.concatenate([empty, *centroids]), np.concatenate([base[None][:0], *residuals]))


def nearest_centroid(points: Floats, centroids: Floats) -> Integers:
    """|c|²/2 - c·x is least."""
    halves = (centroids * centroids).sum(axis=1) / 2
    nearest: Integers = (halves - points @ centroids.T).argmin(axis=1)
    return nearest


def kmeans(points: Floats, size: int, seed: int, rounds: int = 15) -> Floats:
    """Centroids [size, d] of Lloyd's algorithm from distinct random points; an empty one stays where it was."""
    rng = np.random.default_rng(seed)
    centres = points[rng.choice(len(points), size, replace=False)].astype(np.float64)
    for _ in range(rounds):
        nearest = nearest_centroid(points, centres)
        order = np.argsort(nearest, kind="stable")
        present, starts = np.unique(nearest[order], return_index=True)
        sums = np.add.reduceat(points[order], starts, axis=0)
        counts = np.diff(np.append(starts, len(points)))
        centres[present] = sums / counts[:, None]
    return centres
