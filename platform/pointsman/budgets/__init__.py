"""Budgets and rate limits: what may be spent (`terms`), leases in Postgres (`store`), the hot path (`ledger`).

`manage` sets and lists budgets for people, `pricing` says what a request may cost.
"""

from pointsman.budgets.ledger import Ledger
from pointsman.budgets.pricing import dearest, estimate
from pointsman.budgets.reservation import FREE, Reservation
from pointsman.budgets.store import Store
from pointsman.budgets.terms import Budget, Catalogue

__all__ = ["FREE", "Budget", "Catalogue", "Ledger", "Reservation", "Store", "dearest", "estimate"]
