"""What a job spends: added up in its row, so that all workers of one job share one budget.

    with money.reserve(Decimal("0.02")) as bill:      # BudgetSpent where that much is not left
        bill.settle(call_worker().cost)               # the reserve becomes what it really cost

What is reserved counts as spent until it is settled, so the cost passes the budget only by as much as
single calls cost more than was reserved for them. What a killed process had reserved stays counted.
Spending is not fenced: money that a stale worker spent is spent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

from sqlalchemy import Engine, or_, update

from pointsman.errors import BrokenInvariant, BudgetSpent
from pointsman.jobs.patience import patiently
from pointsman.tables import JobRow

_jobs = JobRow.__table__  # type: ignore[attr-defined]


class Bill:
    """What one call may cost, and then what it did."""

    def __init__(self, reserved: Decimal) -> None:
        self.reserved = reserved
        self.actual: Decimal | None = None

    def settle(self, actual: Decimal) -> None:
        self.actual = actual


class Money:
    """The account of one job."""

    def __init__(self, engine: Engine, job_id: str) -> None:
        self._engine = engine
        self._job_id = job_id

    def spend(self, amount: Decimal) -> Decimal:
        """Adds what was spent; the job's cost so far. BudgetSpent, with the amount counted, once it is over budget."""
        cost, budget = patiently(lambda: self._add(amount))
        if budget is not None and cost > budget:
            raise BudgetSpent(f"the budget of ${budget.normalize():f} is spent: ${cost.normalize():f} so far")
        return cost

    @contextmanager
    def reserve(self, estimate: Decimal) -> Iterator[Bill]:
        """Sets aside what a call may cost. Where it ends unsettled, because it failed, nothing of it was spent."""
        patiently(lambda: self._set_aside(estimate))
        bill = Bill(estimate)
        try:
            yield bill
        finally:
            patiently(lambda: self._add((bill.actual or Decimal(0)) - estimate))

    def _add(self, amount: Decimal) -> tuple[Decimal, Decimal | None]:
        added = update(_jobs).where(_jobs.c.id == self._job_id).values(cost=_jobs.c.cost + amount)
        with self._engine.begin() as connection:
            row = connection.execute(added.returning(_jobs.c.cost, _jobs.c.budget)).one_or_none()
        if row is None:
            raise BrokenInvariant(f"job {self._job_id} has no row to add its cost to")
        return row.cost, row.budget

    def _set_aside(self, estimate: Decimal) -> None:
        enough = or_(_jobs.c.budget.is_(None), _jobs.c.cost + estimate <= _jobs.c.budget)
        aside = update(_jobs).where(_jobs.c.id == self._job_id, enough).values(cost=_jobs.c.cost + estimate)
        with self._engine.begin() as connection:
            if connection.execute(aside).rowcount:
                return
        cost, budget = self._add(Decimal(0))
        left = Decimal(0) if budget is None else budget - cost
        raise BudgetSpent(
            f"the next call may cost ${estimate.normalize():f}, and of the job's budget ${left.normalize():f} is left"
        )
