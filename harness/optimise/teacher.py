"""Smoothed rewards: what each worker would earn on a request, by the rewards on requests like it.

One outcome is mostly luck; the mean over neighbours is not. A leave-one-out nearest-neighbour mean on hashed word
and shape features, shrunk towards the worker's mean on the row's task where rows have tasks, else towards its mean
over all rows. Used to tell which worker a training row should have gone to; no bound or interval rests on it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from zlib import crc32

import numpy as np

from harness.optimise.rows import PLAIN, Floats, Objective, Rows

DIMENSIONS = 4096
NEIGHBOURS = 20
PRIOR = 0.5  # weight of the task's or overall mean, in units of one identical neighbour
TASK_PRIOR = 10.0  # rows' worth of the overall mean in a task's mean
_WORD = re.compile(r"[^\W\d_]{2,}")
_CHARS = 4_000


def features(texts: Sequence[str]) -> Floats:
    """Unit rows of shape (texts, `DIMENSIONS`): hashed words, pairs of words, and threes of the text's shape.

    The shape of a text is itself with runs of letters as `a` and of digits as `0`: it tells a table, a formula or
    an address whatever stands in it.
    """
    matrix = np.zeros((len(texts), DIMENSIONS))
    for index, text in enumerate(texts):
        for feature, count in _counted(text[:_CHARS]).items():
            matrix[index, crc32(feature.encode("utf-8", "surrogatepass")) % DIMENSIONS] += 1 + np.log(count)
    return matrix


def weighted(matrix: Floats, by: Floats) -> Floats:
    """`matrix` by inverse document frequency over the rows of `by`, rows to unit length."""
    held = (by > 0).sum(axis=0)
    scaled = matrix * np.log((1 + len(by)) / (1 + held))
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit: Floats = scaled / np.where(lengths > 0, lengths, 1.0)
    return unit


@dataclass(frozen=True, eq=False)
class Teacher:
    """Smoothed utilities of training rows."""

    rows: Rows
    objective: Objective = PLAIN
    neighbours: int = NEIGHBOURS

    @cached_property
    def similarity(self) -> Floats:
        """Cosine between training rows, shape (n, n), 0 on the diagonal."""
        unit = weighted(self._raw, self._raw)
        similar: Floats = unit @ unit.T
        np.fill_diagonal(similar, 0.0)
        return similar

    @cached_property
    def values(self) -> Floats:
        """Smoothed utility, shape (n, workers): a row's own outcome has no part in it."""
        return self._smoothed(self.similarity, self._task_means([row.task for row in self.rows.rows]))

    def predict(self, texts: Sequence[str], tasks: Sequence[str | None] | None = None) -> Floats:
        """Smoothed utility of other requests: the router without cards that this amounts to."""
        similar = weighted(features(texts), self._raw) @ weighted(self._raw, self._raw).T
        return self._smoothed(similar, self._task_means(tasks or [None] * len(texts)))

    @cached_property
    def margins(self) -> Floats:
        """By row and worker: its value less that of the best other one."""
        ordered = np.sort(self.values, axis=1)
        best, second = ordered[:, -1:], ordered[:, -2:-1] if ordered.shape[1] > 1 else ordered[:, -1:]
        return self.values - np.where(self.values == best, second, best)

    @cached_property
    def _raw(self) -> Floats:
        return features(self.rows.texts)

    @cached_property
    def _utilities(self) -> Floats:
        return self.rows.utilities(self.objective)

    def _smoothed(self, similar: Floats, prior: Floats) -> Floats:
        k = min(self.neighbours, similar.shape[1])
        near = np.argpartition(-similar, k - 1, axis=1)[:, :k]
        weights = np.maximum(np.take_along_axis(similar, near, axis=1), 0.0)
        sums = np.einsum("nk,nkw->nw", weights, self._utilities[near])
        smoothed: Floats = (sums + PRIOR * prior) / (weights.sum(axis=1, keepdims=True) + PRIOR)
        return smoothed

    def _task_means(self, tasks: Sequence[str | None]) -> Floats:
        overall = self._utilities.mean(axis=0)
        means: dict[str | None, Floats] = {None: overall}
        own = np.array([row.task or "" for row in self.rows.rows])
        for task in {task for task in tasks if task}:
            of = self._utilities[own == task]
            means[task] = (of.sum(axis=0) + TASK_PRIOR * overall) / (len(of) + TASK_PRIOR)
        return np.array([means.get(task, overall) for task in tasks]).reshape(len(tasks), len(overall))


def _counted(text: str) -> Counter[str]:
    words = [word.lower() for word in _WORD.findall(text)]
    shape = re.sub(r"\s+", " ", re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", "a", text)))
    found: Counter[str] = Counter(words)
    found.update(f"{one} {two}" for one, two in pairwise(words))
    found.update(f"#{shape[i : i + 3]}" for i in range(len(shape) - 2))
    return found
