"""Fixtures of the budgets' tests: one key, its budget, a clock that tests turn, ledgers over one database."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from pointsman.budgets import Ledger, Store
from pointsman.budgets.manage import list_budgets, set_budget
from pointsman.identity import DEFAULT_PROJECT_ID, create_key, list_keys


@dataclass
class Clock:
    """One time for the database's side and the ledgers' side."""

    at: datetime = field(default_factory=lambda: datetime(2026, 3, 31, 12, tzinfo=UTC))

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def pass_(self, **span: float) -> None:
        self.at += timedelta(**span)


@dataclass
class World:
    """A key with whatever budget a test gives it."""

    engine: object
    key_id: str
    clock: Clock

    def budget(self, *, whole_project: bool = False, **terms):
        with self.engine.begin() as connection:
            set_budget(
                connection, project_id=DEFAULT_PROJECT_ID, key_id=None if whole_project else self.key_id, **terms
            )

    def ledger(self, holder: str = "a", **options) -> Ledger:
        """A ledger that has read the catalogue, on the test's clock."""
        store = Store(self.engine, holder, now=self.clock.now)
        ledger = Ledger(store, clock=self.clock.monotonic, **options)
        ledger.catalogue = store.catalogue()
        return ledger

    def spent(self) -> Decimal:
        with self.engine.connect() as connection:
            return list_budgets(connection, self.clock.at)[0].spent_usd


@pytest.fixture
def world(engine, empty_database) -> World:
    with engine.begin() as connection:
        create_key(connection)
        key_id = list_keys(connection)[0].id
    return World(engine, key_id, Clock())
