"""The teacher of learned routers: a task posterior times shrunk means, or trees on top of it where they pay.

Everything a student learns from is out of fold: no request's own reward is in its label. The trees
(ExtraTrees on extras, principal components, the posterior and the first teacher's scores) give out-of-bag
predictions. Which serves is chosen by the value of the out-of-fold decisions on the training rows; shares
between 0 and 1 can be tried too, and were no better (`docs/log.md`). Where no request has a task,
empirical-Bayes clusters stand in for the posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distill.arrays import Floats, Integers
from distill.classic.clusters import fit_clusters
from distill.classic.heads import Head, Mixture, Posterior, fit_mixture
from distill.classic.means import arm_means
from distill.evaluate.folds import stratified_folds
from distill.evaluate.values import realised
from distill.mathematics import softmax


@dataclass(frozen=True)
class TeacherConfig:
    """`blends`: shares of the trees that are tried. `components` of the sentence block that trees see."""

    c: float = 1.0
    folds: int = 4
    trees: int = 200
    leaf: int = 5
    components: int = 48
    blends: Sequence[float] = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Teacher:
    """`training` are out-of-fold scores of the training rows [n, k], `first_training` those of `first` alone.

    `first` is a Mixture or, without tasks, Clusters. `blend` is the share of the trees.
    """

    first: Head
    trees: Any
    basis: Floats
    blend: float
    training: Floats
    first_training: Floats
    tasks: tuple[str, ...] = ()
    blend_values: dict[float, float] = field(default_factory=dict)

    @property
    def posterior(self) -> Posterior | None:
        return self.first.posterior if isinstance(self.first, Mixture) else None

    def scores(self, states: Floats, extras: Floats) -> Floats:
        """Expected rewards [n, k] from states [n, d] and extras [n, e]."""
        first = self.first.scores(np.hstack([states, extras]))
        if self.blend == 0:
            return first
        rows = tree_rows(states @ self.basis, extras, self._shares(states, extras), first)
        result: Floats = self.blend * self.trees.predict(rows).reshape(first.shape) + (1 - self.blend) * first
        return result

    def _shares(self, states: Floats, extras: Floats) -> Floats:
        return _all_shares(self.first, np.hstack([states, extras]), self.tasks)


def fit_teacher(
    states: Floats,
    extras: Floats,
    rewards: Floats,
    tasks: tuple[tuple[str, ...], Integers],
    seed: int,
    config: TeacherConfig = TeacherConfig(),
) -> Teacher:
    """On states [n, d], extras [n, e] and rewards [n, k] (NaN where not tried); `tasks` as of the table."""
    rows = np.hstack([states, extras])
    out_of_fold, shares = _out_of_fold(rows, rewards, tasks, seed, config)
    first = _first(rows, rewards, tasks, seed, config)
    basis = _principal(states, config.components)
    trees = _trees(config, seed).fit(tree_rows(states @ basis, extras, shares, out_of_fold), filled(rewards))
    out_of_bag = trees.oob_prediction_.reshape(rewards.shape)  # of one arm scikit-learn drops the column
    values = {
        share: float(np.nanmean(realised(rewards, share * out_of_bag + (1 - share) * out_of_fold)))
        for share in config.blends
    }
    blend = max(values, key=lambda share: (values[share], -share))
    training = blend * out_of_bag + (1 - blend) * out_of_fold
    return Teacher(first, trees, basis, blend, training, out_of_fold, tasks[0], values)


def tree_rows(points: Floats, extras: Floats, shares: Floats, first: Floats) -> Floats:
    """What the trees read: principal components, extras, the posterior and the first teacher's scores."""
    return np.hstack([points, extras, shares, first]).astype(np.float32)


def filled(rewards: Floats) -> Floats:
    """Untried cells at the arm's mean, for learners that know no NaN."""
    return np.where(np.isnan(rewards), arm_means(rewards), rewards)


def _first(
    rows: Floats, rewards: Floats, tasks: tuple[tuple[str, ...], Integers], seed: int, config: TeacherConfig
) -> Head:
    names, numbers = tasks
    if len(np.unique(numbers[numbers >= 0])) < 2:
        return fit_clusters(rows, rewards, seed)
    return fit_mixture(rows, rewards, numbers, names, c=config.c)


def _out_of_fold(
    rows: Floats, rewards: Floats, tasks: tuple[tuple[str, ...], Integers], seed: int, config: TeacherConfig
) -> tuple[Floats, Floats]:
    """The first teacher's scores and its posterior for every row, each from a fit without that row's fold."""
    names, numbers = tasks
    scores = np.empty_like(rewards)
    shares = np.zeros((len(rows), len(names)))
    for training, other in stratified_folds(numbers, config.folds, seed):
        head = _first(rows[training], rewards[training], (names, numbers[training]), seed, config)
        scores[other] = head.scores(rows[other])
        shares[other] = _all_shares(head, rows[other], names)
    return scores, shares


def _all_shares(first: Head, rows: Floats, tasks: tuple[str, ...]) -> Floats:
    """The posterior over all `tasks` [n, t]: 0 for those that a fit never saw, and without a posterior."""
    shares = np.zeros((len(rows), len(tasks)))
    if isinstance(first, Mixture):
        shares[:, [tasks.index(task) for task in first.posterior.tasks]] = first.posterior.shares(rows)
    return shares


def _trees(config: TeacherConfig, seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(
        config.trees,
        min_samples_leaf=config.leaf,
        max_features=0.3,
        bootstrap=True,
        oob_score=True,
        n_jobs=-1,
        random_state=seed,
    )


def _principal(states: Floats, components: int) -> Floats:
    """The leading right singular vectors of the centred states, [d, components]."""
    centred = states - states.mean(axis=0)
    _, _, right = np.linalg.svd(centred, full_matrices=False)
    basis: Floats = np.ascontiguousarray(right[:components].T)
    return basis


def soft_labels(scores: Floats, temperature: float) -> Floats:
    """softmax(score / τ): what the student is trained on."""
    return softmax(scores / temperature)
