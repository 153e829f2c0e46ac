"""Fitted heads over feature rows, dense or sparse: from features [n, f] to scores [n, k].

Each is a frozen value with `scores(rows)` and `tensors()`, the names that `harness.routing.classic_model`
serves by. They know no arms: whoever holds one keeps the endpoint versions of its columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from distill.arrays import Floats, Integers
from distill.classic.means import shrunk_means
from distill.mathematics import one_hot, softmax
from distill.threads import one_thread
from pointsman.errors import UserError


class Head(Protocol):
    def scores(self, rows: Any) -> Floats: ...

    def tensors(self) -> dict[str, Any]: ...


@dataclass(frozen=True, eq=False)
class Posterior:
    """Multinomial logistic regression over `tasks`: shares = softmax(x W + b)."""

    tasks: tuple[str, ...]
    weight: Floats
    bias: Floats

    def shares(self, rows: Any) -> Floats:
        return softmax(np.asarray(rows @ self.weight) + self.bias)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Probability-weighted values: softmax(x W + b) V, V [t, k] the shrunk means per task."""

    posterior: Posterior
    values: Floats

    def scores(self, rows: Any) -> Floats:
        result: Floats = self.posterior.shares(rows) @ self.values
        return result

    def tensors(self) -> dict[str, Any]:
        return {"weight": self.posterior.weight, "bias": self.posterior.bias, "values": self.values}


@dataclass(frozen=True, eq=False)
class Linear:
    """x W + b; with the link `logistic` the sigmoid of it."""

    weight: Floats
    bias: Floats
    link: Literal["linear", "logistic"] = "linear"

    def scores(self, rows: Any) -> Floats:
        result: Floats = np.asarray(rows @ self.weight) + self.bias
        return result if self.link == "linear" else 1 / (1 + np.exp(-result))

    def tensors(self) -> dict[str, Any]:
        return {"weight": self.weight, "bias": self.bias}


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The mean reward of the `count` nearest by cosine; `train` [n, d] has rows of length 1."""

    train: Floats
    rewards: Floats
    count: int

    def scores(self, rows: Floats) -> Floats:
        near = rows.astype(np.float32) @ self.train.T
        chosen = np.argpartition(near, near.shape[1] - self.count, axis=1)[:, -self.count :]
        result: Floats = self.rewards[chosen].mean(axis=1)
        return result

    def tensors(self) -> dict[str, Any]:
        return {"train": self.train, "rewards": self.rewards}


def fit_posterior(rows: Any, numbers: Integers, tasks: tuple[str, ...], *, c: float, iterations: int) -> Posterior:
    """On the rows whose task is known. `c` is scikit-learn's inverse regularisation."""
    from sklearn.linear_model import LogisticRegression

    known = np.flatnonzero(numbers >= 0)
    present = np.unique(numbers[known])
    if len(present) < 2:
        raise UserError(f"a task classifier needs requests of at least two tasks, found {len(present)}")
    # float32 halves the fit's time; what is kept and served is float64
    fitted = LogisticRegression(C=c, max_iter=iterations, tol=1e-3)
    with one_thread():
        fitted.fit(rows[known].astype(np.float32), numbers[known])
    weight, bias = fitted.coef_.T.astype(np.float64), fitted.intercept_.astype(np.float64)
    if len(present) == 2:  # scikit-learn keeps one row for two classes
        weight, bias = np.hstack([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    return Posterior(tuple(tasks[number] for number in present), np.ascontiguousarray(weight), bias)


def fit_mixture(
    rows: Any,
    rewards: Floats,
    numbers: Integers,
    tasks: tuple[str, ...],
    *,
    c: float,
    weights: Floats | None = None,
) -> Mixture:
    """D0 of `docs/papers.md`: a task posterior times shrunk means. Tasks are used here, never at prediction."""
    posterior = fit_posterior(rows, numbers, tasks, c=c, iterations=60)
    kept = [tasks.index(task) for task in posterior.tasks]
    members = one_hot(numbers, len(tasks))[:, kept]
    return Mixture(posterior, shrunk_means(members, rewards, weights=weights))


def fit_ridge(rows: Any, rewards: Floats, *, alpha: float) -> Linear:
    """One ridge regression per arm, on the requests it was tried on."""
    from sklearn.linear_model import Ridge

    fits = []
    for column in rewards.T:
        tried = np.flatnonzero(~np.isnan(column))
        fits.append(Ridge(alpha=alpha, solver="lsqr", tol=1e-6).fit(rows[tried], column[tried]))
    return Linear(np.stack([fit.coef_ for fit in fits], axis=1), np.array([fit.intercept_ for fit in fits]))


def fit_logistic(rows: Any, rewards: Floats, *, c: float) -> Linear:
    """One logistic regression per arm; a reward r counts as r of a success and 1 - r of a failure."""
    from sklearn.linear_model import LogisticRegression

    weights, biases = [], []
    for column in rewards.T:
        tried = np.flatnonzero(~np.isnan(column))
        doubled = _doubled(rows[tried])
        outcome = np.repeat([1, 0], len(tried))
        share = np.concatenate([column[tried], 1 - column[tried]])
        with one_thread():
            fitted = LogisticRegression(C=c, max_iter=100).fit(doubled, outcome, sample_weight=share)
        weights.append(fitted.coef_[0])
        biases.append(fitted.intercept_[0])
    return Linear(np.stack(weights, axis=1), np.array(biases), "logistic")


def _doubled(rows: Any) -> Any:
    """The rows twice, one copy below the other, sparse or dense as they are."""
    from scipy.sparse import issparse, vstack

    return vstack([rows, rows]).tocsr() if issparse(rows) else np.vstack([rows, rows])


def fit_neighbours(points: Floats, rewards: Floats, *, count: int) -> Neighbours:
    """On the requests that every arm was tried on."""
    full = np.flatnonzero(~np.isnan(rewards).any(axis=1))
    if len(full) < count:
        raise UserError(f"nearest neighbours: {count} wanted of only {len(full)} requests with a reward per arm")
    return Neighbours(points[full].astype(np.float32), rewards[full], count)
