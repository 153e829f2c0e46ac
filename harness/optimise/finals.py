"""Choosing among candidates on validation rows: paired sequential halving, then the earlier of two that are alike.

The scores that come out are those of a contest: the winner's is too high (the winner's curse), and no report shows
it as quality.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.optimise.candidate import Candidate
from harness.optimise.evaluate import Evaluator
from harness.optimise.rows import Floats, Objective, Rows
from pointsman.statistics.halving import sequential_halving

LEAST_SHARED = 10  # rows on which two candidates must both have been tried to be called alike


@dataclass(frozen=True)
class Standing:
    """A candidate after a contest: its place (0 is first), mean utility and number of rows that it was tried on."""

    candidate: Candidate
    place: int
    mean: float
    rows: int


@dataclass(frozen=True, eq=False)
class Contest:
    """Candidates on validation rows. Both sides of every comparison saw the same rows."""

    evaluator: Evaluator
    validation: Rows
    objective: Objective

    def halve(self, candidates: Sequence[Candidate], evaluations: int, seed: int) -> list[Standing]:
        """The candidates, best first. Raises `BudgetSpent` where the router calls for it cannot be made."""
        seen: dict[int, list[int]] = {index: [] for index in range(len(candidates))}

        def evaluate(alive: Sequence[int], items: Sequence[int]) -> Floats:
            for index in alive:
                seen[index] += items
            return np.array([self.utilities(candidates[index], items) for index in alive])

        budget = max(evaluations, len(candidates))
        halved = sequential_halving(
            evaluate, len(candidates), len(self.validation), budget, np.random.default_rng(seed)
        )
        return [self._standing(candidates[index], place, seen[index]) for place, index in enumerate(halved.ranking)]

    def utilities(self, candidate: Candidate, items: Sequence[int]) -> Floats:
        """Expected utility of a candidate on validation rows."""
        rows = self.validation.take(items)
        return self.evaluator.routed(candidate, rows).utilities(rows, self.objective)

    def first_alike(self, best: Candidate, candidates: Sequence[Candidate]) -> Candidate:
        """The first of `candidates` that the rows cannot tell from `best`, else `best`; makes no call.

        Alike is: behind by no more than a standard error on the rows that both were tried on. Put in order of trust, so
        that a later candidate has to show that it is better (compare the one-standard-error rule, Breiman et al. 1984).
        """
        for candidate in candidates:
            if candidate.id == best.id:
                break
            items = self._shared(best, candidate)
            if len(items) < LEAST_SHARED:
                continue
            gap = self.utilities(best, items) - self.utilities(candidate, items)
            if gap.mean() <= gap.std() / np.sqrt(len(gap)):
                return candidate
        return best

    def best_known(self, start: Candidate, candidates: Sequence[Candidate], least: int) -> Candidate:
        """Without any call: who is surest better than the start on the rows that both were tried on; else the start."""
        best, lead = start, 0.0
        for candidate in candidates:
            items = self._shared(candidate, start)
            if candidate.id == start.id or len(items) < least:
                continue
            gain = self.utilities(candidate, items) - self.utilities(start, items)
            sureness = float(gain.mean() / (gain.std() + 1e-9) * np.sqrt(len(items)))
            if sureness > max(lead, 1.0):
                best, lead = candidate, sureness
        return best

    def _shared(self, one: Candidate, other: Candidate) -> list[int]:
        known = self.evaluator.known(one, self.validation) & self.evaluator.known(other, self.validation)
        return sorted(known)

    def _standing(self, candidate: Candidate, place: int, items: Sequence[int]) -> Standing:
        mean = float(self.utilities(candidate, items).mean()) if items else 0.0
        return Standing(candidate, place, mean, len(items))
