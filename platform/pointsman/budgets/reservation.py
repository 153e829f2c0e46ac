"""What one request holds of its budgets until it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from threading import Lock

from pointsman.budgets.account import ZERO
from pointsman.budgets.hold import Hold, Purse


class Reservation:
    """Ends once, by `settle` or by `release`; every later call does nothing."""

    __slots__ = ("_lock", "_open", "_taken", "estimate", "tokens")

    def __init__(self, lock: Lock, taken: Sequence[tuple[Hold, Purse]], estimate: Decimal, tokens: int) -> None:
        self._lock = lock
        self._taken = taken
        self._open = bool(taken)
        self.estimate = estimate
        self.tokens = tokens

    def settle(self, actual: Decimal | None, dearest: Decimal = ZERO, tokens: int | None = None) -> None:
        """Charges what the request cost, at the prices of all its calls.

        `actual` None: unknown, and charged as `dearest` (its tokens at the dearest price of the pool), or
        as its estimate where that is not known either; never 0. `tokens` None: as many as reserved.
        """
        if actual is None:
            actual = dearest if dearest > 0 else self.estimate
        self._end(actual, self.tokens if tokens is None else tokens)

    def release(self) -> None:
        """Nothing was used. The request itself still counts against requests per minute."""
        self._end(ZERO, 0)

    def _end(self, charge: Decimal, tokens: int) -> None:
        if not self._open:
            return
        estimate, over = self.estimate, self.tokens - tokens
        with self._lock:
            if not self._open:
                return
            self._open = False
            for hold, purse in self._taken:
                purse.reserved -= estimate
                purse.used += charge
                if over and hold.budget.tokens_per_minute is not None:
                    hold.tokens += over


FREE = Reservation(Lock(), (), ZERO, 0)
"""The reservation of a caller without a budget: nothing is held, nothing is charged."""
