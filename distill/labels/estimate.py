"""How good each worker would be for each request, from what groups of like requests say.

Raw rewards of single requests are noise (of two runs of one cell 7.7% differ on recorded data), so an estimate is
the mean of like requests: by task where tasks are known (posterior × shrunk means), else by empirical-Bayes clusters.
Means are cross-fitted: a request's group is seen without the request's fold. Then, by `own_strength`, its own answers
are added: (strength · group + Σ w r) ÷ (strength + Σ w). At a strength of 20 the labels' own picks earned .71 of
llmrouter9 where its tasks allow .66: what is added is no more than the request's own luck, so the default is 200.

With enough drawn decisions the direct method's estimate q̂ is corrected (DR-learner; Kennedy, arXiv 2004.14497):

    S_a = q̂_a + 1[a = A] (R − q̂_A) / max(p, floor)

is regressed on the requests in place of R. A row's S alone is never a label. Below `doubly_robust_from` draws the
correction's variance costs more than the bias that it takes away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from distill.arrays import Floats, Integers
from distill.classic.clusters import fit_clusters, kmeans, nearest_centroid
from distill.classic.heads import fit_posterior
from distill.classic.means import STRENGTH, arm_means, shrunk_means
from distill.evaluate.folds import stratified_folds
from distill.labels.evidence import Asked, Evidence
from distill.labels.parts import groups
from distill.mathematics import cell_weights, one_hot

Method = Literal["direct", "doubly robust"]


@dataclass(frozen=True)
class EstimateConfig:
    """`floor` bounds a correction's weight; `c` is scikit-learn's for the task posterior."""

    own_strength: float = 200.0
    doubly_robust_from: int = 2_000
    floor: float = 0.05
    folds: int = 4
    c: float = 1.0
    seed: int = 1


@dataclass(frozen=True, eq=False)
class Estimates:
    """`mean` in [0, 1] and its standard deviation, both [n, k]; `grouped` says by what requests are alike."""

    mean: Floats
    deviation: Floats
    method: Method
    grouped: Literal["tasks", "clusters"]


class _Fold(Protocol):
    @property
    def other(self) -> Integers: ...

    def scores(self, values: Floats, weights: Floats) -> Floats:
        """Means of the other rows' groups [other, k], from the training rows of `values` and `weights` [n, k]."""
        ...


def estimate(points: Floats, evidence: Evidence, config: EstimateConfig = EstimateConfig()) -> Estimates:
    """On features `points` [n, d] of the requests of `evidence`."""
    values, weights = evidence.matrices()
    names, numbers = task_numbers(evidence.asked)
    by_task = len(names) > 1 and (numbers >= 0).mean() >= 0.5
    texts = [str(number) for number in groups(evidence.asked)]
    strata = numbers if by_task else np.zeros(len(values), np.int64)
    cuts = list(stratified_folds(strata, config.folds, config.seed, texts))
    made: list[_Fold] = [
        _TaskFold.fit(points, training, other, numbers, names, config.c)
        if by_task
        else _ClusterFold(points, training, other, config.seed)
        for training, other in cuts
    ]
    direct = _means(made, values, weights)
    robust = int(evidence.drawn.sum()) >= max(config.doubly_robust_from, 1)
    if robust:
        values, weights = pseudo_outcomes(direct, evidence, config.floor)
        group = np.clip(_means(made, values, weights), 0, 1)
    else:
        group = np.clip(direct, 0, 1)
    shares = _shares(made, len(values)) if by_task else _one_level(points, config.seed)
    deviation = _deviation(shares, values, weights, group)
    return Estimates(
        _with_own(group, evidence, config.own_strength),
        deviation,
        "doubly robust" if robust else "direct",
        "tasks" if by_task else "clusters",
    )


def pseudo_outcomes(direct: Floats, evidence: Evidence, floor: float) -> tuple[Floats, Floats]:
    """S [n, k] with its weights: what is known as it is, and of a drawn decision a corrected guess for every arm.

    Corrected guesses vary more than answers; each arm's weigh less by that ratio, the same for all requests.
    """
    values, weights = evidence.matrices()
    drawn = evidence.drawn
    rows, columns = evidence.rows[drawn], evidence.columns[drawn]
    made = direct[rows].copy()
    at = np.arange(len(rows))
    surprise = evidence.values[drawn] - direct[rows, columns]
    made[at, columns] += surprise / np.maximum(evidence.propensities[drawn], floor)
    spread = np.maximum((made - direct[rows]).var(axis=0), 1e-6)
    answers = max(float(surprise.var()), 1e-6)
    counted = evidence.weights[drawn][:, None] * np.minimum(1.0, answers / spread)
    kept = weights[rows]
    kept[at, columns] -= np.minimum(evidence.weights[drawn], kept[at, columns])  # the draw itself is in `made`
    total = counted + kept
    mixed = (counted * made + kept * np.nan_to_num(values[rows])) / np.where(total > 0, total, 1)
    values[rows], weights[rows] = mixed, total
    return values, weights


def task_numbers(asked: Sequence[Asked]) -> tuple[tuple[str, ...], Integers]:
    """The names of the tasks and each request's; -1 where it has none."""
    names = tuple(sorted({one.task for one in asked if one.task is not None}))
    place = {name: number for number, name in enumerate(names)}
    return names, np.array([-1 if one.task is None else place[one.task] for one in asked], np.int64)


@dataclass(frozen=True, eq=False)
class _TaskFold:
    training: Integers
    other: Integers
    members: Floats
    shares: Floats

    @classmethod
    def fit(
        cls, points: Floats, training: Integers, other: Integers, numbers: Integers, names: tuple[str, ...], c: float
    ) -> _TaskFold:
        posterior = fit_posterior(points[training], numbers[training], names, c=c, iterations=60)
        kept = [names.index(task) for task in posterior.tasks]
        known = one_hot(numbers[training], len(names))[:, kept]
        guessed = posterior.shares(points[training])
        members = np.where((numbers[training] >= 0)[:, None], known, guessed)
        shares = np.zeros((len(other), len(names)))
        shares[:, kept] = posterior.shares(points[other])
        full = np.zeros((len(training), len(names)))
        full[:, kept] = members
        return cls(training, other, full, shares)

    def scores(self, values: Floats, weights: Floats) -> Floats:
        means = shrunk_means(self.members, values[self.training], weights=weights[self.training])
        result: Floats = self.shares @ means
        return result


@dataclass(frozen=True, eq=False)
class _ClusterFold:
    points: Floats
    training: Integers
    other: Integers
    seed: int

    def scores(self, values: Floats, weights: Floats) -> Floats:
        rows = self.training
        found = fit_clusters(self.points[rows], values[rows], self.seed, weights=weights[rows])
        return found.scores(self.points[self.other])


def _means(folds: Sequence[_Fold], values: Floats, weights: Floats) -> Floats:
    result = np.empty(values.shape)
    for fold in folds:
        result[fold.other] = fold.scores(values, weights)
    return result


def _shares(folds: Sequence[_Fold], rows: int) -> Floats:
    parts = [fold for fold in folds if isinstance(fold, _TaskFold)]
    result = np.zeros((rows, parts[0].shares.shape[1]))
    for fold in parts:
        result[fold.other] = fold.shares
    return result


def _one_level(points: Floats, seed: int) -> Floats:
    """Clusters of about forty requests, as shares of 0 and 1."""
    size = int(np.clip(len(points) // 40, 1, 64))
    return one_hot(nearest_centroid(points, kmeans(points, size, seed)), size)


def _deviation(shares: Floats, values: Floats, weights: Floats, group: Floats) -> Floats:
    """√(variance of an answer ÷ (answers of the group + the prior's)), [n, k]."""
    counted = cell_weights(values, weights)
    variance = arm_means((np.nan_to_num(values) - group) ** 2, counted)
    answers = shares @ (shares.T @ counted)
    result: Floats = np.sqrt(np.maximum(variance, 1e-4) / (answers + STRENGTH))
    return result


def _with_own(group: Floats, evidence: Evidence, strength: float) -> Floats:
    """The group's estimate moved towards the request's own answers."""
    values, weights = evidence.matrices()
    own = cell_weights(values, weights)
    result: Floats = (strength * group + own * np.nan_to_num(values)) / np.maximum(strength + own, 1e-12)
    return np.where(strength + own > 0, result, group)
