"""Leases in Postgres: reports go in and grants come out of one short transaction under the budgets' row locks.

Budgets are locked in the order of their ids, so that gateways never wait for each other in a circle. The
time is the database's, one clock for all gateways. What it computes is in `account`; nothing is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, bindparam, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from pointsman.budgets.account import Account, Grant, Lease, Report
from pointsman.budgets.terms import Budget, Catalogue
from pointsman.tables import BudgetLease, BudgetRow

LEASE = timedelta(seconds=120)
"""A gateway may spend its slice for so long without Postgres; one that died returns it after as long."""
_TOGETHER = 100  # budgets locked at a time
_PATIENCE = text("SET LOCAL lock_timeout = '1s'; SET LOCAL statement_timeout = '2s'")

_budgets = BudgetRow.__table__  # type: ignore[attr-defined]
_leases = BudgetLease.__table__  # type: ignore[attr-defined]


class Store:
    """`holder` names this process in the rows. `now` is for tests; without it the database's clock counts."""

    def __init__(
        self,
        engine: Engine,
        holder: str,
        *,
        ttl: timedelta = LEASE,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._engine = engine
        self._holder = holder
        self._ttl = ttl
        self._now = now

    def catalogue(self) -> Catalogue:
        """Every budget there is."""
        with self._engine.connect() as connection:
            return Catalogue(_budget(row) for row in connection.execute(select(_budgets).order_by(_budgets.c.id)))

    def renew(self, reports: Iterable[Report]) -> list[Grant]:
        """The grants, in no order; none for a budget that is gone. Raises SQLAlchemy's errors."""
        grants: list[Grant] = []
        ordered = sorted(reports, key=lambda report: report.budget_id)
        for first in range(0, len(ordered), _TOGETHER):
            some = ordered[first : first + _TOGETHER]
            with self._engine.begin() as connection:
                grants += self._renew(connection, some)
        return grants

    def _renew(self, connection: Connection, reports: Sequence[Report]) -> list[Grant]:
        connection.execute(_PATIENCE)
        accounts = _locked(connection, {report.budget_id for report in reports})
        now = self._now() if self._now else connection.execute(select(func.clock_timestamp())).scalar_one()
        for account in accounts.values():
            account.advance(now)
        grants = [
            accounts[report.budget_id].answer(report, self._holder, now, self._ttl)
            for report in reports
            if report.budget_id in accounts
        ]
        _write(connection, accounts.values())
        return grants


def _locked(connection: Connection, ids: set[str]) -> dict[str, Account]:
    """The accounts of these budgets, their rows locked until the transaction ends."""
    chosen = select(_budgets).where(_budgets.c.id.in_(ids)).order_by(_budgets.c.id).with_for_update()
    accounts = {
        str(row.id): Account(
            _budget(row), row.period_start, row.spent, row.requests_left, row.tokens_left, row.refilled_at
        )
        for row in connection.execute(chosen)
    }
    for row in connection.execute(select(_leases).where(_leases.c.budget_id.in_(ids))):
        lease = Lease(str(row.id), row.holder, row.amount, row.used, row.reserved, row.expires_at)
        accounts[str(row.budget_id)].leases[lease.id] = lease
    return accounts


def _write(connection: Connection, accounts: Iterable[Account]) -> None:
    budgets: list[dict[str, Any]] = []
    leases: list[dict[str, Any]] = []
    gone: set[str] = set()
    for account in accounts:
        gone |= account.gone - set(account.leases)
        budgets.append(
            {
                "b_id": UUID(account.budget.id),
                "period_start": account.period_start,
                "spent": account.spent,
                "requests_left": account.requests_left,
                "tokens_left": account.tokens_left,
                "refilled_at": account.refilled_at,
            }
        )
        leases += [_lease_row(account, account.leases[identity]) for identity in sorted(account.changed)]
    if gone:
        connection.execute(delete(_leases).where(_leases.c.id.in_(gone)))
    if budgets:
        connection.execute(update(_budgets).where(_budgets.c.id == bindparam("b_id")), budgets)
    if leases:
        fresh = insert(_leases)
        figures = ("holder", "amount", "used", "reserved", "period_start", "expires_at")
        changes = {name: fresh.excluded[name] for name in figures}
        connection.execute(fresh.on_conflict_do_update(index_elements=["id"], set_=changes), leases)


def _lease_row(account: Account, lease: Lease) -> dict[str, Any]:
    return {
        "id": lease.id,
        "budget_id": account.budget.id,
        "holder": lease.holder,
        "amount": lease.amount,
        "used": lease.used,
        "reserved": lease.reserved,
        "period_start": account.period_start,
        "expires_at": lease.expires_at,
    }


def _budget(row: Any) -> Budget:
    return Budget(
        id=str(row.id),
        project_id=str(row.project_id),
        key_id=None if row.key_id is None else str(row.key_id),
        limit_usd=row.limit_usd,
        requests_per_minute=row.requests_per_minute,
        tokens_per_minute=row.tokens_per_minute,
        period=row.period,
    )
