"""The best router without cards that the same rows give: what optimised cards have to beat.

Best single worker, nearest neighbours on words and shapes (10, 20, 40 of them), ridge regression on the same features,
and, where rows carry a task, a task classifier with each task's mean rewards: each valued by five-fold cross-validation
on the rows, the best one fitted on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harness.optimise.rows import Objective, Rows
from harness.optimise.teacher import Teacher, features, weighted

FOLDS = 5
Predict = Callable[[Rows, Sequence[str]], np.ndarray]


def best_single(rows: Rows, texts: Sequence[str]) -> np.ndarray:
    return np.tile(rows.rewards.mean(axis=0), (len(texts), 1))


def _neighbours(k: int) -> Predict:
    def predict(rows: Rows, texts: Sequence[str]) -> np.ndarray:
        return Teacher(rows, Objective(), k).predict(texts)

    return predict


def _by_task(rows: Rows, texts: Sequence[str]) -> np.ndarray:
    """A task classifier (neighbours' votes), and each task's mean rewards weighted by its probability."""
    tasks = sorted({row.task or "" for row in rows.rows})
    own = np.array([tasks.index(row.task or "") for row in rows.rows])
    votes = np.eye(len(tasks))[own]
    posterior = Teacher(Rows(tuple(tasks), rows.rows, votes, np.full(votes.shape, np.nan))).predict(texts)
    means = np.array([rows.rewards[own == task].mean(axis=0) for task in range(len(tasks))])
    return posterior @ means


def _ridge(penalty: float) -> Predict:
    def predict(rows: Rows, texts: Sequence[str]) -> np.ndarray:
        raw = features(rows.texts)
        known, asked = weighted(raw, raw), weighted(features(texts), raw)
        means = rows.rewards.mean(axis=0)
        kernel = known @ known.T + penalty * np.eye(len(known))
        return means + asked @ known.T @ np.linalg.solve(kernel, rows.rewards - means)

    return predict


METHODS: dict[str, Predict] = {
    "best single": best_single,
    "task classifier": _by_task,
    **{f"{k} neighbours": _neighbours(k) for k in (10, 20, 40)},
    **{f"ridge {penalty:g}": _ridge(penalty) for penalty in (0.3, 1.0, 3.0)},
}


def chosen(rows: Rows, seed: int) -> tuple[str, dict[str, float]]:
    """The method of the best cross-validated value, and every method's value."""
    folds = np.random.default_rng(seed).permutation(len(rows)) % FOLDS
    values = {}
    for name, method in METHODS.items():
        earned = []
        for fold in range(FOLDS):
            inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            part = rows.take(outside)
            picks = method(rows.take(inside), part.texts).argmax(axis=1)
            earned.append(part.rewards[np.arange(len(part)), picks])
        values[name] = round(float(np.concatenate(earned).mean()), 4)
    return max(values, key=lambda name: values[name]), values


def policy(rows: Rows, method: str, texts: Sequence[str]) -> np.ndarray:
    """One-hot choices of a method fitted on all of `rows`."""
    picks = METHODS[method](rows, texts).argmax(axis=1)
    return np.eye(len(rows.workers))[picks]
