"""Which candidate? Sequential halving on paired items, under a fixed budget of evaluations.

Karnin, Koren & Somekh 2013, as TRIPLE-SH uses it for prompts (arXiv 2402.09723): ⌈log₂ K⌉ rounds with an equal share
of the budget; all candidates alive answer the same new items, and the better half by mean over every item so far
stays. Pairing cancels items' difficulty. It finds a good candidate and says nothing of its value: that takes a
certification set which the search never saw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np
from numpy.typing import ArrayLike

from pointsman.errors import UserError
from pointsman.statistics.arrays import Floats

Evaluate = Callable[[Sequence[int], Sequence[int]], ArrayLike]
"""Scores [len(candidates), len(items)] for these candidates on these items."""


@dataclass(frozen=True)
class Round:
    """`alive` answered `items` more items each; `means` are theirs over all items so far."""

    alive: tuple[int, ...]
    items: int
    means: tuple[float, ...]


@dataclass(frozen=True)
class Halved:
    """`ranking`: candidates, best first, by how long they stayed and then by mean. `evaluations` were spent."""

    ranking: tuple[int, ...]
    rounds: tuple[Round, ...]
    evaluations: int

    @property
    def winner(self) -> int:
        return self.ranking[0]


def plan(candidates: int, budget: int, items: int) -> list[tuple[int, int]]:
    """(candidates alive, new items each) for every round, within the budget and the items that there are."""
    if candidates < 1 or budget < candidates:
        raise UserError(f"halving: {candidates} candidates need a budget of at least one item each, got {budget}")
    rounds = max(1, ceil(log2(candidates)))
    planned: list[tuple[int, int]] = []
    alive, left, unused = candidates, budget, items
    for number in range(rounds):
        new = min(left // (rounds - number) // alive, unused)
        planned.append((alive, new))
        left, unused, alive = left - new * alive, unused - new, ceil(alive / 2)
    return planned


def sequential_halving(
    evaluate: Evaluate, candidates: int, items: int, budget: int, rng: np.random.Generator
) -> Halved:
    """Runs the plan; items are taken in a random order, ties go to the earlier candidate."""
    order = [int(item) for item in rng.permutation(items)]
    alive = list(range(candidates))
    scores: dict[int, list[float]] = {candidate: [] for candidate in alive}
    out: list[int] = []
    rounds: list[Round] = []
    for count, new in plan(candidates, budget, items):
        _score(evaluate, alive, order[:new], scores)
        order = order[new:]
        means = {candidate: float(np.mean(scores[candidate])) if scores[candidate] else 0.0 for candidate in alive}
        rounds.append(Round(tuple(alive), new, tuple(means.values())))
        ranked = sorted(alive, key=lambda candidate: (-means[candidate], candidate))
        keep = ceil(count / 2)
        alive, out = sorted(ranked[:keep]), ranked[keep:] + out
    final = sorted(alive, key=lambda candidate: (-float(np.mean(scores[candidate] or [0.0])), candidate))
    return Halved(tuple(final + out), tuple(rounds), sum(len(seen) for seen in scores.values()))


def _score(evaluate: Evaluate, alive: list[int], items: list[int], scores: dict[int, list[float]]) -> None:
    if not items:
        return
    table: Floats = np.asarray(evaluate(alive, items), dtype=np.float64)
    if table.shape != (len(alive), len(items)):
        raise UserError(f"halving: expected scores of shape {(len(alive), len(items))}, got {table.shape}")
    for candidate, row in zip(alive, table, strict=True):
        scores[candidate].extend(row.tolist())
