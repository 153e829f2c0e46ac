"""The α ledger of a project: how much error every release may spend, so that the whole life of a project spends α.

Half of α goes to certification sets, half to live gates. The j-th of each kind may spend

    α/2 · 1/(j (j + 1)),      and the sum over all j is α/2,

so P(ever a false certificate or a false promotion) ≤ α by the union bound, however many candidates there are. An
index of the live half is used only when a candidate enters its canary, one of the certification half only when a
certification set is opened: candidates that get no further cost nothing. An opened set is spent, whatever came of
it. A new epoch of the pool (workers, endpoints changed) starts over: the bound is per epoch, and certificates say
so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pointsman.errors import UserError


def spending(alpha: float, index: int) -> float:
    """α/(j(j + 1)) for the j-th test, j from 1."""
    if index < 1:
        raise UserError(f"alpha ledger: expected an index of 1 or more, got {index}")
    return alpha / (index * (index + 1))


@dataclass(frozen=True)
class AlphaLedger:
    """What a project has used in this epoch of its pool: a count of opened certification sets and of canaries."""

    alpha: float = 0.05
    pool_epoch: str = ""
    certifications: int = 0
    canaries: int = 0

    def open_certification(self) -> tuple[float, AlphaLedger]:
        """The error that the next certification set may spend, and the ledger after opening it."""
        after = replace(self, certifications=self.certifications + 1)
        return spending(self.alpha / 2, after.certifications), after

    def enter_canary(self) -> tuple[float, AlphaLedger]:
        """The error that the next live gate may spend, and the ledger after it has begun."""
        after = replace(self, canaries=self.canaries + 1)
        return spending(self.alpha / 2, after.canaries), after

    def restarted(self, pool_epoch: str) -> AlphaLedger:
        """The ledger for another epoch of the pool; the same epoch keeps what it has spent."""
        return self if pool_epoch == self.pool_epoch else AlphaLedger(self.alpha, pool_epoch)

    @property
    def spent(self) -> float:
        """Σ over both halves: α/2 · (1 − 1/(n + 1)) each."""
        return self.alpha / 2 * (2 - 1 / (self.certifications + 1) - 1 / (self.canaries + 1))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> AlphaLedger:
        return cls(**stored)
