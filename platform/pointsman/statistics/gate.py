"""The gate of a candidate: rows in, a verdict out, and the same verdict whenever the rows are taken again.

The terms are fixed before the first row. `promotion` has the formulas of promotion and rollback, `guardrails`
those of the limits; this file puts them together for one gate, refuses rows that cannot be, and keeps the first
verdict. It reads no log: whoever calls brings one row per episode in order of assignment, with the value for
lateness already in place of what did not arrive in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log
from typing import Any, Literal

import numpy as np

from pointsman.errors import UserError
from pointsman.statistics.guardrails import Guard, Limit
from pointsman.statistics.promotion import Evidence, Margins, effects, predicted, step

Verdict = Literal["undecided", "promote", "roll_back"]


@dataclass(frozen=True)
class Terms:
    """What is registered before the first row.

    Promotion: the candidate is better than the incumbent by more than −ε on the disagreements, error `alpha`.
    Rollback: it is worse by more than ε_r, error `alpha_rollback`.
    """

    alpha: float = 0.05
    epsilon: float = 0.0
    alpha_rollback: float = 0.01
    epsilon_rollback: float = 0.0
    limits: tuple[Limit, ...] = ()

    def __post_init__(self) -> None:
        for name in ("alpha", "alpha_rollback"):
            if not 0 < getattr(self, name) < 1:
                raise UserError(f"gate: {name} must lie between 0 and 1, got {getattr(self, name):g}")
        for name in ("epsilon", "epsilon_rollback"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"gate: {name} must lie from 0 to below 1, got {getattr(self, name):g}")

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Terms:
        """From `dataclasses.asdict`, as it comes back from JSON."""
        return cls(**{**stored, "limits": tuple(Limit(**limit) for limit in stored["limits"])})


@dataclass(frozen=True)
class Row:
    """One episode in which the routers disagreed.

    `rho`: the logged probability of the candidate's arm. `prediction`: m̂, from earlier rows only; None takes the
    gate's own. `observed`: per guardrail a value in [0, 1], of episodes that the candidate served.
    """

    rho: float
    candidate: bool
    utility: float
    prediction: float | None = None
    observed: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """What one row did: the m̂ that was used, D, and ln E, ln R and the verdict after it."""

    row: int
    prediction: float
    effect: float
    log_e: float
    log_r: float
    fired: tuple[str, ...]
    verdict: Verdict


class Gate:
    """A gate under `terms`. After a verdict further rows still count as evidence, but the verdict stays."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.rows = 0
        self.verdict: Verdict = "undecided"
        self.evidence = Evidence.none(1)
        self.guards = [Guard.start(limit) for limit in terms.limits]

    def prediction(self, rho: float) -> float:
        """m̂ of the next row, unless the row brings its own."""
        return float(predicted(self.evidence, np.array([rho]))[0])

    def observe(self, row: Row) -> Step:
        """Takes the next row."""
        self._check(row)
        prediction = self.prediction(row.rho) if row.prediction is None else row.prediction
        lane = (np.array([row.rho]), np.array([row.candidate]), np.array([row.utility]), np.array([prediction]))
        margins = Margins(self.terms.epsilon, self.terms.epsilon_rollback)
        self.evidence = step(self.evidence, margins, *lane)
        for guard in self.guards:
            if row.candidate and guard.limit.name in row.observed:
                guard.observe(row.observed[guard.limit.name])
        self.rows += 1
        if self.verdict == "undecided":
            self.verdict = self._judge()
        fired = tuple(guard.limit.name for guard in self.guards if guard.fired)
        return Step(self.rows, prediction, float(effects(*lane)[0]), self.log_e, self.log_r, fired, self.verdict)

    @property
    def log_e(self) -> float:
        """ln E, to promote."""
        return float(self.evidence.log_e[0])

    @property
    def log_r(self) -> float:
        """ln R, to roll back."""
        return float(self.evidence.log_r[0])

    def to_json(self) -> dict[str, Any]:
        """Everything but the terms, which are registered apart."""
        evidence = {name: float(lane[0]) for name, lane in vars(self.evidence).items()}
        guards = [guard.to_json() for guard in self.guards]
        return {"rows": self.rows, "verdict": self.verdict, "evidence": evidence, "guards": guards}

    @classmethod
    def from_json(cls, terms: Terms, stored: Mapping[str, Any]) -> Gate:
        gate = cls(terms)
        gate.rows, gate.verdict = stored["rows"], stored["verdict"]
        gate.evidence = Evidence(**{name: np.array([value]) for name, value in stored["evidence"].items()})
        gate.guards = [Guard.from_json(guard) for guard in stored["guards"]]
        return gate

    def _judge(self) -> Verdict:
        """A fired guardrail comes before everything."""
        if any(guard.fired for guard in self.guards) or self.log_r >= -log(self.terms.alpha_rollback):
            return "roll_back"
        return "promote" if self.log_e >= -log(self.terms.alpha) else "undecided"

    def _check(self, row: Row) -> None:
        if not 0 < row.rho < 1:
            raise UserError(f"gate: rho must lie between 0 and 1, got {row.rho:g}: a forced episode is no row")
        for name, value in (("utility", row.utility), ("prediction", row.prediction)):
            if value is not None and not 0 <= value <= 1:
                raise UserError(f"gate: expected {name} from 0 to 1, got {value:g}")
        unknown = set(row.observed) - {guard.limit.name for guard in self.guards}
        if unknown:
            raise UserError(f"gate: no guardrail was registered for {', '.join(sorted(unknown))}")


def replay(terms: Terms, rows: Iterable[Row]) -> list[Step]:
    """The steps of a fresh gate over `rows`: what a stranger recomputes from the log."""
    gate = Gate(terms)
    return [gate.observe(row) for row in rows]
