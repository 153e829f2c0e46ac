"""Logs of a router whose successor is to be valued: coverage of 95% intervals, doubly robust against the direct method.

Four workers; success depends on the request in a way that a linear reward model cannot follow. The log is an
ε-greedy router's; the candidate disagrees with it about half the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from pointsman.statistics.arrays import Floats, normal_interval
from pointsman.statistics.off_policy import LoggedChoices, deterministic, dr, dr_difference
from pointsman.statistics.ridge import cross_fitted

WORKERS = 4
FEATURES = 4
SKILLS = np.array([[1.0, 0.4, -0.6, 0.0], [-0.4, 1.0, 0.0, -0.6], [0.0, -0.6, 1.0, 0.4], [-0.6, 0.0, 0.4, 1.0]])
TRUTH_ROWS = 400_000


def success(x: Floats) -> Floats:
    """Probabilities [n, workers]: linear skill, and a bend that linear models miss."""
    bend = 0.5 * np.cos(2.5 * x)
    return 1 / (1 + np.exp(-(0.7 * x @ SKILLS.T + bend + 0.4)))


def incumbent(x: Floats) -> Floats:
    return deterministic((x @ SKILLS.T).argmax(axis=1), WORKERS)


def candidate(x: Floats) -> Floats:
    """It reads the requests otherwise, and has noticed part of the bend."""
    return deterministic((x @ SKILLS.T + 1.5 * x[:, [2, 3, 0, 1]] + 0.3 * np.cos(2.5 * x)).argmax(axis=1), WORKERS)


@dataclass(frozen=True)
class Truth:
    """Exact up to the sampling of its requests (± .001)."""

    candidate: float
    incumbent: float
    disagreements: float


@cache
def truth() -> Truth:
    x = np.random.default_rng(20_261).normal(size=(TRUTH_ROWS, FEATURES))
    chances, new, old = success(x), candidate(x), incumbent(x)
    values = [float((policy * chances).sum(axis=1).mean()) for policy in (new, old)]
    return Truth(values[0], values[1], float((new != old).any(axis=1).mean()))


@dataclass(frozen=True)
class Covered:
    """Shares of repetitions whose 95% interval held the truth."""

    dr: float
    dr_difference: float
    dm: float
    disagreements: float


def coverage(reps: int, n: int, epsilon: float, rng: np.random.Generator) -> Covered:
    known = truth()
    hits = np.zeros(3)
    for _ in range(reps):
        x = rng.normal(size=(n, FEATURES))
        new, old = candidate(x), incumbent(x)
        log = draw_log(x, old, epsilon, rng)
        q = cross_fitted(x, log.actions, log.rewards, WORKERS, rng)
        intervals = (dr(log, new, q), dr_difference(log, new, old, q), direct_interval(new, q))
        wanted = (known.candidate, known.candidate - known.incumbent, known.candidate)
        hits += [i.low <= value <= i.high for i, value in zip(intervals, wanted, strict=True)]
    shares = [float(share) for share in hits / reps]
    return Covered(shares[0], shares[1], shares[2], known.disagreements)


def draw_log(x: Floats, greedy: Floats, epsilon: float, rng: np.random.Generator) -> LoggedChoices:
    """What an ε-greedy router logs."""
    probabilities = (1 - epsilon) * greedy + epsilon / WORKERS
    actions = (probabilities.cumsum(axis=1) > rng.random((len(x), 1))).argmax(axis=1)
    rewards = (rng.random(len(x)) < success(x)[np.arange(len(x)), actions]).astype(float)
    return LoggedChoices(probabilities, actions, rewards)


def direct_interval(target: Floats, q: Floats):
    """The interval that somebody might put around the direct method, which the product does not offer."""
    return normal_interval((target * q).sum(axis=1), 0.05, "DM")
