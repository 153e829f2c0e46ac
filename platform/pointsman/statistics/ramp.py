"""The ramp of a canary: which share of the disagreements the candidate is given, by the rows that came in before.

ρ depends on earlier rows only, so the gate stays valid. The arm is drawn with ρ, and ρ is logged on the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pointsman.errors import UserError


@dataclass(frozen=True)
class Ramp:
    """Steps (after this many rows, ρ), in order; the first begins at 0."""

    steps: tuple[tuple[int, float], ...] = ((0, 0.05), (100, 0.25), (300, 0.5))

    def __post_init__(self) -> None:
        if not self.steps or self.steps[0][0] != 0:
            raise UserError("ramp: the first step must begin after 0 rows")
        if any(later[0] <= earlier[0] for earlier, later in pairwise(self.steps)):
            raise UserError(f"ramp: steps must begin after more and more rows, got {self.steps}")
        if not all(0 < rho < 1 for _, rho in self.steps):
            raise UserError(f"ramp: every share must lie between 0 and 1, got {[rho for _, rho in self.steps]}")

    def rho(self, rows: int) -> float:
        """The candidate's probability in the row that comes after `rows` others."""
        return [rho for begin, rho in self.steps if begin <= rows][-1]

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Ramp:
        """From `dataclasses.asdict`, as it comes back from JSON."""
        return cls(tuple((int(begin), float(rho)) for begin, rho in stored["steps"]))


EVEN = Ramp(((0, 0.5),))
"""50/50 from the start: quickest to a verdict, with the most traffic at stake."""
