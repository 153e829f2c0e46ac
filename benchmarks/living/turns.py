"""Lives of many turns: each turn brings a candidate, which certification and gate let in or not, under one α ledger.

A lane is a life. A candidate disagrees with the incumbent on a share of requests; only there does it matter. Its α_j
are those of the product's ledger, its certificate the product's paired bound, its gate the product's e-processes with
the ramp. Utilities are Bernoulli.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from pointsman.statistics.alpha_ledger import spending
from pointsman.statistics.arrays import Booleans, Floats
from pointsman.statistics.bounded_mean import lower_bound
from pointsman.statistics.promotion import Evidence, Margins, predicted, step
from pointsman.statistics.ramp import Ramp


@dataclass(frozen=True)
class Life:
    """`gain`: the candidates' utility minus the first incumbent's, over all requests; 0: there is nothing to gain.

    `certified`: a candidate enters its canary only with a certificate from `audits` rows; else every candidate does.
    """

    gain: float
    certified: bool
    turns: int = 20
    requests: int = 5_000
    audits: int = 1_000
    disagreements: float = 0.2
    incumbent: float = 0.7
    alpha: float = 0.05
    alpha_rollback: float = 0.01

    @property
    def effect(self) -> float:
        """The gain where the routers disagree."""
        return self.gain / self.disagreements


@dataclass(frozen=True)
class Lives:
    """Per life: the turn and the request of its first promotion (∞: none), and how many canaries it began."""

    turn: Floats
    request: Floats
    canaries: Floats

    @property
    def promoted(self) -> float:
        """The share of lives with any promotion."""
        return float(np.isfinite(self.turn).mean())

    def median_turn(self) -> float | None:
        """The median turn of the first promotion, lives without one counted as never."""
        middle = float(np.median(self.turn))
        return middle if isfinite(middle) else None


def live(life: Life, lanes: int, rng: np.random.Generator) -> Lives:
    """`lanes` lives side by side, each until its first promotion or its last turn."""
    turn, request = np.full(lanes, np.inf), np.full(lanes, np.inf)
    opened, canaries = np.zeros(lanes, dtype=int), np.zeros(lanes, dtype=int)
    for number in range(life.turns):
        waiting = np.isinf(turn)
        if not waiting.any():
            break
        entering = waiting
        if life.certified:
            opened[waiting] += 1
            entering = waiting & _certified(life, _shares(life, opened), rng)
        canaries[entering] += 1
        passed = _gate(life, entering, _shares(life, canaries), rng)
        first = entering & np.isfinite(passed)
        turn[first] = number + 1
        request[first] = number * life.requests + passed[first]
    return Lives(turn, request, canaries.astype(float))


def _shares(life: Life, used: np.ndarray) -> Floats:
    """α_j of each lane's present test: half of α for each kind of test."""
    return np.array([spending(life.alpha / 2, int(max(index, 1))) for index in used])


def _certified(life: Life, alphas: Floats, rng: np.random.Generator) -> Booleans:
    """Is the paired lower bound above 0, on rows that the candidate's search never saw?"""
    shape = (len(alphas), life.audits)
    differ = rng.random(shape) < life.disagreements
    new = rng.random(shape) < life.incumbent + life.effect
    old = rng.random(shape) < life.incumbent
    halves = (1 + differ * (new.astype(float) - old)) / 2
    certified = np.zeros(len(alphas), dtype=bool)
    for alpha in np.unique(alphas):
        mine = alphas == alpha
        certified[mine] = lower_bound(halves[mine], float(alpha), life.audits) > 0.5
    return certified


def _gate(life: Life, entering: Booleans, alphas: Floats, rng: np.random.Generator) -> Floats:
    """Requests until each lane's gate promotes, ∞ where it rolls back or the turn ends first."""
    lanes, ramp, margins = len(alphas), Ramp(), Margins(0.0, 0.0)
    evidence, passed = Evidence.none(lanes), np.full(lanes, np.inf)
    running, request = entering.copy(), np.zeros(lanes)
    row = 0
    while True:
        request += rng.geometric(life.disagreements, lanes)
        running &= request <= life.requests
        if not running.any():
            return passed
        rho = np.full(lanes, ramp.rho(row))
        arm = rng.random(lanes) < rho
        utility = (rng.random(lanes) < life.incumbent + life.effect * arm).astype(float)
        evidence = step(evidence, margins, rho, arm, utility, predicted(evidence, rho))
        back = running & (evidence.log_r >= -np.log(life.alpha_rollback))
        up = running & ~back & (evidence.log_e >= -np.log(alphas))
        passed[up] = request[up]
        running &= ~(back | up)
        row += 1
