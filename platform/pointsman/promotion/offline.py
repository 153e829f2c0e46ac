"""Certificates from full-information rows that a search never saw, computed (again) from the log.

The rows' rewards and costs are in the log; what the log alone does not have is how the routers chose on them. That is
kept with the certificate as its evidence, so that nobody has to ask a router again:

    {"rows": [decision ids], "endpoints": [[worker, endpoint hash], …], "policies": [[[p, …] per row] per router],
     "chosen": 0, "incumbent": 1, "trade_off": 0.0, "cap": 1.0}

Routers stand in the order of the finalists; a row of a policy has a probability for each of `endpoints`, in order.
The three claims share the error: half, a quarter, a quarter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from sqlalchemy import Connection

from pointsman.errors import NotEvaluable, UserError
from pointsman.ids import time_of
from pointsman.probing.matrix import Matrix, full_information
from pointsman.rewards.compute import Window
from pointsman.rewards.spec import RewardSpec
from pointsman.statistics.arrays import Floats
from pointsman.statistics.finalists import within_best
from pointsman.statistics.oracle import distance_bound, utility
from pointsman.statistics.paired import paired_lower_bound
from pointsman.words import Claim

SHARES: Mapping[str, float] = {"better_than_incumbent": 0.5, "best_of_finalists": 0.25, "oracle_of_pool": 0.25}


@dataclass(frozen=True, eq=False)
class Evidence:
    """How routers chose on the rows of a certification set: `policies` has the shape (routers, rows, workers)."""

    rows: tuple[str, ...]
    endpoints: Mapping[str, str]
    policies: Floats
    chosen: int = 0
    incumbent: int = 1
    trade_off: float = 0.0
    cap: float = 1.0

    def to_json(self) -> dict[str, Any]:
        """Endpoints as pairs: PostgreSQL keeps no order of an object's keys, and columns have one."""
        endpoints = [list(pair) for pair in self.endpoints.items()]
        return {
            **vars(self),
            "rows": list(self.rows),
            "endpoints": endpoints,
            "policies": self.policies.tolist(),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Evidence:
        policies = np.asarray(stored["policies"], dtype=np.float64)
        endpoints = dict(stored["endpoints"])
        return cls(**{**stored, "rows": tuple(stored["rows"]), "endpoints": endpoints, "policies": policies})


@dataclass(frozen=True)
class Claimed:
    """One claim, computed. `holds` says whether it claims anything."""

    claim: Claim
    holds: bool
    alpha: float
    numbers: dict[str, float | int]


@dataclass(frozen=True, eq=False)
class Known:
    """What the log says of the rows: utility of every worker on each, and the episode it belongs to."""

    utilities: Floats
    episodes: tuple[str, ...]


def read_known(connection: Connection, project: str, evidence: Evidence, spec: RewardSpec | None) -> Known:
    """Raises `NotEvaluable` where the log does not have all of the rows any more, with every worker's reward."""
    moments = [time_of(row) for row in evidence.rows]
    window = Window(min(moments), max(moments) + timedelta(seconds=1))
    by_endpoint = {endpoint: worker for worker, endpoint in evidence.endpoints.items()}
    matrix = full_information(connection, project, window=window, workers=by_endpoint, spec=spec, failures="poor")
    at = {identity: n for n, identity in enumerate(matrix.ids)}
    if gone := [row for row in evidence.rows if row not in at]:
        raise NotEvaluable(f"{len(gone)} of its {len(evidence.rows)} rows are not in the log any more")
    found = matrix.take([at[row] for row in evidence.rows])
    if not found.complete.all():
        raise NotEvaluable("not every worker has a reward on every row any more")
    return Known(_utilities(found, evidence), found.episodes)


def claims(evidence: Evidence, known: Known, alpha: float) -> list[Claimed]:
    """The three claims of a set that may spend `alpha`."""
    return [claim_of(name, evidence, known, share * alpha) for name, share in SHARES.items()]  # type: ignore[arg-type]


def claim_of(claim: Claim, evidence: Evidence, known: Known, alpha: float) -> Claimed:
    """One claim at its own share of the error."""
    values = (evidence.policies * known.utilities[None]).sum(axis=2).T
    horizon = len(set(known.episodes))
    if claim == "better_than_incumbent":
        new, old = values[:, evidence.chosen], values[:, evidence.incumbent]
        bound = paired_lower_bound(new, old, alpha, episodes=known.episodes, horizon=horizon)
        numbers = {"difference": bound.estimate, "low": bound.low, "episodes": bound.n}
        return Claimed(claim, bound.low > 0, alpha, numbers)
    if claim == "best_of_finalists" and values.shape[1] == 1:
        return Claimed(claim, True, alpha, {"epsilon": 0.0, "finalists": 1})
    if claim == "best_of_finalists":
        near = within_best(values, evidence.chosen, alpha, episodes=known.episodes, horizon=horizon)
        return Claimed(claim, near.epsilon < 1, alpha, _near(near.epsilon, near.n, values.shape[1]))
    if claim == "oracle_of_pool":
        policy = evidence.policies[evidence.chosen]
        gap = distance_bound(known.utilities, policy, alpha, episodes=known.episodes, horizon=horizon)
        return Claimed(claim, gap.high < 1, alpha, {"epsilon": gap.high, "mean_gap": gap.estimate, "episodes": gap.n})
    raise UserError(f"{claim} is no claim of a certification set")


def _near(epsilon: float, episodes: int, finalists: int) -> dict[str, float | int]:
    return {"epsilon": epsilon, "finalists": finalists, "episodes": episodes}


def _utilities(matrix: Matrix, evidence: Evidence) -> Floats:
    """The first run's rewards, where a row was repeated: the second is for the oracle's lower estimate."""
    first = matrix.scores[:, :, 0]
    rewards = np.where(np.isfinite(first), first, matrix.means)
    if not evidence.trade_off:
        return rewards
    return utility(rewards, _costs(matrix), evidence.trade_off, evidence.cap)


def _costs(matrix: Matrix) -> Floats:
    """In USD; what is not known is as the worker costs elsewhere."""
    known = np.isfinite(matrix.mean_costs)
    if not known.any(axis=0).all():
        raise NotEvaluable("no cost is known of some worker")
    means = np.where(known, matrix.mean_costs, 0.0).sum(axis=0) / known.sum(axis=0)
    costs: Floats = np.where(known, matrix.mean_costs, means)
    return costs
