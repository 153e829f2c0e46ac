"""A new worker's values per latent type, from few rewards on probes: without retraining, without the winner's curse.

Its raw means on a hundred probes do harm: what looks best by luck is chosen. The estimate is, per type, a
mixture of the known workers' values there (each blurred by `spread`), weighted by how well each known
worker explains the probes of the other types, and then by this type's. Probes are paired: what the known
workers' mean says of a probe's difficulty is taken off first. Recipe and its figures: `docs/papers.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from distill.arrays import Floats, Integers
from distill.mathematics import softmax
from pointsman.errors import UserError


@dataclass(frozen=True)
class FingerprintConfig:
    """`noise` is one probe's variance, `power` tempers the likelihood, `floor` keeps every worker possible."""

    spread: float = 0.05
    noise: float = 0.15
    power: float = 0.3
    floor: float = 0.02
    pairing: float = 0.75


@dataclass(frozen=True, eq=False)
class Values:
    """Posterior mean and variance per type, [J]."""

    mean: Floats
    variance: Floats


@dataclass(frozen=True, eq=False)
class Probes:
    """`types` [m], the new worker's `rewards` [m], and the known workers' on the same probes [m, k]."""

    types: Integers
    rewards: Floats
    known: Floats


def values_from_probes(probes: Probes, known_values: Floats, config: FingerprintConfig = FingerprintConfig()) -> Values:
    """`known_values` [k, J] are what the router holds of the known workers."""
    if len(known_values) == 0:
        raise UserError("a fingerprint needs at least one known worker to compare with")
    counts, means = _paired_means(probes, known_values, config)
    noise = config.noise / np.maximum(counts, 1)
    variance = config.spread**2 + noise
    fit = -0.5 * (means[:, None] - known_values.T) ** 2 / variance[:, None] * (counts > 0)[:, None]
    others = fit.sum(axis=0) - fit
    prior = config.floor + np.exp(others - others.max(axis=1, keepdims=True))
    weights = config.power * np.log(prior) + fit
    weights = softmax(weights, axis=1)
    gain = np.where(counts > 0, config.spread**2 / variance, 0)[:, None]
    centres = known_values.T + gain * (means[:, None] - known_values.T)
    mean = (weights * centres).sum(axis=1)
    within = config.spread**2 * (1 - gain)
    spread = (weights * (within + (centres - mean[:, None]) ** 2)).sum(axis=1)
    return Values(mean, spread)


def values_from_card(card: Floats, known_cards: Floats, known_values: Floats, temperature: float = 0.1) -> Values:
    """Before any probe: the known workers' values, weighted by the likeness of their cards' embeddings."""
    weights = softmax(known_cards @ card / temperature)
    mean = weights @ known_values
    return Values(mean, weights @ (known_values - mean) ** 2)


def stratified_probes(types: Integers, count: int, rng: np.random.Generator) -> Integers:
    """Rows of `types` [n] in turn from every type, `count` of them."""
    queues = _queues(types, rng)
    rows: list[int] = []
    while len(rows) < count and any(queues.values()):
        rows += [queue.pop() for queue in queues.values() if queue]
    return np.array(rows[:count], np.int64)


def next_probes(
    values: Values, best: Floats, shares: Floats, counts: Integers, size: int, config: FingerprintConfig
) -> list[int]:
    """Types that `size` more probes should have: three each where they are most likely to change a decision.

    The knowledge gradient of a normal belief: share · s (φ(z) + z Φ(z)), z = -|mean - best| / s, s² the fall
    in variance that three probes bring. `best` [J] is the best known worker's value.
    """
    from scipy.stats import norm

    variance = np.maximum(values.variance, 1e-9)
    fall = np.sqrt(variance**2 / (variance + config.noise / 3))
    z = -np.abs(values.mean - best) / fall
    worth = shares * fall * (norm.pdf(z) + z * norm.cdf(z)) / np.sqrt(1 + counts / max(counts.mean(), 1))
    order: Sequence[int] = np.argsort(-worth, kind="stable").tolist()
    return [kind for kind in order for _ in range(3)][:size]


def _paired_means(probes: Probes, known_values: Floats, config: FingerprintConfig) -> tuple[Integers, Floats]:
    """Count and mean per type of rewards less the paired part of the known workers' mean residual."""
    types = known_values.shape[1]
    residual = (probes.known - known_values.T[probes.types]).mean(axis=1)
    adjusted = probes.rewards - config.pairing * residual
    counts = np.bincount(probes.types, minlength=types)
    sums = np.bincount(probes.types, weights=adjusted, minlength=types)
    return counts, sums / np.maximum(counts, 1)


def _queues(types: Integers, rng: np.random.Generator) -> dict[int, list[int]]:
    return {int(kind): rng.permutation(np.flatnonzero(types == kind)).tolist() for kind in np.unique(types)}


def adaptive_probes(
    types: Integers,
    rewards: Floats,
    known: Floats,
    known_values: Floats,
    count: int,
    rng: np.random.Generator,
    config: FingerprintConfig = FingerprintConfig(),
    first: float = 0.4,
) -> tuple[Integers, Values]:
    """Chooses `count` rows to probe: a stratified first part, then by `next_probes` in rounds of nine.

    `rewards` [n] and `known` [n, k] are read for chosen rows only. Gives the rows and the final values.
    """
    shares = np.bincount(types, minlength=known_values.shape[1]) / len(types)
    rows = stratified_probes(types, min(count, max(int(first * count), 1)), rng).tolist()
    left = _queues(types, rng)
    for kind in left:
        left[kind] = [row for row in left[kind] if row not in set(rows)]

    def values() -> Values:
        chosen = np.array(rows)
        return values_from_probes(Probes(types[chosen], rewards[chosen], known[chosen]), known_values, config)

    while len(rows) < count and any(left.values()):
        counts = np.bincount(types[np.array(rows)], minlength=known_values.shape[1])
        wanted = next_probes(values(), known_values.max(axis=0), shares, counts, len(shares) * 3, config)
        size = min(9, count - len(rows))
        rows += islice((left[kind].pop() for kind in wanted if left.get(kind)), size)
    return np.array(rows), values()
