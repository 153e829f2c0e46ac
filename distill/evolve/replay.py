"""Fitness by replay of full-information rows: what the serving decision (arg max) would have earned.

Every candidate of a generation is scored on the same requests (common random numbers), all of them in one
matrix product over the cached states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from distill.arrays import Floats, Integers
from pointsman.errors import UserError

_CELLS = 4_000_000  # logits held at a time


@dataclass(frozen=True, eq=False)
class Fitness:
    """Per candidate: `shaped` ranks, `pure` is the mean reward alone. Both are logged."""

    shaped: Floats
    pure: Floats


class Problem(Protocol):
    """What a search evaluates: replay here; episodes of the engine implement the same."""

    def fitness(self, candidates: Floats, generation: int) -> Fitness:
        """Of candidates [p, n]. `generation` seeds whatever is drawn, alike for all candidates."""
        ...

    def rewards(self, candidate: Floats) -> Floats:
        """One number per held-in unit (request, episode): what pairing and validation need."""
        ...


@dataclass(frozen=True)
class Shaping:
    """Terms beside the reward. `price_weight` is reward per USD of `prices`; `entropy_weight` Trinity's 0.15."""

    price_weight: float = 0.0
    entropy_weight: float = 0.0


@dataclass(frozen=True, eq=False)
class HeadReplay:
    """Candidates are flat index heads [k · d] (rows of arms). `states` [n, d] float32, `rewards` [n, k] full.

    `sample` requests are drawn anew each generation (0: all of them). `prices` [k] is USD per request.
    """

    states: Floats
    rewards_table: Floats
    seed: int = 0
    sample: int = 0
    prices: Floats | None = None
    shaping: Shaping = Shaping()

    def __post_init__(self) -> None:
        if np.isnan(self.rewards_table).any():
            raise UserError("replay needs a reward of every arm for every request")

    def fitness(self, candidates: Floats, generation: int) -> Fitness:
        rows = self._rows(generation)
        states = self.states if rows is None else self.states[rows]
        table = self.rewards_table if rows is None else self.rewards_table[rows]
        pure = np.zeros(len(candidates))
        counts = np.zeros((len(candidates), table.shape[1]))
        for first, picks in _picks(states, candidates, table.shape[1]):
            part = table[first : first + len(picks)]
            pure += np.take_along_axis(part, picks, axis=1).sum(axis=0)
            counts += _counts(picks, table.shape[1])
        pure /= len(states)
        return Fitness(self._shaped(pure, counts / len(states)), pure)

    def rewards(self, candidate: Floats) -> Floats:
        picks = np.concatenate([part for _, part in _picks(self.states, candidate[None], self.rewards_table.shape[1])])
        earned: Floats = np.take_along_axis(self.rewards_table, picks, axis=1)[:, 0]
        return earned

    def _shaped(self, pure: Floats, shares: Floats) -> Floats:
        shaped = pure.copy()
        if self.prices is not None and self.shaping.price_weight:
            shaped -= self.shaping.price_weight * (shares @ self.prices)
        if self.shaping.entropy_weight:
            logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
            shaped -= self.shaping.entropy_weight * (shares * logs).sum(axis=1)
        return shaped

    def _rows(self, generation: int) -> Integers | None:
        if not 0 < self.sample < len(self.states):
            return None
        rng = np.random.default_rng([self.seed, generation])
        drawn: Integers = rng.choice(len(self.states), self.sample, replace=False)
        return drawn


def _picks(states: Floats, candidates: Floats, arms: int) -> list[tuple[int, Integers]]:
    """(first row, arms picked [rows, p]) in blocks of rows."""
    people = len(candidates)
    rows = candidates.reshape(people * arms, -1).astype(np.float32)
    block = max(1, _CELLS // len(rows))
    found = []
    for first in range(0, len(states), block):
        logits = states[first : first + block] @ rows.T
        found.append((first, logits.reshape(-1, people, arms).argmax(axis=2)))
    return found


def _counts(picks: Integers, arms: int) -> Floats:
    """How often each candidate picked each arm, [p, k]."""
    people = picks.shape[1]
    flat = picks + np.arange(people) * arms
    counts: Floats = np.bincount(flat.ravel(), minlength=people * arms).reshape(people, arms).astype(np.float64)
    return counts
