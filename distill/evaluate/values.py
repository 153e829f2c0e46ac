"""Values of decisions on full-information rows, and the gap between the best single worker and the oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distill.arrays import Bools, Floats, Integers
from distill.classic.means import arm_means
from distill.mathematics import one_hot
from pointsman.statistics.arrays import Interval


def picks(scores: Floats, available: Bools | None = None) -> Integers:
    """The arm with the highest score per request, the first of equals; `available` [k] masks arms."""
    shown = scores if available is None else np.where(available, scores, -np.inf)
    chosen: Integers = shown.argmax(axis=1)
    return chosen


def realised(rewards: Floats, scores: Floats, available: Bools | None = None) -> Floats:
    """What the decision by `scores` earned per request; NaN where that arm was not tried."""
    earned: Floats = rewards[np.arange(len(rewards)), picks(scores, available)]
    return earned


def best_single(training: Floats, rewards: Floats) -> Floats:
    """What the worker with the best mean on the training rewards earned."""
    earned: Floats = rewards[:, int(arm_means(training).argmax())]
    return earned


def oracle(rewards: Floats) -> Floats:
    """The best realised reward per request: an upper bound, part of it luck."""
    earned: Floats = np.nanmax(rewards, axis=1)
    return earned


@dataclass(frozen=True)
class Gap:
    """(router - best single) / (oracle - best single), with a percentile interval over requests."""

    closed: float
    low: float
    high: float


def gap_closed(
    router: Floats, single: Floats, best: Floats, rng: np.random.Generator, *, draws: int = 2000, alpha: float = 0.05
) -> Gap:
    """From rewards per request; the ratio of means is resampled whole, so its noise is in the interval."""
    above, room = router - single, best - single
    ratios = []
    for _ in range(draws):
        rows = rng.integers(0, len(above), len(above))
        ratios.append(above[rows].mean() / max(room[rows].mean(), 1e-12))
    low, high = np.quantile(ratios, [alpha / 2, 1 - alpha / 2])
    return Gap(float(above.mean() / max(room.mean(), 1e-12)), float(low), float(high))


def shares(chosen: Integers, arms: int) -> Floats:
    """How often each arm is picked."""
    result: Floats = one_hot(chosen, arms).mean(axis=0)
    return result


def entropy(shares: Floats) -> float:
    """In nats: 0 where one arm gets all, ln k where all get the same."""
    used = shares[shares > 0]
    return float(-(used * np.log(used)).sum())


def two_sided(interval: Interval) -> list[float]:
    """The ends of an interval, rounded for a report."""
    return [round(interval.low, 4), round(interval.high, 4)]
