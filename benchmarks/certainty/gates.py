"""Gates over simulated traffic: how often they promote what is no better, and how long a better candidate waits.

A share of requests are disagreements; only there the arm is drawn, and utilities are Bernoulli. The gate is the
product's own, a lane per repetition, with its own past-only m̂. Beside it a z-test that is looked at every 200
requests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointsman.statistics.arrays import Booleans, Floats, normal_quantile
from pointsman.statistics.promotion import Evidence, Margins, predicted, step
from pointsman.statistics.ramp import EVEN, Ramp

LOOK_EVERY = 200
LEAST_PER_ARM = 10


@dataclass(frozen=True)
class Traffic:
    """`effect`: the candidate's utility minus the incumbent's on disagreements."""

    effect: float
    incumbent: float = 0.7
    disagreements: float = 0.2
    requests: int = 12_000
    ramp: Ramp = EVEN


@dataclass(frozen=True)
class Rules:
    alpha: float = 0.05
    epsilon: float = 0.0
    alpha_rollback: float = 0.01
    epsilon_rollback: float = 0.0


@dataclass(frozen=True)
class Verdicts:
    """Requests (and disagreements) until each verdict, ∞ where it never came; one entry per repetition."""

    promoted: Floats
    rolled_back: Floats
    promoted_rows: Floats
    rolled_back_rows: Floats
    peeked: Floats

    @property
    def promotions(self) -> float:
        return float(np.isfinite(self.promoted).mean())

    @property
    def rollbacks(self) -> float:
        return float(np.isfinite(self.rolled_back).mean())

    @property
    def peeking_promotions(self) -> float:
        return float(np.isfinite(self.peeked).mean())


class Arms:
    """What a z-test knows: rows, sum of utilities per arm (they are 0 or 1)."""

    def __init__(self, lanes: int) -> None:
        self.rows = np.zeros((2, lanes))
        self.sums = np.zeros((2, lanes))

    def add(self, candidate: Booleans, utility: Floats) -> None:
        for arm, rows in ((1, candidate), (0, ~candidate)):
            self.rows[arm] += rows
            self.sums[arm] += rows * utility

    def significant(self, alpha: float) -> Booleans:
        """Is the candidate better in a one-sided z-test at α?"""
        rows = np.maximum(self.rows, 1)
        means = self.sums / rows
        error = np.sqrt((means * (1 - means) / rows).sum(axis=0))
        enough = (self.rows >= LEAST_PER_ARM).all(axis=0)
        return enough & (means[1] - means[0] > normal_quantile(1 - alpha) * error)


def run_gates(traffic: Traffic, rules: Rules, reps: int, rng: np.random.Generator) -> Verdicts:
    """`reps` gates side by side, until the requests are used up or every gate has its verdict."""
    evidence, arms = Evidence.none(reps), Arms(reps)
    never = np.full(reps, np.inf)
    found = Verdicts(never.copy(), never.copy(), never.copy(), never.copy(), never.copy())
    request = np.zeros(reps)
    margins = Margins(rules.epsilon, rules.epsilon_rollback)
    for row in range(int(traffic.requests * traffic.disagreements * 1.5)):
        before = request
        request = request + rng.geometric(traffic.disagreements, reps)
        _look(found.peeked, arms, before, np.minimum(request, traffic.requests), rules.alpha)
        running = request <= traffic.requests
        if not (running & np.isinf(found.promoted) & np.isinf(found.rolled_back)).any():
            break
        rho = traffic.ramp.rho(row)
        candidate = rng.random(reps) < rho
        utility = (rng.random(reps) < traffic.incumbent + traffic.effect * candidate).astype(float)
        lanes = np.full(reps, rho)
        evidence = step(evidence, margins, lanes, candidate, utility, predicted(evidence, lanes))
        arms.add(candidate, utility)
        _judge(found, evidence, rules, request, running, row + 1)
    return found


def _look(peeked: Floats, arms: Arms, before: Floats, now: Floats, alpha: float) -> None:
    """The z-test is looked at whenever another 200 requests are complete, before the row that completes them."""
    due = (now // LOOK_EVERY > before // LOOK_EVERY) & np.isinf(peeked)
    hit = due & arms.significant(alpha)
    peeked[hit] = now[hit] // LOOK_EVERY * LOOK_EVERY


def _judge(found: Verdicts, evidence: Evidence, rules: Rules, request: Floats, running: Booleans, rows: int) -> None:
    """The first verdict counts, rollback before promotion."""
    open_lanes = running & np.isinf(found.promoted) & np.isinf(found.rolled_back)
    back = open_lanes & (evidence.log_r >= -np.log(rules.alpha_rollback))
    up = open_lanes & ~back & (evidence.log_e >= -np.log(rules.alpha))
    found.rolled_back[back], found.rolled_back_rows[back] = request[back], rows
    found.promoted[up], found.promoted_rows[up] = request[up], rows
