"""The evidence of a gate: e-processes for promotion and rollback on rows where incumbent and candidate disagree.

Each row draws its arm Z with the logged probability ρ of the candidate and sees a utility U in [0, 1]; m̂ is any
prediction of U made from earlier rows. With

    D = (Z/ρ − (1 − Z)/(1 − ρ)) · (U − m̂),        E[D | past] = E[U(candidate) − U(incumbent)]

    E_t = Π (1 + λ_s (D_s + ε))      promotes at 1/α:    rejects  E[D] ≤ −ε
    R_t = Π (1 + λ'_s (−D_s − ε_r))  rolls back at 1/α_r: rejects  E[D] ≥ −ε_r

Both are nonnegative supermartingales under what they reject, for any predictable λ, ρ and m̂, so P(ever wrong) ≤ α
(Ville; the gate of Karampatziakis, Mineiro & Ramdas, arXiv 2102.09540, with the bets of arXiv 2010.09686, §B.2).
No bet risks more than half the capital: λ ≤ ½/(B − ε), where B is how far below zero *this row's* D can fall
(max(m̂/ρ, (1 − m̂)/(1 − ρ)), known before U), so a ramp of ρ does not weaken later rows.

The bet is Kelly's first-order one, λ = E[D + ε] / E[(D + ε)²], which is μ/(σ² + μ²), from earlier rows only. Rows
at different ρ have different variance: the mean weighs them by ρ(1 − ρ), and the second moment at this row's ρ is
v₁/ρ + v₀/(1 − ρ), with v the mean squared U − m̂ of each arm.

Assumes: correct ρ, bounded U, no interference between episodes, one row per episode, rows in order of assignment.
Everything here is arrays of one shape, a lane per gate, so that a simulation runs the code that decides.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from pointsman.statistics.arrays import Booleans, Floats

RISK = 0.5
"""The most of its capital that one bet may lose."""

HOPED = 0.1
HOPED_ROWS = 50
"""Both processes start as if 50 earlier 50/50 rows had shown an effect of .1 in their direction. Ours: against a start
from nothing the median wait for effects of .05, .1 and .2 fell by 15%, 15% and −2%. Any start is valid."""


@dataclass(frozen=True)
class Margins:
    """ε (0: better; > 0: no worse than ε) and ε_r of the two hypotheses, as shares of utility below 1."""

    epsilon: float
    epsilon_rollback: float


@dataclass(frozen=True)
class Evidence:
    """What lanes of gates know after the same number of rows. Arm 1 is the candidate, arm 0 the incumbent.

    `log_e`, `log_r`: ln E, ln R. `weight`, `effect`: Σρ(1 − ρ), Σρ(1 − ρ)D. Per arm: rows, ΣU, Σ(U − m̂)².
    """

    log_e: Floats
    log_r: Floats
    weight: Floats
    effect: Floats
    rows1: Floats
    rows0: Floats
    utility1: Floats
    utility0: Floats
    error1: Floats
    error0: Floats

    @classmethod
    def none(cls, lanes: int) -> Evidence:
        return cls(*(np.zeros(lanes) for _ in fields(cls)))


def predicted(evidence: Evidence, rho: Floats) -> Floats:
    """m̂ for the next row: (1 − ρ)·ū₁ + ρ·ū₀, which makes D's variance least; each ū is drawn towards the common mean.

    It uses earlier rows only. Any other past-only prediction may take its place, for example one that reads the
    request.
    """
    everything = evidence.utility1 + evidence.utility0
    common = (0.5 + everything) / (1 + evidence.rows1 + evidence.rows0)
    mean1 = (evidence.utility1 + 5 * common) / (evidence.rows1 + 5)
    mean0 = (evidence.utility0 + 5 * common) / (evidence.rows0 + 5)
    return (1 - rho) * mean1 + rho * mean0


def effects(rho: Floats, candidate: Booleans, utility: Floats, prediction: Floats) -> Floats:
    """D of every row."""
    return np.where(candidate, 1 / rho, -1 / (1 - rho)) * (utility - prediction)


def bets(evidence: Evidence, margins: Margins, rho: Floats, prediction: Floats) -> tuple[Floats, Floats]:
    """(λ, λ') for the next row, from the evidence before it."""
    hope = HOPED_ROWS / 4
    rise_hoped = (evidence.effect + hope * HOPED) / (evidence.weight + hope)
    fall_hoped = (evidence.effect - hope * HOPED) / (evidence.weight + hope)
    square = _squared_error(evidence.error1, evidence.rows1) / rho
    square = square + _squared_error(evidence.error0, evidence.rows0) / (1 - rho)
    fall = np.maximum(prediction / rho, (1 - prediction) / (1 - rho))
    rise = np.maximum((1 - prediction) / rho, prediction / (1 - rho))
    up, down = margins.epsilon, margins.epsilon_rollback
    promote = _kelly(rise_hoped + up, square + 2 * up * rise_hoped + up**2)
    rollback = _kelly(-fall_hoped - down, square + 2 * down * fall_hoped + down**2)
    return np.clip(promote, 0, RISK / (fall - up)), np.clip(rollback, 0, RISK / (rise + down))


def step(
    evidence: Evidence, margins: Margins, rho: Floats, candidate: Booleans, utility: Floats, prediction: Floats
) -> Evidence:
    """The evidence after one more row in every lane."""
    effect = effects(rho, candidate, utility, prediction)
    promote, rollback = bets(evidence, margins, rho, prediction)
    arm1 = candidate.astype(np.float64)
    arm0 = 1 - arm1
    error = (utility - prediction) ** 2
    return Evidence(
        log_e=evidence.log_e + np.log1p(promote * (effect + margins.epsilon)),
        log_r=evidence.log_r + np.log1p(rollback * (-effect - margins.epsilon_rollback)),
        weight=evidence.weight + rho * (1 - rho),
        effect=evidence.effect + rho * (1 - rho) * effect,
        rows1=evidence.rows1 + arm1,
        rows0=evidence.rows0 + arm0,
        utility1=evidence.utility1 + arm1 * utility,
        utility0=evidence.utility0 + arm0 * utility,
        error1=evidence.error1 + arm1 * error,
        error0=evidence.error0 + arm0 * error,
    )


def _kelly(mean: Floats, square: Floats) -> Floats:
    """E[X]/E[X²]; the two are estimated apart, so the second is kept above the square of the first."""
    return mean / np.maximum(square, mean**2 + 1e-12)


def _squared_error(total: Floats, rows: Floats) -> Floats:
    """Mean squared U − m̂ of an arm, from a prior row of ¼, the largest variance of a utility in [0, 1]."""
    return (0.25 + total) / (1 + rows)
