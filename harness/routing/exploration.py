"""Exploration: turns scores into the probability vector that is sampled; the only source of propensities.

The vector is the exact mixture of the draw: p(a) = (1 - ε) · [a is best] / |best| + ε / K. An ε draw of
its own comes first and marks explored decisions; its share is spread over all K workers, the best ones
included, so ε / K is the floor of every probability. Workers are taken in the order of their names: a
stored decision (JSON objects keep no order) can be drawn again from its scores and uniforms.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import msgspec

from pointsman.errors import BrokenInvariant
from pointsman.words import Forced


class Draw(msgspec.Struct, frozen=True):
    """What was drawn and from which probabilities.

    `draw` holds the uniforms: (that of ε, that of the worker), empty where the choice was forced.
    """

    probabilities: dict[str, float]
    chosen: str
    draw: tuple[float, ...] = ()
    explored: bool = False
    forced: Forced | None = None


class Ranking(msgspec.Struct, frozen=True):
    """What a draw needs to know of scores: all workers in the order of their names, and the best of them."""

    names: list[str]
    best: list[str]

    @classmethod
    def of(cls, scores: Mapping[str, float]) -> Ranking:
        """Raises `BrokenInvariant` where there is nobody, or a score is not finite."""
        return cls(*_names_and_best(scores))


def draw(scores: Mapping[str, float], epsilon: float, rng: random.Random, ranking: Ranking | None = None) -> Draw:
    """A worker drawn from the ε-mix over `scores`; the only one is forced. `ranking` is theirs, where it is known."""
    if len(scores) == 1:
        return forced(next(iter(scores)), "only_one")
    uniforms = (rng.random(), rng.random())
    names, best = _names_and_best(scores) if ranking is None else (ranking.names, ranking.best)
    chosen, explored = _chosen(names, best, epsilon, uniforms)
    return Draw(_mixture(names, best, epsilon), chosen, uniforms, explored)


def forced(worker: str, reason: Forced) -> Draw:
    """A choice that was none: probability 1, no draw, never used by estimates or gates."""
    return Draw({worker: 1.0}, worker, forced=reason)


def replay(scores: Mapping[str, float], epsilon: float, uniforms: Sequence[float]) -> Draw:
    """The draw that these uniforms made."""
    names, best = _names_and_best(scores)
    first, second = uniforms
    chosen, explored = _chosen(names, best, epsilon, (first, second))
    return Draw(_mixture(names, best, epsilon), chosen, (first, second), explored)


def probabilities(scores: Mapping[str, float], epsilon: float) -> dict[str, float]:
    """The probability of every worker under the ε-mix."""
    names, best = _names_and_best(scores)
    return _mixture(names, best, epsilon)


def _names_and_best(scores: Mapping[str, float]) -> tuple[list[str], list[str]]:
    if not scores:
        raise BrokenInvariant("no worker to draw from")
    if not all(map(math.isfinite, scores.values())):
        raise BrokenInvariant(f"scores must be finite: {dict(scores)}")
    names = sorted(scores)
    highest = max(scores.values())
    return names, [name for name in names if scores[name] == highest]


def _mixture(names: list[str], best: list[str], epsilon: float) -> dict[str, float]:
    if not 0 <= epsilon <= 1:
        raise BrokenInvariant(f"epsilon must be from 0 to 1: {epsilon}")
    floor = epsilon / len(names)
    mixture = dict.fromkeys(names, floor)
    share = (1 - epsilon) / len(best) + floor
    for name in best:
        mixture[name] = share
    return mixture


def _chosen(names: list[str], best: list[str], epsilon: float, uniforms: tuple[float, float]) -> tuple[str, bool]:
    explored = uniforms[0] < epsilon
    drawn_from = names if explored else best
    return drawn_from[int(uniforms[1] * len(drawn_from))], explored
