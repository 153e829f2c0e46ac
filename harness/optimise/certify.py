"""What may be claimed of a search's winner, from rows that the search never saw, opened once.

    better_than_incumbent   a lower bound of V(winner) − V(start), paired, above 0
    best_of_finalists       within ε of the best of the N finalists
    oracle_of_pool          within ε of the per-request oracle; where rows were repeated, a lower estimate beside it

The three share the error that the release may spend: half, a quarter, a quarter (union bound). The bounds are betting
bounds on episodes (`pointsman.statistics`); rewards must be those of workers that really answered every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from harness.optimise.candidate import Candidate
from harness.optimise.evaluate import Evaluator
from harness.optimise.rows import Floats, Objective, Rows
from pointsman.errors import UserError
from pointsman.statistics.arrays import Interval
from pointsman.statistics.finalists import within_best
from pointsman.statistics.oracle import distance_bound, distance_lower
from pointsman.statistics.paired import paired_interval, paired_lower_bound
from pointsman.words import Claim

SHARES = {"better_than_incumbent": 0.5, "best_of_finalists": 0.25, "oracle_of_pool": 0.25}
INFORMATION = 0.05
ASSUMPTIONS = (
    "the requests of the certification rows are like those to come (same traffic, same workers at the same endpoints)",
    "episodes do not influence one another",
    "the reward and the price of cost are as stated",
    "the router LLM answers a prompt as it did when the rows were routed",
    "the search and the choice of the winner did not see these rows",
)


@dataclass(frozen=True)
class Statement:
    """One claim with its numbers, in units of the objective (0 to 1). `holds` says whether it claims anything."""

    claim: Claim
    holds: bool
    alpha: float
    method: str
    numbers: dict[str, float | int | None]
    said: str


@dataclass(frozen=True)
class Beside:
    """The winner less the best single worker, with a 95% interval: information, and no claim."""

    worker: str
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Certificate:
    """The statements of one certification set. It is spent, whatever they say.

    `policies` (routers, rows, workers) is how the finalists chose, the winner first and the incumbent at `incumbent`:
    with it the statements can be computed again from the log, without asking a router.
    """

    statements: tuple[Statement, ...]
    alpha: float
    data_hash: str
    rows: int
    episodes: int
    beside: Beside
    policies: tuple[tuple[tuple[float, ...], ...], ...]
    incumbent: int
    objective: Objective
    assumptions: tuple[str, ...] = ASSUMPTIONS

    @property
    def better(self) -> bool:
        return self.statements[0].holds

    def as_dict(self) -> dict[str, Any]:
        """As JSON, for people: without the policies."""
        return {name: value for name, value in asdict(self).items() if name not in ("policies", "incumbent")}


def certify(
    winner: Candidate,
    start: Candidate,
    finalists: Sequence[Candidate],
    single: int,
    rows: Rows,
    evaluator: Evaluator,
    objective: Objective,
    alpha: float,
) -> Certificate:
    """Routes all finalists over `rows` and states what follows. `alpha` is what this release may spend.

    `single` is the worker (by position) that was best on the rows that the search saw: the winner is set beside it, for
    information and at no cost of α. A router that is better than the incumbent may still be worse than that.
    """
    if rows.basis != "full":
        raise UserError(
            "a certificate needs rows that every worker answered: run `pointsman probe` or `pointsman audit`"
        )
    if not len(rows):
        raise UserError("no certification rows: every late row repeats a text that the search saw")
    field = list({one.id: one for one in (winner, start, *finalists)}.values())
    policies = [evaluator.routed(one, rows).policy for one in field]
    worth = rows.utilities(objective)
    values = np.array([(policy * worth).sum(axis=1) for policy in policies]).T
    episodes = [row.episode for row in rows.rows]
    horizon = len(set(episodes))
    incumbent = [one.id for one in field].index(start.id)
    new, old = values[:, 0], values[:, incumbent]
    statements = (
        _better(
            paired_lower_bound(new, old, _share("better_than_incumbent", alpha), episodes=episodes, horizon=horizon)
        ),
        _near_best(values, episodes, horizon, _share("best_of_finalists", alpha)),
        _near_oracle(rows, objective, policies[0], worth, episodes, horizon, _share("oracle_of_pool", alpha)),
    )
    gap = paired_interval(new, worth[:, single], INFORMATION, episodes=episodes, horizon=horizon)
    beside = Beside(rows.workers[single], gap.estimate, gap.low, gap.high)
    chosen = tuple(tuple(tuple(map(float, row)) for row in policy) for policy in policies)
    return Certificate(
        statements, alpha, rows.hash, len(rows), horizon, beside, chosen, incumbent, objective
    )  # fmt: skip


def _share(claim: Claim, alpha: float) -> float:
    return SHARES[claim] * alpha


def _better(bound: Interval) -> Statement:
    numbers: dict[str, float | int | None] = {"difference": bound.estimate, "low": bound.low, "episodes": bound.n}
    holds = bound.low > 0
    said = (
        f"better than the incumbent by at least {bound.low:.4f} (estimate {bound.estimate:+.4f}, {bound.n} episodes)"
        if holds
        else f"not shown to be better than the incumbent (estimate {bound.estimate:+.4f}, lower bound {bound.low:+.4f})"
    )
    return Statement("better_than_incumbent", holds, bound.alpha, bound.method, numbers, said)


def _near_best(values: Floats, episodes: list[str], horizon: int, alpha: float) -> Statement:
    if values.shape[1] == 1:
        return Statement(
            "best_of_finalists", True, alpha, "only one finalist", {"epsilon": 0.0, "finalists": 1}, "alone"
        )
    near = within_best(values, 0, alpha, episodes=episodes, horizon=horizon)
    count = values.shape[1]
    numbers: dict[str, float | int | None] = {"epsilon": near.epsilon, "finalists": count, "episodes": near.n}
    said = f"within {near.epsilon:.4f} of the best of these {count} finalists"
    return Statement("best_of_finalists", near.epsilon < 1, alpha, "betting, Bonferroni over finalists", numbers, said)


def _near_oracle(
    rows: Rows, objective: Objective, policy: Floats, worth: Floats, episodes: list[str], horizon: int, alpha: float
) -> Statement:
    bound = distance_bound(worth, policy, alpha, episodes=episodes, horizon=horizon)
    lower = _lower(rows, objective, policy, worth)
    numbers: dict[str, float | int | None] = {"epsilon": bound.high, "mean_gap": bound.estimate, "episodes": bound.n}
    numbers |= {"lower_estimate": lower.estimate if lower else None, "repeated_rows": lower.n if lower else 0}
    said = f"within {bound.high:.4f} of the per-request oracle of this pool (luck of single answers included)"
    if lower:
        said += f"; {lower.estimate:+.4f} by the cross-fitted lower estimate on {lower.n} repeated rows"
    return Statement("oracle_of_pool", bound.high < 1, alpha, bound.method, numbers, said)


def _lower(rows: Rows, objective: Objective, policy: Floats, worth: Floats) -> Interval | None:
    """From the rows that were asked twice; None where there are too few to say anything."""
    if rows.again is None:
        return None
    twice = np.flatnonzero(np.isfinite(rows.again).all(axis=1))
    if len(twice) < 2:
        return None
    second = Rows(rows.workers, tuple(rows.rows[i] for i in twice), rows.again[twice], rows.costs[twice])
    episodes = [rows.rows[i].episode for i in twice]
    return distance_lower(worth[twice], second.utilities(objective), policy[twice], 0.05, episodes=episodes)
