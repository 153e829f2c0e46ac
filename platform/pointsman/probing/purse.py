"""Money for one run: what a call may cost is set aside before it is made, so that no budget is overrun."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal

from pointsman.errors import UserError
from pointsman.pool import Pool, Price, Worker
from pointsman.upstream.body import Fields
from pointsman.upstream.direct import prompt_tokens
from pointsman.upstream.price import cost
from pointsman.upstream.usage import Usage

GUESSED_OUTPUT = 2_000
"""Tokens of an answer whose length nothing bounds."""


class PurseEmpty(Exception):
    """What is left does not pay for the next call."""


class Bill:
    """What one call may cost; `paid` is what it did cost, the estimate where that is not known."""

    def __init__(self, estimate: Decimal) -> None:
        self.estimate = estimate
        self.paid = estimate

    def settle(self, amount: Decimal | None) -> None:
        self.paid = self.estimate if amount is None else amount


class Purse:
    """`budget` None: no limit, and prices need not be known. One per event loop."""

    def __init__(self, budget: Decimal | None, pool: Pool) -> None:
        self.budget = budget
        self.spent = Decimal(0)
        self._reserved = Decimal(0)
        self._changed = asyncio.Condition()
        self._dearest = _dearest(pool)
        if budget is not None and self._dearest is None:
            raise UserError("a budget was given, and no worker has a price: declare prices, or give no budget")

    @asynccontextmanager
    async def reserve(self, worker: Worker, fields: Fields) -> AsyncIterator[Bill]:
        """Sets aside what the call may cost. Raises `PurseEmpty`, but only when nothing under way may give back."""
        bill = Bill(self.estimate(worker, fields))
        async with self._changed:
            while self._lacks(bill.estimate):
                if not self._reserved:
                    raise PurseEmpty
                await self._changed.wait()
            self._reserved += bill.estimate
        try:
            yield bill
        except BaseException:
            bill.settle(Decimal(0))
            raise
        finally:
            async with self._changed:
                self._reserved -= bill.estimate
                self.spent += bill.paid
                self._changed.notify_all()

    def estimate(self, worker: Worker, fields: Fields) -> Decimal:
        """The most that a call will probably cost; a worker without a price counts as the dearest."""
        usage = Usage(prompt_tokens(fields), worker.max_output_tokens or GUESSED_OUTPUT, estimated=True)
        return cost(usage, worker.price or self._dearest) or Decimal(0)

    def _lacks(self, amount: Decimal) -> bool:
        return self.budget is not None and self.spent + self._reserved + amount > self.budget


def _dearest(pool: Pool) -> Price | None:
    prices = [worker.price for worker in pool.workers if worker.price is not None]
    if not prices:
        return None
    return Price(*(max(getattr(price, part) for price in prices) for part in ("input", "output", "cached_input")))
