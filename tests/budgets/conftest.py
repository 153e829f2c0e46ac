"""Fixtures of the budgets' tests: one key, its budget, a clock that tests turn, ledgers over one database."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from pointsman.budgets import Ledger, Store
from pointsman.budgets.manage import list_budgets, set_budget
from pointsman.database.engine import make_engine
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


class Network:
    """A store behind a network that a test cuts: where it is cut, nothing listens."""

    def __init__(self, store: Store, nowhere: Store) -> None:
        self.cut = False
        self._store, self._nowhere = store, nowhere

    @property
    def _reached(self) -> Store:
        return self._nowhere if self.cut else self._store

    def catalogue(self):
        return self._reached.catalogue()

    def renew(self, reports):
        return self._reached.renew(reports)


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

    def store(self, holder: str = "a") -> Store:
        return Store(self.engine, holder, now=self.clock.now)

    def ledger(self, holder: str = "a", **options) -> Ledger:
        """A ledger that has read the catalogue, on the test's clock."""
        ledger = Ledger(self.store(holder), clock=self.clock.monotonic, **options)
        assert asyncio.run(ledger.refresh())
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


@pytest.fixture
def nowhere():
    """A store whose database does not answer."""
    away = make_engine("postgresql://nobody@127.0.0.1:9/none")
    yield Store(away, "nowhere")
    away.dispose()


@pytest.fixture
def network(world, nowhere) -> Network:
    return Network(world.store(), nowhere)
